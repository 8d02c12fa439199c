"""Writes the bodies of interfaces for Fortran's modules: one for each procedure."""

import fortran
from fortran import NEW, OLD

# What tells the compiler not to compare the type and shape of a choice buffer in the module mpi.
IGNORE = ("!GCC$ ATTRIBUTES NO_ARG_CHECK :: {0}", "!DIR$ IGNORE_TKR {0}", "!DEC$ ATTRIBUTES NO_ARG_CHECK :: {0}")

# In mpif.h's form the result of these is an address; the module mpi also takes a TYPE(C_PTR).
OF_POINTERS = "MPI_Alloc_mem MPI_Win_allocate MPI_Win_allocate_shared MPI_Win_shared_query".split()


def choice(parameter, procedure, dialect):
    name = parameter.name
    given = ", intent(in)" if parameter.c_type.startswith("const") else ""
    waits = ", asynchronous" if fortran.is_nonblocking(procedure) else ""
    if dialect == NEW:
        return [f"type(*), dimension(..){given}{waits} :: {name}"]
    return [line.format(name) for line in IGNORE] + [f"type(*), dimension(*) :: {name}"]


def declarations(procedure, dialect, pointers=False):
    """The lines that declare a procedure's arguments, of which `pointers` are TYPE(C_PTR)."""
    lines = []
    listed = fortran.parameters(procedure)
    # Lengths come before the arrays whose declarations name them.
    for parameter in sorted(listed, key=lambda p: p.kind == "STRING_2DARRAY"):
        name = parameter.name
        if parameter.kind in fortran.CHOICE_KINDS:
            lines += choice(parameter, procedure, dialect)
        elif parameter.kind == "C_BUFFER2" and dialect == OLD:
            lines += choice(parameter, procedure, dialect)
        elif parameter.kind in ("FUNCTION", "POLYFUNCTION"):
            # (Programs pass functions of both forms to the procedures of MPI 1.)
            known = dialect == NEW and fortran.procedure_type(parameter) not in fortran.OLD_FUNCTIONS
            lines.append(f"procedure({fortran.procedure_type(parameter)}) :: {name}"
                         if known else f"external :: {name}")
        else:
            made = fortran.type_name(parameter, dialect)
            if pointers and parameter.kind == "C_BUFFER":
                made = "type(c_ptr)"
            waits = ""
            if dialect == NEW and parameter.is_array and fortran.is_nonblocking(procedure) \
                    and parameter.direction == "in":
                waits = ", asynchronous"
            lines.append(f"{made}{fortran.intent(parameter)}{waits} :: "
                         f"{name}{fortran.shape(parameter, procedure, dialect)}")
    return lines


def wrapped(line, indent):
    """A line of source cut into continued ones, which some compilers limit to 132 columns."""
    pieces, rest = [], line
    while len(rest) + indent > 120:
        cut = rest.rfind(",", 0, 120 - indent) + 1
        pieces.append(" " * indent + rest[:cut] + " &")
        rest = "    " + rest[cut:].lstrip()
    return pieces + [" " * indent + rest]


def body(procedure, dialect, specific, pointers=False, bind=None):
    """The interface body of a specific procedure."""
    names = [p.name for p in fortran.parameters(procedure)]
    result = fortran.FUNCTIONS.get(procedure.name)
    if not result:
        names.append("ierror")
    form = "function" if result else "subroutine"
    binding = f' bind(C, name="{bind}")' if bind else ""
    lines = wrapped(f"{form} {specific}({', '.join(names)}){binding}", 4)
    lines.append("      import")
    for line in declarations(procedure, dialect, pointers):
        lines += [line] if line.startswith("!") else wrapped(line, 6)
    if result:
        lines.append(f"      {result} :: {specific}")
    else:
        optional = ", optional" if dialect == NEW else ""
        lines.append(f"      integer{optional}, intent(out) :: ierror")
    return lines + [f"    end {form}"]


def signature(procedure):
    """What tells overloads apart: the number of arguments, and the types and bytes of integers."""
    found = []
    for parameter in fortran.parameters(procedure):
        if parameter.kind in fortran.CHOICE_KINDS or "FUNCTION" in parameter.kind:
            found.append("any")
            continue
        made = fortran.type_name(parameter, NEW)
        found.append("integer(8)" if made.startswith("integer(") else made)
    return found


def specific_name(procedure):
    """The name of a procedure of the module mpi_f08 (MPI 5.0, 19.1.5)."""
    return procedure.name + ("_f08ts" if fortran.has_choice(procedure) else "_f08")


def f08_specific(procedure, prefix):
    specific = prefix + specific_name(procedure)
    bind = None
    if fortran.has_choice(procedure):
        bind = specific.lower() + "_"
    elif any(p.kind == "C_BUFFER2" for p in procedure.parameters):
        bind = f"{prefix}{procedure.name}_cptr_".lower()
    return body(procedure, NEW, specific, bind=bind)


def f08_interface(standard, procedure, prefix):
    """A generic interface: the procedure, and its large-count form if arguments tell it apart."""
    lines = [f"  interface {prefix}{procedure.name}"] + f08_specific(procedure, prefix)
    large = standard.large_count_form(procedure.name)
    if large is not None and large.name not in fortran.NAMED_LARGE_COUNT_FORMS \
            and signature(large) != signature(procedure):
        lines += f08_specific(large, prefix)
    return lines + ["  end interface"]


def old_interface(procedure, prefix):
    name = prefix + procedure.name
    if procedure.name in OF_POINTERS:
        return ([f"  interface {name}"] + body(procedure, OLD, name)
                + body(procedure, OLD, f"{name}_cptr", pointers=True) + ["  end interface"])
    return ["  interface"] + body(procedure, OLD, name) + ["  end interface"]
