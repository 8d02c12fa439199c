"""How Fortran declares the parameters of the standard's procedures, in mpif.h's terms (the module mpi)
and in those of the module mpi_f08."""

import foreign

# A procedure's dialect: OLD is mpif.h and the module mpi, NEW the module mpi_f08.
OLD, NEW = "mpi", "mpi_f08"

INTEGERS = {
    "int": "integer",
    "MPI_Aint": "integer(MPI_ADDRESS_KIND)",
    "MPI_Count": "integer(MPI_COUNT_KIND)",
    "MPI_Offset": "integer(MPI_OFFSET_KIND)",
}
# Kinds with the same number of bytes: overloads that differ in such only would be ambiguous.
BYTES = {"integer": 4}

CHOICE_KINDS = ("BUFFER",)
# Results that are addresses: of memory that the library made, and of buffers that it had.
POINTER_KINDS = ("C_BUFFER", "C_BUFFER2")
HELD_AS_ADDRESS = ("EXTRA_STATE", "ATTRIBUTE_VAL")
DEFAULT_SIZE = ("EXTRA_STATE2", "ATTRIBUTE_VAL_10")

# Fortran has no procedures for these: the tool information interface, handles of C, and what only a
# Fortran library itself says to the C library.
LACKS = {"MPI_Abi_get_fortran_info", "MPI_Abi_set_fortran_info", "MPI_Abi_get_fortran_booleans",
         "MPI_Abi_set_fortran_booleans"}

# Large-count forms that no argument tells from the others: they have names of their own.
NAMED_LARGE_COUNT_FORMS = {"MPI_Op_create_c", "MPI_Register_datarep_c"}

# Types of functions of MPI 1, of INTEGERs.
OLD_FUNCTIONS = {"MPI_Copy_function", "MPI_Delete_function"}

# Procedures that are functions, and the types of their results. (Options of compilers change the size of double
# precision, and mpif.h is compiled with those of the program.)
FUNCTIONS = {
    "MPI_Wtime": "real(8)",
    "MPI_Wtick": "real(8)",
    "MPI_Aint_add": "integer(MPI_ADDRESS_KIND)",
    "MPI_Aint_diff": "integer(MPI_ADDRESS_KIND)",
}

# Parameters of C that Fortran doesn't have.
WITHOUT = {"MPI_Init": "all", "MPI_Init_thread": ("argc", "argv"), "MPI_Info_create_env": ("argc", "argv")}


def procedures(standard):
    """The procedures that Fortran has, with their parameters in Fortran."""
    for procedure in standard.procedures.values():
        name = procedure.name
        if not (name in LACKS or name.startswith("MPI_T_") or name.endswith(("_toint", "_fromint"))):
            yield procedure


def parameters(procedure):
    left_out = WITHOUT.get(procedure.name, ())
    if left_out == "all":
        return []
    return [p for p in foreign.parameters(procedure) if p.name not in (*left_out, "...")]


def has_choice(procedure):
    return any(p.kind in CHOICE_KINDS for p in procedure.parameters)


def is_nonblocking(procedure):
    """Whether the buffers are still in use when the procedure returns."""
    kinds = [(p.kind, p.direction) for p in procedure.parameters]
    name = procedure.name.removesuffix("_c")
    return (("REQUEST", "out") in kinds or ("WINDOW", "in") in kinds
            or name.endswith(("_begin", "_end", "attach", "attach_buffer", "Win_create", "Win_detach"))
            or name in ("MPI_Get_address", "MPI_Free_mem"))


def basic_c_type(parameter):
    return parameter.c_type.split("[")[0].replace("const", "").replace("*", "").strip()


def type_name(parameter, dialect, procedure_name=""):
    """The Fortran type of a parameter that is neither a choice buffer nor a procedure."""
    kind = parameter.kind
    if kind in foreign.HANDLES:
        return f"type(MPI_{foreign.HANDLES[kind]})" if dialect == NEW else "integer"
    if kind == "STATUS":
        return "type(MPI_Status)" if dialect == NEW else "integer"
    if kind in ("LOGICAL", "LOGICAL_OPTIONAL"):
        return "logical"
    if kind in ("STRING", "STRING_ARRAY", "STRING_2DARRAY", "ARGUMENT_LIST"):
        return "character(len=*)"
    if kind in POINTER_KINDS:
        return "type(c_ptr)" if dialect == NEW else "integer(MPI_ADDRESS_KIND)"
    if kind in HELD_AS_ADDRESS:
        return "integer(MPI_ADDRESS_KIND)"
    if kind in DEFAULT_SIZE:
        return "integer"
    return INTEGERS[basic_c_type(parameter)]


def shape(parameter, procedure, dialect):
    name, kind = parameter.name, parameter.kind
    if kind == "STATUS":
        many = "statuses" in name
        if dialect == NEW:
            return "(*)" if many else ""
        return "(MPI_STATUS_SIZE,*)" if many else "(MPI_STATUS_SIZE)"
    if kind == "STRING_2DARRAY":
        return f"({parameter.length},*)"
    if kind == "STRING":
        return ""
    if "[3]" in parameter.c_type:
        return "(3,*)"
    return "(*)" if parameter.is_array or kind == "STRING_ARRAY" else ""


def intent(parameter):
    """The attribute that says who sets an argument; none where a constant's address may stand."""
    if parameter.kind == "STATUS":
        return {"in": ", intent(in)", "inout": ", intent(inout)"}.get(parameter.direction, "")
    if parameter.kind == "ERROR_CODE" and parameter.is_array:
        return ""
    if parameter.kind == "WEIGHT" and parameter.direction == "out":
        return ""
    if parameter.is_array and parameter.kind in foreign.HANDLES and parameter.direction == "inout":
        return ", intent(inout)"
    if parameter.kind in foreign.HANDLES and parameter.is_pointer and not parameter.is_array \
            and parameter.direction == "in":
        return ", intent(inout)"
    if parameter.name == "indx" and parameter.c_type == "int[]":
        return ", intent(out)"
    # The data have no direction for what only tools' procedures or old ones take.
    return f", intent({parameter.direction or 'in'})"


def procedure_type(parameter):
    return parameter.c_type.replace("*", "").strip()
