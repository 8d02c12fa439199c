"""How an entry point treats each parameter: what it checks, and what it hands to the core.

The rules go by the standard's parameter kind. `core_parameters` gives the core function's
parameter list, one for a procedure and its large-count form; entries.py writes the checks.
"""

from standard import spaced

# Handle kinds passed as objects: kind -> C++ type of the object.
OBJECTS = {
    "COMMUNICATOR": "comm::Communicator",
    "GROUP": "comm::Group",
    "INFO": "comm::Info",
    "ERRHANDLER": "comm::ErrorHandler",
    "DATATYPE": "const datatype::Datatype",
    "OPERATION": "coll::Op",
    "REQUEST": "message::Request",
    "SESSION": "comm::Session",
    "WINDOW": "rma::Window",
    "FILE": "io::File",
}

# Procedures that take MPI_REQUEST_NULL: the core gets a null Request.
NULL_REQUEST = {"MPI_Wait", "MPI_Test", "MPI_Request_get_status", "MPI_Parrived"}

# Procedures whose core decides whether the handle becomes MPI_REQUEST_NULL: it also gets its place.
CLEARED_REQUEST = {"MPI_Wait", "MPI_Test"}


# Handles that have a meaning at one process only: the core looks at them.
SIGNIFICANT_SOMEWHERE = {"peer_comm", "remote_group"}


def needs_info(procedure):
    """Whether MPI_INFO_NULL is refused; other calls take it for "no hints"."""
    return procedure.name.startswith("MPI_Info_") or procedure.name.endswith(
        ("_set_info", "_set_fortran_info"))


# Calls that also take a null handle, which has a name or handler of its own: the core gets a null pointer.
NAMES_NULL = {("MPI_Comm_get_name", "COMMUNICATOR"), ("MPI_Type_get_name", "DATATYPE"),
              ("MPI_Win_get_name", "WINDOW"), ("MPI_File_set_errhandler", "FILE"),
              ("MPI_File_get_errhandler", "FILE"), ("MPI_File_call_errhandler", "FILE")}


def takes_null(procedure, parameter):
    """Whether an argument (of a kind in OBJECTS, no request) may be a null handle."""
    if parameter.kind == "INFO":
        return not needs_info(procedure)
    return (procedure.name, parameter.kind) in NAMES_NULL


def is_varied(small, large):
    """Whether a parameter differs between a procedure and its large-count form."""
    return large is not None and small.c_type != large.c_type


def is_object(parameter):
    """Whether the core gets the object of a handle: passed by value, or by pointer to change it."""
    return (
        parameter.kind in OBJECTS
        and parameter.direction != "out"
        and not parameter.is_array
        and parameter.kind != "REQUEST"
        and parameter.name not in SIGNIFICANT_SOMEWHERE
        and not (parameter.root_only and parameter.kind == "INFO")
    )


def is_request(parameter):
    return parameter.kind == "REQUEST" and parameter.direction != "out" and not parameter.is_array


def core_declarations(procedure, parameter, large):
    """The core's parameters for one of the procedure's: none, one or two declarations."""
    name = parameter.name
    if name == "...":
        return []
    if is_varied(parameter, large):
        if parameter.kind == "POLYFUNCTION":
            return [parameter.declaration, f"{spaced(large.c_type)}{name}_c"]
        if parameter.is_array:
            return [f"CountArray {name}"]
        if parameter.is_pointer:
            return [f"MPI_Count& {name}"]
        return [f"MPI_Count {name}"]
    if is_request(parameter):
        null = "*" if procedure.name in NULL_REQUEST else "&"
        objects = [f"message::Request{null} {name}"]
        if procedure.name in CLEARED_REQUEST:
            objects.append(f"MPI_Request* {name}_handle")
        return objects
    if is_object(parameter):
        reference = "*" if takes_null(procedure, parameter) else "&"
        return [f"{OBJECTS[parameter.kind]}{reference} {name}"]
    return [parameter.declaration.replace(" *", "* ").replace("* *", "**")]


def first_parameter(entry):
    """What the core gets before the procedure's own parameters."""
    if entry.notes & {"free", "value"}:
        return ""
    return "Process& process" if "anytime" in entry.notes else "Context& context"


def core_prototype(standard, entry, procedure):
    """Result and parameters of the core function of a procedure."""
    large = standard.large_count_form(procedure.name)
    same_shape = large is not None and len(large.parameters) == len(procedure.parameters)
    declarations = [c for c in [first_parameter(entry)] if c]
    for index, parameter in enumerate(procedure.parameters):
        twin = large.parameters[index] if same_shape else None
        declarations += core_declarations(procedure, parameter, twin)
    result = procedure.returns if "value" in entry.notes else "Error"
    return f"{result} {entry.core}({', '.join(declarations)});"
