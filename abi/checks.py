"""The argument checks of an entry point: which parameter, what is refused, with which class.

Every check is described once, here. entries.py writes it as code of the library, check_tests.py
writes for each the calls that must fail.
"""

from dataclasses import dataclass

import parameters

ANY_TAG_PROCEDURES = {"Recv", "Irecv", "Recv_init", "Probe", "Iprobe", "Mprobe", "Improbe",
                      "Status_set_tag"}

# Kinds whose values are counts of elements, or lengths, and not negative.
COUNT_KINDS = {
    "POLYXFER_NUM_ELEM_NNI",
    "POLYDTYPE_NUM_ELEM_NNI",
    "XFER_NUM_ELEM_NNI",
    "POLYXFER_NUM_ELEM",
}
LENGTH_KINDS = {"POLYNUM_BYTES_NNI", "ARRAY_LENGTH_NNI", "POLYNUM_BYTES"}

# Result parameters that may be null.
OPTIONAL_KINDS = {"BUFFER", "LOGICAL_OPTIONAL", "ARGUMENT_COUNT", "ARGUMENT_LIST", "WEIGHT"}

ERROR_CLASSES = {
    "COMMUNICATOR": "MPI_ERR_COMM",
    "GROUP": "MPI_ERR_GROUP",
    "INFO": "MPI_ERR_INFO",
    "ERRHANDLER": "MPI_ERR_ERRHANDLER",
    "DATATYPE": "MPI_ERR_TYPE",
    "OPERATION": "MPI_ERR_OP",
    "REQUEST": "MPI_ERR_REQUEST",
    "SESSION": "MPI_ERR_SESSION",
    "MESSAGE": "MPI_ERR_REQUEST",
    "WINDOW": "MPI_ERR_WIN",
    "FILE": "MPI_ERR_FILE",
}

# Calls that make an object with the error handler that they are given, and which is also told of their
# own failures.
HANDLER_OF_NEW = {"MPI_Session_init", "MPI_Comm_create_from_group", "MPI_Intercomm_create_from_groups"}

# Kinds of arguments that the core checks where they mean something, at the root.
ROOTS_KINDS = {"STRING", "STRING_ARRAY", "STRING_2DARRAY", "COMM_SIZE", "INFO"}

# Results that are not touched when the length beside them is 0.
MAY_BE_NULL = {("Info_get_string", "value"), ("Session_get_nth_pset", "pset_name")}


@dataclass
class Check:
    parameter: object
    rule: str  # object, object_or_null, committed, count, length, destination, source, root, tag, …
    expression: str  # C++, true when the argument is accepted
    error_class: str
    condition: str = ""  # C++, the check is made only if true


def base_name(name):
    name = name.removeprefix("MPI_")
    return name.removesuffix("_c")


def object_name(parameter):
    return f"{parameter.name}_"


def handle_of(parameter):
    """The handle in an argument that is passed by value or by pointer."""
    return f"*{parameter.name}" if parameter.is_pointer else parameter.name


def communicators(procedure):
    return [p for p in procedure.parameters if p.kind == "COMMUNICATOR" and p.direction != "out"]


def window_of(procedure):
    """The window whose memory a call is about, which its failures belong to; None: there is none."""
    windows = [p for p in procedure.parameters if p.kind == "WINDOW" and p.direction != "out"]
    return windows[0] if windows else None


def of_files(procedure):
    """Whether a call's failures belong to its file, or to MPI_FILE_NULL if it has none."""
    return procedure.name.startswith("MPI_File_") or base_name(procedure.name) == "Register_datarep"


def file_of(procedure):
    """The file that a call is about; None: there is none yet."""
    files = [p for p in procedure.parameters if p.kind == "FILE" and p.direction != "out"]
    return files[0] if files else None


def told_to_others(procedure):
    """C++: the collective call on a file (io::File::Call) whose other ranks wait for one that has failed its
    checks; None: there is none, or nobody waits."""
    base = base_name(procedure.name)
    if base == "File_set_view":
        return "set_view"
    if not base.startswith(("File_read", "File_write")) or base.endswith("_end"):
        return None
    if "_ordered" in base:
        return "ordered_access"
    return "access" if "_all" in base else None


