"""Writes what Fortran programs include and use: mpif.h and the modules mpi and mpi_f08, as source.

The modules have interfaces only. Their procedures are in libmpifort_abi, so a compiler's files of
modules need no object code beside them."""

import foreign
import fortran
from fortran_interfaces import f08_interface, old_interface

# Variables that are constants: their addresses tell. The symbols are those of common blocks, which the
# library has, too (src/foreign/standard/fortran/fortran_constants.hpp).
# name -> (common block, type, shape)
SENTINELS = {
    "MPI_BOTTOM": ("mpiabibottom", "integer", ""),
    "MPI_IN_PLACE": ("mpiabiinplace", "integer", ""),
    "MPI_BUFFER_AUTOMATIC": ("mpiabiautomatic", "integer", ""),
    "MPI_STATUS_IGNORE": ("mpiabistatus", "integer", "(8)"),
    "MPI_STATUSES_IGNORE": ("mpiabistatuses", "integer", "(8,1)"),
    "MPI_ERRCODES_IGNORE": ("mpiabierrcodes", "integer", "(1)"),
    "MPI_UNWEIGHTED": ("mpiabiunweighted", "integer", "(1)"),
    "MPI_WEIGHTS_EMPTY": ("mpiabinoweights", "integer", "(1)"),
    "MPI_ARGV_NULL": ("mpiabiargv", "character(1)", "(1)"),
    "MPI_ARGVS_NULL": ("mpiabiargvs", "character(1)", "(1,1)"),
}

# Constants of Fortran alone.
OWN = {
    "MPI_STATUS_SIZE": 8, "MPI_SOURCE": 1, "MPI_TAG": 2, "MPI_ERROR": 3,
    "MPI_ADDRESS_KIND": 8, "MPI_OFFSET_KIND": 8, "MPI_COUNT_KIND": 8, "MPI_INTEGER_KIND": 4,
}

OLD_FUNCTIONS = "MPI_NULL_COPY_FN MPI_NULL_DELETE_FN MPI_DUP_FN".split()
NEW_FUNCTIONS = [f"MPI_{owner}_{name}" for owner in ("COMM", "TYPE", "WIN")
                 for name in ("NULL_COPY_FN", "NULL_DELETE_FN", "DUP_FN")]

HEAD = """! {what} of Warren, for the MPI standard ABI. Generated from abi/ by abi/generate.py.
"""

HANDLES = [f"MPI_{kind}" for kind in foreign.HANDLES.values()]


def number(row, values):
    """The value of a constant as a number."""
    text = row["value"]
    return int(text, 0) if text not in values else number(values[text], values)


def constants(standard):
    """(name, C type, number) of the constants that are numbers or handles in Fortran."""
    values = {row["name"]: row for row in standard.constants}
    for row in standard.constants:
        name, c_type = row["name"], row["c_type"]
        if name.startswith(("MPI_T_", "MPI_F_")) or name in SENTINELS or c_type.endswith("*"):
            if not name.startswith("MPI_T_ERR"):
                continue
        value = number(row, values)
        if name.startswith("MPI_MAX_"):
            value -= 1  # no null character
        yield name, values.get(row["value"], row)["c_type"] or c_type, value


def mpif_h(standard):
    """Statements that fit the fixed and the free form of source."""
    lines = [HEAD.format(what="mpif.h").rstrip()]

    def parameter(made, name, value):
        lines.append(f"      {made} {name}")
        lines.append(f"      parameter ({name}={value})")

    for name, value in OWN.items():
        parameter("integer", name, value)
    for name in ("MPI_SUBARRAYS_SUPPORTED", "MPI_ASYNC_PROTECTS_NONBLOCKING"):
        parameter("logical", name, ".false.")
    for name, c_type, value in constants(standard):
        parameter("integer*8" if c_type == "MPI_Offset" else "integer", name, value)
    for name, (block, made, shape) in SENTINELS.items():
        lines += [f"      {made} {name}{shape}", f"      common /{block}/ {name}", f"      save /{block}/"]
    for name in OLD_FUNCTIONS + NEW_FUNCTIONS + ["MPI_CONVERSION_FN_NULL"]:
        lines.append(f"      external {name}")
    for prefix in ("", "P"):
        for name, made in fortran.FUNCTIONS.items():
            made = "integer*8" if made.startswith("integer") else made
            lines += [f"      {made} {prefix}{name}", f"      external {prefix}{name}"]
    return "\n".join(lines) + "\n"


