"""Calls that must fail, for the test of the generated argument checks (tests/checks/).

For each check of each implemented procedure, a call in which one argument is wrong and all others are
right; with the error class of the standard, and whether the failure belongs to the communicator or error handler
among the arguments or to MPI_COMM_SELF. The test supplies what the calls name: `good`, `freed`, ….
"""

import checks
import collectives
import parameters

# What a handle can be wrong with: C++ expression of the handle -> words.
INVENTED = "invented<{type}>()"
NULL_HANDLES = {
    "COMMUNICATOR": "MPI_COMM_NULL",
    "GROUP": "MPI_GROUP_NULL",
    "INFO": "MPI_INFO_NULL",
    "ERRHANDLER": "MPI_ERRHANDLER_NULL",
    "DATATYPE": "MPI_DATATYPE_NULL",
    "OPERATION": "MPI_OP_NULL",
    "REQUEST": "MPI_REQUEST_NULL",
    "MESSAGE": "MPI_MESSAGE_NULL",
    "SESSION": "MPI_SESSION_NULL",
    "WINDOW": "MPI_WIN_NULL",
    "FILE": "MPI_FILE_NULL",
}
HANDLE_NAMES = {
    "COMMUNICATOR": "comm",
    "GROUP": "group",
    "INFO": "info",
    "ERRHANDLER": "errhandler",
    "DATATYPE": "datatype",
    "OPERATION": "op",
    "REQUEST": "request",
    "MESSAGE": "message",
    "SESSION": "session",
    "WINDOW": "win",
    "FILE": "file",
}

# Wrong values of numbers, by rule.
NUMBERS = {
    "count": ["-1", "INT_MIN"],
    "length": ["-1"],
    "destination": ["good.size", "-1", "MPI_ROOT", "INT_MAX", "INT_MIN"],
    "source": ["good.size", "MPI_ROOT", "INT_MAX", "INT_MIN"],
    "root": ["good.size", "-1", "MPI_PROC_NULL", "MPI_ROOT", "INT_MAX"],
    "target": ["good.size", "MPI_ROOT", "MPI_ANY_SOURCE", "INT_MAX", "INT_MIN"],
    "tag": ["-1", "MPI_ANY_TAG", "INT_MIN"],
    "any_tag": ["-1", "-3", "INT_MIN"],
}


def handle_type(parameter):
    return parameter.c_type.removeprefix("const ").rstrip("*[] ")


def wrong_handles(check):
    kind = check.parameter.kind
    values = [f"freed.{HANDLE_NAMES[kind]}", INVENTED.format(type=handle_type(check.parameter))]
    if check.rule != "object_or_null":
        values.insert(0, NULL_HANDLES[kind])
    if check.rule == "committed":
        values.append("uncommitted")
    return values


def good_argument(procedure, parameter):
    """An argument that every check accepts."""
    kind, c_type = parameter.kind, parameter.c_type
    if kind in HANDLE_NAMES and parameter.direction != "out" and kind != "MESSAGE":
        if parameter.is_array:
            return f"good.{HANDLE_NAMES[kind]}s"
        value = f"good.{HANDLE_NAMES[kind]}"
        if kind == "ERRHANDLER" and procedure.name in checks.HANDLER_OF_NEW:
            value = "good.session_handler" if "Session" in procedure.name else "good.comm_handler"
        return f"&{value}" if parameter.is_pointer else value
    if kind == "MESSAGE" and parameter.is_pointer:
        return "&good.message"
    if kind == "BUFFER":
        return "good.buffer" if parameter.name.startswith(("send", "inbuf")) else "good.other_buffer"
    if kind == "STRING" and parameter.direction == "in":
        return "good.text"
    if parameter.is_array or parameter.is_pointer:
        base = c_type.removeprefix("const ")
        if parameter.is_array:
            base = base.split("[", 1)
            dimensions = base[1].count("[")
            element = base[0].strip()
            return f"good.array<{element}[3]>()" if dimensions else f"good.array<{element}>()"
        if base == "void *":
            return "good.place"
        return f"good.array<{base[:-1].strip()}>()"
    if kind in ("RANK", "RANK_NNI"):
        return "0"
    if kind == "TAG":
        return "7"
    if not c_type.startswith("MPI_") or c_type in ("MPI_Count", "MPI_Aint", "MPI_Offset"):
        return "1"
    return f"{c_type}()"


class Row:
    def __init__(self, procedure, parameter, value, error_class, overrides=None):
        self.procedure = procedure
        self.parameter = parameter
        self.value = value
        self.error_class = error_class
        self.overrides = overrides or {}

    def text(self):
        arguments = []
        for parameter in self.procedure.parameters:
            if parameter is self.parameter:
                arguments.append(self.value)
            else:
                arguments.append(
                    self.overrides.get(parameter.name) or good_argument(self.procedure, parameter)
                )
        call = f"{self.procedure.name}({', '.join(arguments)})"
        comms = checks.communicators(self.procedure)
        on = "self"
        window = checks.window_of(self.procedure)
        if checks.of_files(self.procedure):
            file = checks.file_of(self.procedure)
            on = "null_file" if file is None or self.parameter is file else "file"
        elif window is not None and self.parameter is not window:
            on = "window"
        elif comms and self.parameter is not comms[0]:
            on = "communicator"
        elif self.procedure.name in checks.HANDLER_OF_NEW and self.parameter.kind != "ERRHANDLER":
            on = "handler"
        said = self.value.replace('"', "'")
        return (
            f'    {{"{self.procedure.name}", "{self.parameter.name} = {said}", {self.error_class}, '
            f"On::{on}, [] {{ return {call}; }}}},"
        )