def refused_at_all(procedure):
    """C++: the member of Entry that tells the other ranks of a communicator that a collective call, which makes
    something of it, has failed its checks; None: nobody waits."""
    base = base_name(procedure.name)
    if base == "File_open":
        return "refuse_open"
    makes_window = ("Win_create", "Win_create_dynamic", "Win_allocate", "Win_allocate_shared")
    return "refuse_window" if base in makes_window else None


def ignores_origin(procedure, parameter):
    """Whether MPI_NO_OP makes an argument meaningless (MPI 5.0, 12.3.4)."""
    names = {p.name for p in procedure.parameters}
    return parameter.name.startswith("origin_") and {"op", "result_addr"} <= names


def follower(procedure, parameter, kinds):
    """The next parameter of one of the kinds."""
    index = procedure.parameters.index(parameter)
    for later in procedure.parameters[index + 1 :]:
        if later.kind in kinds:
            return later
    return None


def object_check(procedure, parameter, first_communicator):
    """Finds the object of a handle argument."""
    name, kind = parameter.name, parameter.kind
    error_class = ERROR_CLASSES[kind]
    finder = "find"
    rule = "object"
    alternative = ""
    if kind == "COMMUNICATOR" and parameter is not first_communicator:
        finder = "find_other"
    if parameters.takes_null(procedure, parameter):
        finder, rule = "find_or_null", "object_or_null"
    if kind == "REQUEST" and procedure.name in parameters.NULL_REQUEST:
        finder, rule = "find_or_null", "object_or_null"
    if kind == "DATATYPE" and needs_commit(procedure):
        finder, rule = "find_committed", "committed"
    peers = [p.name for p in procedure.parameters if p.name in ("dest", "source")]
    if kind == "DATATYPE" and len(peers) == 1:
        count = next(p.name for p in procedure.parameters if p.kind in COUNT_KINDS)
        alternative = f" || entry.of_nothing({peers[0]}, {count}, {name}, {object_name(parameter)})"
    if kind == "ERRHANDLER" and procedure.name in HANDLER_OF_NEW:
        finder = "find_for_new"
    expression = f'entry.{finder}("{name}", {handle_of(parameter)}, {object_name(parameter)})'
    if ignores_origin(procedure, parameter):
        alternative = f" || entry.of_no_op(op, {object_name(parameter)})"
    if parameter.is_pointer:
        expression = f'entry.not_null("{name}", {name}) && {expression}'
    if alternative:
        expression = f"({expression}{alternative})"
    return Check(parameter, rule, expression, error_class)


def needs_commit(procedure):
    """Whether datatypes of a call are used for communication or packing, not just for making others."""
    base = base_name(procedure.name)
    if window_of(procedure) is not None:
        return True
    return not (
        base in {"File_get_type_extent"}
        or base.startswith("Type_")
        or base.startswith("Status_")
        or base.startswith("Get_")
        or base in {"Pack_size", "Pack_external_size"}
    )


def number_check(procedure, parameter, communicator):
    name, kind = parameter.name, parameter.kind
    if parameter.direction != "in" or parameter.is_array or parameter.is_pointer:
        return None
    if kind in COUNT_KINDS and ignores_origin(procedure, parameter):
        expression = f'(op == MPI_NO_OP || entry.count("{name}", {name}))'
        return Check(parameter, "count", expression, "MPI_ERR_COUNT")
    if kind in COUNT_KINDS:
        return Check(parameter, "count", f'entry.count("{name}", {name})', "MPI_ERR_COUNT")
    if kind == "ARRAY_LENGTH_NNI" and follower(procedure, parameter, {"REQUEST"}):
        return Check(parameter, "count", f'entry.count("{name}", {name})', "MPI_ERR_COUNT")
    if kind in LENGTH_KINDS:
        return Check(parameter, "length", f'entry.length("{name}", {name})', "MPI_ERR_ARG")
    if kind == "RANK" and communicator is not None:
        rule = {"dest": "destination", "source": "source", "root": "root"}.get(name)
        if rule is not None:
            error_class = "MPI_ERR_ROOT" if rule == "root" else "MPI_ERR_RANK"
            expression = f'entry.{rule}("{name}", {name}, {object_name(communicator)})'
            return Check(parameter, rule, expression, error_class)
    if kind == "RANK_NNI" and window_of(procedure) is not None:
        expression = f'entry.target("{name}", {name}, {object_name(window_of(procedure))})'
        return Check(parameter, "target", expression, "MPI_ERR_RANK")
    if kind == "TAG":
        wild = name == "recvtag" or base_name(procedure.name) in ANY_TAG_PROCEDURES
        wildcard = "allowed" if wild else "refused"
        expression = f'entry.tag("{name}", {name}, Wildcard::{wildcard})'
        return Check(parameter, "any_tag" if wild else "tag", expression, "MPI_ERR_TAG")
    return None