def types():
    lines = [HEAD.format(what="Types of handles and statuses: what the modules mpi and mpi_f08 share"),
             "module mpi_abi_types", "  implicit none", "  public"]
    lines += [f"  integer, parameter :: {name} = {value}" for name, value in OWN.items()]
    for name in HANDLES:
        lines += [f"  type, bind(C) :: {name}", "    integer :: MPI_VAL", "  end type"]
    lines += ["  type, bind(C) :: MPI_Status", "    integer :: MPI_SOURCE, MPI_TAG, MPI_ERROR",
              "    integer, private :: internal(5)", "  end type"]
    for operator, word in (("==", "equal"), ("/=", "unequal")):
        lines.append(f"  interface operator({operator})")
        for name in HANDLES:
            function = f"mpi_abi_{word}_{name[4:].lower()}"
            lines += [f"    elemental function {function}(first, second)", "      import",
                      f"      type({name}), intent(in) :: first, second",
                      f"      logical :: {function}", "    end function"]
        lines.append("  end interface")
    old, new = "integer, intent({}) :: f_status(MPI_STATUS_SIZE)", "type(MPI_Status), intent({}) :: f08_status"
    for prefix in ("MPI", "PMPI"):
        for way, first, second in (("f2f08", old.format("in"), new.format("out")),
                                   ("f082f", new.format("in"), old.format("out"))):
            names = [line.split(":: ")[1].split("(")[0] for line in (first, second)]
            lines += ["  interface", f"    subroutine {prefix}_Status_{way}({', '.join(names)}, ierror)",
                      "      import", f"      {first}", f"      {second}",
                      "      integer, optional, intent(out) :: ierror", "    end subroutine",
                      "  end interface"]
        lines += [f"  interface {prefix}_Sizeof",
                  f'    subroutine {prefix}_Sizeof_f08ts(x, size, ierror) '
                  f'bind(C, name="{prefix.lower()}_sizeof_f08ts_")',
                  "      type(*), dimension(..) :: x", "      integer, intent(out) :: size",
                  "      integer, optional, intent(out) :: ierror", "    end subroutine", "  end interface"]
    return "\n".join(lines + ["end module", ""])


def old_module(standard):
    lines = [HEAD.format(what="The module mpi"), "module mpi",
             "  use, intrinsic :: iso_c_binding, only: c_ptr", "  use mpi_abi_types", "  implicit none",
             "  public", "  private :: c_ptr",
             "  logical, parameter :: MPI_SUBARRAYS_SUPPORTED = .false.",
             "  logical, parameter :: MPI_ASYNC_PROTECTS_NONBLOCKING = .false."]
    for name, c_type, value in constants(standard):
        made = "integer(MPI_OFFSET_KIND)" if c_type == "MPI_Offset" else "integer"
        lines.append(f"  {made}, parameter :: {name} = {value}")
    for name, (block, made, shape) in SENTINELS.items():
        lines += [f"  {made} :: {name}{shape}", f"  common /{block}/ {name}", f"  save /{block}/"]
    lines += [f"  external :: {name}" for name in OLD_FUNCTIONS + NEW_FUNCTIONS + ["MPI_CONVERSION_FN_NULL"]]
    for prefix in ("", "P"):
        for procedure in fortran.procedures(standard):
            if not standard.is_large_count_form(procedure.name):
                lines += old_interface(procedure, prefix)
        lines += ["  interface", f"    subroutine {prefix}MPI_F_sync_reg(buf)",
                  "!GCC$ ATTRIBUTES NO_ARG_CHECK :: buf", "!DIR$ IGNORE_TKR buf",
                  "      type(*), dimension(*) :: buf", "    end subroutine", "  end interface"]
    return "\n".join(lines + ["end module", ""])


def callback(name, arguments, *declarations):
    return [f"    subroutine {name}({arguments})", "      import",
            *(f"      {line}" for line in declarations), "    end subroutine"]


def callbacks():
    """The abstract interfaces of a program's functions."""
    lines = ["  abstract interface"]
    address = "integer(MPI_ADDRESS_KIND)"
    for suffix, count in (("", "integer"), ("_c", "integer(MPI_COUNT_KIND)")):
        lines += callback(f"MPI_User_function{suffix}", "invec, inoutvec, len, datatype",
                          "type(c_ptr), value :: invec, inoutvec", f"{count} :: len",
                          "type(MPI_Datatype) :: datatype")
        lines += callback(f"MPI_Datarep_conversion_function{suffix}",
                          "userbuf, datatype, count, filebuf, position, extra_state, ierror",
                          "type(c_ptr), value :: userbuf, filebuf", "type(MPI_Datatype) :: datatype",
                          f"{count} :: count", "integer(MPI_OFFSET_KIND) :: position",
                          f"{address} :: extra_state", "integer :: ierror")
    for kind, handle in (("Comm", "Comm"), ("Type", "Datatype"), ("Win", "Win")):
        name = "oldtype" if kind == "Type" else f"old{kind.lower()}"
        key = f"{kind.lower()}_keyval"
        own = "datatype" if kind == "Type" else kind.lower()
        lines += callback(f"MPI_{kind}_copy_attr_function",
                          f"{name}, {key}, extra_state, attribute_val_in, attribute_val_out, flag, ierror",
                          f"type(MPI_{handle}) :: {name}", f"integer :: {key}, ierror",
                          f"{address} :: extra_state, attribute_val_in, attribute_val_out",
                          "logical :: flag")
        lines += callback(f"MPI_{kind}_delete_attr_function",
                          f"{own}, {key}, attribute_val, extra_state, ierror",
                          f"type(MPI_{handle}) :: {own}", f"integer :: {key}, ierror",
                          f"{address} :: attribute_val, extra_state")
    for kind in ("Comm", "Win", "File", "Session"):
        own = kind.lower()
        lines += callback(f"MPI_{kind}_errhandler_function", f"{own}, error_code",
                          f"type(MPI_{kind}) :: {own}", "integer :: error_code")
    lines += callback("MPI_Grequest_query_function", "extra_state, status, ierror",
                      f"{address} :: extra_state", "type(MPI_Status) :: status", "integer :: ierror")
    lines += callback("MPI_Grequest_free_function", "extra_state, ierror",
                      f"{address} :: extra_state", "integer :: ierror")
    lines += callback("MPI_Grequest_cancel_function", "extra_state, complete, ierror",
                      f"{address} :: extra_state", "logical :: complete", "integer :: ierror")
    lines += callback("MPI_Datarep_extent_function", "datatype, extent, extra_state, ierror",
                      "type(MPI_Datatype) :: datatype", f"{address} :: extent, extra_state",
                      "integer :: ierror")
    return lines + ["  end interface"]