def by_pointer(parameter, value):
    return f"place({value})" if parameter.is_pointer else value


def rows_of_check(procedure, check):
    parameter, rule = check.parameter, check.rule
    rows = []
    if rule in ("object", "object_or_null", "committed"):
        for value in wrong_handles(check):
            rows.append(Row(procedure, parameter, by_pointer(parameter, value), check.error_class))
        if parameter.is_pointer:
            rows.append(Row(procedure, parameter, "nullptr", "MPI_ERR_ARG"))
    elif rule in NUMBERS:
        for value in NUMBERS[rule]:
            rows.append(Row(procedure, parameter, value, check.error_class))
    elif rule == "message":
        for value in ("MPI_MESSAGE_NULL", INVENTED.format(type="MPI_Message")):
            rows.append(Row(procedure, parameter, f"place({value})", check.error_class))
        rows.append(Row(procedure, parameter, "nullptr", "MPI_ERR_ARG"))
    elif rule in ("buffer", "pointer", "array"):
        rows.append(Row(procedure, parameter, "nullptr", check.error_class))
        if rule == "buffer" and not checks.may_be_in_place(procedure, parameter):
            rows.append(Row(procedure, parameter, "MPI_IN_PLACE", check.error_class))
    return rows


def rows_of_requests(procedure):
    """Arrays of requests: the core finds the wrong element."""
    rows = []
    for parameter in procedure.parameters:
        if parameter.kind == "REQUEST" and parameter.is_array:
            for value in ("freed.request", "invented<MPI_Request>()"):
                rows.append(Row(procedure, parameter, f"requests_with({value})", "MPI_ERR_REQUEST"))
            if procedure.name == "MPI_Startall":
                rows.append(
                    Row(procedure, parameter, "requests_with(MPI_REQUEST_NULL)", "MPI_ERR_REQUEST"))
    return rows


def rows_of_side(procedure, side):
    rows = []
    # The other side may be the one that MPI_IN_PLACE stands for.
    if collectives.of_neighbours(procedure):
        rows.append(Row(procedure, side.buffer, "MPI_IN_PLACE", "MPI_ERR_BUFFER"))
        rows.append(Row(procedure, side.buffer, "good.buffer", "MPI_ERR_TOPOLOGY"))
    elif side.counts.is_array:
        rows.append(Row(procedure, side.counts, "nullptr", "MPI_ERR_ARG"))
        if side.displacements is not None:
            rows.append(Row(procedure, side.displacements, "nullptr", "MPI_ERR_ARG"))
    if not side.counts.is_array:
        for value in NUMBERS["count"]:
            rows.append(Row(procedure, side.counts, value, "MPI_ERR_COUNT"))
    if side.datatype.is_array and not collectives.of_neighbours(procedure):
        rows.append(Row(procedure, side.datatype, "nullptr", "MPI_ERR_ARG"))
    elif not side.datatype.is_array:
        check = checks.Check(side.datatype, "committed", "", "MPI_ERR_TYPE")
        rows += rows_of_check(procedure, check)
        if not side.counts.is_array and not collectives.of_neighbours(procedure):
            rows.append(Row(procedure, side.buffer, "nullptr", "MPI_ERR_BUFFER"))
    return rows


def rows_of(procedure, entry):
    if entry.chapter.endswith("collectives"):
        sides = collectives.sides_of(procedure)
        prepared = collectives.ignored_names(procedure)
        reduction = bool(collectives.reduction_buffers(procedure))
        rows = []
        for check in checks.checks_of(procedure):
            if check.parameter.name not in prepared:
                rows += rows_of_check(procedure, check)
        for side in sides:
            rows += rows_of_side(procedure, side)
        by_name = {p.name: p for p in procedure.parameters}
        one_count = "recvcounts" not in by_name and "sendcounts" not in by_name
        reduces = {"op", "sendbuf", "recvbuf"} <= set(by_name)
        if (reduces or collectives.alias_lines(procedure, sides)) and one_count:
            rows.append(Row(procedure, by_name["recvbuf"], "good.buffer", "MPI_ERR_BUFFER"))
        if reduction:
            rows.append(Row(procedure, by_name["recvbuf"], "MPI_IN_PLACE", "MPI_ERR_BUFFER"))
        return rows
    rows = []
    for check in checks.checks_of(procedure):
        rows += rows_of_check(procedure, check)
    return rows + rows_of_requests(procedure)


PROLOGUE = """// Calls that must fail. Generated by abi/generate.py; included by tests/checks/.
constexpr WrongCall wrong_calls[] = {
"""


def source(standard, entries):
    lines = []
    for name, procedure in standard.procedures.items():
        base = name[:-2] if standard.is_large_count_form(name) else name
        entry = entries.get(base)
        if entry is None or entry.notes & {"value"} or procedure.returns != "int":
            continue
        lines += [row.text() for row in rows_of(procedure, entry)]
    return PROLOGUE + "\n".join(lines) + "\n};\n"