def may_be_in_place(procedure, parameter):
    """The contribution to a collective operation. (Where that has no meaning, away from the root,
    abi/collectives.py says so.)"""
    names = {p.name for p in procedure.parameters}
    return parameter.name == "sendbuf" and "dest" not in names


def memory_check(procedure, parameter):
    name, kind = parameter.name, parameter.kind
    if kind == "BUFFER":
        count = follower(procedure, parameter, COUNT_KINDS)
        datatype = follower(procedure, parameter, {"DATATYPE"})
        if count is None or datatype is None or count.is_array or datatype.is_array:
            return None
        expression = f'entry.buffer("{name}", {name}, {count.name}, {object_name(datatype)})'
        if may_be_in_place(procedure, parameter):
            expression = f"({name} == MPI_IN_PLACE || {expression})"
        if ignores_origin(procedure, parameter):
            expression = f"(op == MPI_NO_OP || {expression})"
        return Check(parameter, "buffer", expression, "MPI_ERR_BUFFER")
    if kind in OPTIONAL_KINDS or parameter.name == "...":
        return None
    if (base_name(procedure.name), name) in MAY_BE_NULL:
        return None
    if parameter.root_only and kind in ROOTS_KINDS:
        return None
    if kind == "STATUS" and parameter.direction == "out":
        return None  # MPI_STATUS_IGNORE
    lengths = {p.name for p in procedure.parameters}
    if parameter.is_array:
        if parameter.length in lengths:
            expression = f'entry.array("{name}", {name}, {parameter.length})'
            return Check(parameter, "array", expression, "MPI_ERR_ARG")
        return None
    if kind == "MESSAGE" and parameter.direction == "inout":
        expression = f'entry.not_null("{name}", {name}) && entry.message("{name}", *{name})'
        return Check(parameter, "message", expression, "MPI_ERR_REQUEST")
    pointer = parameter.is_pointer and kind not in {"FUNCTION", "POLYFUNCTION"}
    if pointer and (parameter.direction in {"out", "inout"} or kind == "STRING" or kind == "STATUS"):
        if kind in {"EXTRA_STATE", "ATTRIBUTE_VAL"} and parameter.direction == "in":
            return None
        if parameter.length and parameter.length in lengths:
            return None  # a result of a length that may be 0
        return Check(parameter, "pointer", f'entry.not_null("{name}", {name})', "MPI_ERR_ARG")
    return None


def checks_of(procedure):
    """All checks of a procedure outside the collectives, in the order in which they are made."""
    comms = communicators(procedure)
    first = comms[0] if comms else None
    belongs_to = window_of(procedure) or first
    if of_files(procedure):
        belongs_to = file_of(procedure)
    found, memory, made = [], [], []
    for parameter in procedure.parameters:
        if parameters.is_object(parameter) or parameters.is_request(parameter):
            check = object_check(procedure, parameter, first)
            # What later failures belong to comes first.
            (made if parameter is belongs_to or "for_new" in check.expression else found).append(check)
            continue
        number = number_check(procedure, parameter, first)
        if number is not None:
            found.append(number)
        check = memory_check(procedure, parameter)
        if check is not None:
            memory.append(check)
    return made + found + memory