def predefined_functions():
    lines = ["  interface"]
    for kind, handle in (("COMM", "Comm"), ("TYPE", "Datatype"), ("WIN", "Win")):
        own = "datatype" if kind == "TYPE" else kind.lower()
        old = "oldtype" if kind == "TYPE" else f"old{kind.lower()}"
        key = f"{kind.lower()}_keyval"
        for name in ("NULL_COPY_FN", "DUP_FN"):
            lines += callback(f"MPI_{kind}_{name}",
                              f"{old}, {key}, extra_state, attribute_val_in, attribute_val_out, flag, ierror",
                              f"type(MPI_{handle}) :: {old}", f"integer :: {key}, ierror",
                              "integer(MPI_ADDRESS_KIND) :: extra_state, attribute_val_in, attribute_val_out",
                              "logical :: flag")
        lines += callback(f"MPI_{kind}_NULL_DELETE_FN", f"{own}, {key}, attribute_val, extra_state, ierror",
                          f"type(MPI_{handle}) :: {own}", f"integer :: {key}, ierror",
                          "integer(MPI_ADDRESS_KIND) :: attribute_val, extra_state")
    for suffix, count in (("", "integer"), ("_C", "integer(MPI_COUNT_KIND)")):
        lines += callback(f"MPI_CONVERSION_FN_NULL{suffix}",
                          "userbuf, datatype, count, filebuf, position, extra_state, ierror",
                          "type(c_ptr), value :: userbuf, filebuf", "type(MPI_Datatype) :: datatype",
                          f"{count} :: count", "integer(MPI_OFFSET_KIND) :: position",
                          "integer(MPI_ADDRESS_KIND) :: extra_state", "integer :: ierror")
    return lines + ["  end interface"]


def new_module(standard):
    lines = [HEAD.format(what="The module mpi_f08"), "module mpi_f08",
             "  use, intrinsic :: iso_c_binding, only: c_ptr, c_int, c_char", "  use mpi_abi_types",
             "  implicit none", "  public", "  private :: c_ptr, c_int, c_char",
             "  logical, parameter :: MPI_SUBARRAYS_SUPPORTED = .true.",
             "  logical, parameter :: MPI_ASYNC_PROTECTS_NONBLOCKING = .true."]
    for name, c_type, value in constants(standard):
        if c_type in HANDLES:
            lines.append(f"  type({c_type}), parameter :: {name} = {c_type}({value})")
        else:
            made = "integer(MPI_OFFSET_KIND)" if c_type == "MPI_Offset" else "integer"
            lines.append(f"  {made}, parameter :: {name} = {value}")
    for name, (block, made, shape) in SENTINELS.items():
        if "STATUS" in name:
            made, shape = "type(MPI_Status)", "(1)" if "STATUSES" in name else ""
        elif made == "integer":
            made = "integer(c_int)"
        else:
            made = "character(kind=c_char)"
        lines.append(f'  {made}, bind(C, name="{block}_") :: {name}{shape}')
    lines += callbacks() + predefined_functions()
    for prefix in ("", "P"):
        for procedure in fortran.procedures(standard):
            if not standard.is_large_count_form(procedure.name):
                lines += f08_interface(standard, procedure, prefix)
        for name in sorted(fortran.NAMED_LARGE_COUNT_FORMS):
            lines += f08_interface(standard, standard.procedures[name], prefix)
        lines += [f"  interface {prefix}MPI_F_sync_reg",
                  f'    subroutine {prefix}MPI_F_sync_reg_f08ts(buf) '
                  f'bind(C, name="{prefix.lower()}mpi_f_sync_reg_f08ts_")',
                  "      type(*), dimension(..), asynchronous :: buf", "    end subroutine",
                  "  end interface"]
    return "\n".join(lines + ["end module", ""])


def files(standard):
    folder = "include/fortran"
    return {
        "include/mpif.h": lambda: mpif_h(standard),
        f"{folder}/mpi_abi_types.f90": types,
        f"{folder}/mpi.f90": lambda: old_module(standard),
        f"{folder}/mpi_f08.f90": lambda: new_module(standard),
    }
