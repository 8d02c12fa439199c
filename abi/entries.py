"""The entry points: PMPI_X, strong, MPI_X, its weak alias, and own_MPI_X, hidden, of every procedure.

src/mpi/entry/entry.hpp says what the code written here means.
"""

import checks
import collectives
import parameters
from checks import object_name

# Results that an original procedure gives as MPI_UNDEFINED when they don't fit its int.
UNDEFINED_WHEN_LARGE = {"MPI_Get_count", "MPI_Get_elements", "MPI_Type_size"}

# How a collective operation's plan is carried out (src/mpi/entry/schedules.hpp), by the entry's note.
PLAN_RUNNERS = {
    "blocking": "do_steps(entry.context, *comm_, ",
    "nonblocking": "start_steps(entry.context, *comm_, request, ",
    "persistent": "keep_steps(entry.context, *comm_, request, ",
}
NOT_OF_PLANS = {"COMMUNICATOR", "INFO", "REQUEST"}

# Handles that a successful call ends: procedure -> (parameter, null handle).
FREES = {
    "MPI_Comm_free": ("comm", "MPI_COMM_NULL"),
    "MPI_Comm_disconnect": ("comm", "MPI_COMM_NULL"),
    "MPI_Group_free": ("group", "MPI_GROUP_NULL"),
    "MPI_Type_free": ("datatype", "MPI_DATATYPE_NULL"),
    "MPI_Op_free": ("op", "MPI_OP_NULL"),
    "MPI_Info_free": ("info", "MPI_INFO_NULL"),
    "MPI_Errhandler_free": ("errhandler", "MPI_ERRHANDLER_NULL"),
    "MPI_Session_finalize": ("session", "MPI_SESSION_NULL"),
    "MPI_Request_free": ("request", "MPI_REQUEST_NULL"),
    "MPI_Win_free": ("win", "MPI_WIN_NULL"),
    "MPI_File_close": ("fh", "MPI_FILE_NULL"),
}


def signature(procedure):
    return f"{procedure.returns} P{procedure.name}({procedure.prototype})"


def alias(procedure):
    # Parameter names would only repeat the line above. The second is for the table of entry points.
    return (f"{procedure.returns} {procedure.name}({procedure.prototype}) "
            f'__attribute__((weak, alias("P{procedure.name}")));\n'
            f"{procedure.returns} own_{procedure.name}({procedure.prototype}) "
            f'__attribute__((alias("P{procedure.name}"), visibility("hidden")));')


def unsupported_body(procedure):
    name = procedure.name
    comms = checks.communicators(procedure)
    argument = ""
    if comms:
        argument = f", {comms[0].name}" if not comms[0].is_pointer else ""
    call = f"unsupported(calls::{name}{argument})"
    if procedure.returns == "int":
        return [f"    return {call};"]
    # Conversions of handles: no code to return, so the null handle or number.
    return [f"    {call};", f"    return {{}};"]


def core_argument(entry, procedure, parameter, base, large, prepared):
    """Arguments of the core's call for one parameter."""
    name = parameter.name
    if name in prepared:
        return [prepared[name]]
    small, twin = base, large
    if parameters.is_varied(small, twin):
        if parameter.kind == "POLYFUNCTION":
            return [name, "nullptr"] if parameter.c_type == small.c_type else ["nullptr", name]
        if parameter.is_array:
            return [name]
        if parameter.is_pointer:
            return [f"{name}_"] if parameter.c_type == "int *" else [f"*{name}"]
        return [name]
    if parameters.is_request(parameter):
        null = procedure_base_name(procedure) in parameters.NULL_REQUEST
        handle = [name] if procedure_base_name(procedure) in parameters.CLEARED_REQUEST else []
        return [object_name(parameter) if null else f"*{object_name(parameter)}"] + handle
    if parameters.is_object(parameter):
        nullable = parameters.takes_null(procedure, parameter)
        return [object_name(parameter) if nullable else f"*{object_name(parameter)}"]
    return [name]


def procedure_base_name(procedure):
    return procedure.name.removesuffix("_c")


OBJECT_TYPES = {
    kind: f"{object_type}*" for kind, object_type in parameters.OBJECTS.items()
}


class EntryWriter:
    """Writes the entry point of one implemented procedure."""

    def __init__(self, standard, entry, procedure):
        self.entry = entry
        self.procedure = procedure
        base = standard.procedures[entry.procedure]
        large = standard.large_count_form(entry.procedure)
        same = large is not None and len(large.parameters) == len(base.parameters)
        self.pairs = [
            (p, base.parameters[i] if same or large is None else p, large.parameters[i] if same else None)
            for i, p in enumerate(procedure.parameters)
        ]
        self.core = entry.core
        if large is not None and not same and procedure is large:
            self.core += "_c"  # another list of parameters, another function

    def text(self):
        """The whole function; with a short way, two, so that it doesn't pay for the long one's
        stack frame."""
        procedure = self.procedure
        body = "\n".join(self.lines())
        if "short" not in self.entry.notes:
            return f"{signature(procedure)} {{\n{body}\n}}\n"
        names = ", ".join(p.name for p in procedure.parameters)
        long_way = f"long_{procedure.name}"
        return (
            "[[gnu::noinline]] static "
            f"{signature(procedure).replace(' P' + procedure.name, ' ' + long_way)} {{\n{body}\n}}\n"
            f"{signature(procedure)} {{\n"
            f"    if (short_{self.core}({names})) [[likely]] {{\n"
            "        return MPI_SUCCESS;\n"
            "    }\n"
            f"    return {long_way}({names});\n"
            "}\n"
        )

    def lines(self):
        notes = self.entry.notes
        if "value" in notes:
            names = ", ".join(p.name for p in self.procedure.parameters if p.name != "...")
            return [f"    return {self.core}({names});"]
        lines = [self.opening()]
        prepared = {}
        if self.entry.chapter.endswith("collectives"):
            lines += self.collective_checks(prepared)
        else:
            lines += self.plain_checks()
        return lines + self.narrowed_results() + self.call(prepared)

    def is_anytime(self):
        return bool(self.entry.notes & {"anytime", "free"})

    def opening(self):
        kind = "AnytimeEntry" if self.is_anytime() else "Entry"
        opening = f"    {kind} entry(calls::{self.procedure.name});"
        if kind == "Entry" and checks.of_files(self.procedure):
            opening += "\n    entry.of_files();"
        return opening

    def objects(self, except_names=()):
        """Declarations of the objects behind handles."""
        lines = []
        for parameter in self.procedure.parameters:
            if parameter.name in except_names:
                continue
            if parameters.is_object(parameter) or parameters.is_request(parameter):
                lines.append(f"    {OBJECT_TYPES[parameter.kind]} {object_name(parameter)};")
        return lines

    @staticmethod
    def refusal(expressions, way_out="entry.refuse()"):
        if not expressions:
            return []
        if len(expressions) == 1 and "&&" not in expressions[0]:
            condition = f"!{expressions[0]}"
        else:
            condition = "!(" + " &&\n          ".join(expressions) + ")"
        return [f"    if ({condition}) [[unlikely]] {{", f"        return {way_out};", "    }"]

    def plain_checks(self):
        made = checks.checks_of(self.procedure)
        expressions = [check.expression for check in made]
        maker = checks.refused_at_all(self.procedure)
        if maker is not None:
            # The other ranks of the communicator, which is the first to be checked, wait for this one.
            return (self.objects() + self.refusal(expressions[:1])
                    + self.refusal(expressions[1:], f"entry.{maker}(*comm_)"))
        call = checks.told_to_others(self.procedure)
        if call is None:
            return self.objects() + self.refusal(expressions)
        file = object_name(checks.file_of(self.procedure))
        way_out = f"entry.refuse(*{file}, io::File::Call::{call})"
        return self.objects() + self.refusal(expressions[:1]) + self.refusal(expressions[1:], way_out)

    def collective_checks(self, prepared):
        procedure = self.procedure
        prepared.update(collectives.ignored_names(procedure))
        made = [c for c in checks.checks_of(procedure) if c.parameter.name not in prepared]
        expressions = [c.expression for c in made]
        reduction = collectives.reduction_buffers(procedure)
        if reduction:
            expressions = [
                e for c, e in zip(made, expressions) if c.rule != "buffer"
            ] + reduction
        lines = self.objects(prepared) + self.refusal(expressions)
        sides = collectives.sides_of(procedure)
        for side in sides:
            other = sides[1] if side is sides[0] else sides[0]
            lines += collectives.side_lines(procedure, side, other)
        return lines + collectives.alias_lines(procedure, sides)

    def narrowed(self):
        """Results that the core makes as MPI_Count and this form returns as int."""
        return [
            p
            for p, base, large in self.pairs
            if parameters.is_varied(base, large)
            and p.is_pointer
            and p.kind != "POLYFUNCTION"
            and p.c_type == "int *"
        ]

    def narrowed_results(self):
        return [
            f"    MPI_Count {p.name}_ = {'*' + p.name if p.direction == 'inout' else '0'};"
            for p in self.narrowed()
        ]

    def kept(self, plan):
        """What a blocking collective operation keeps alive: other threads may free it meanwhile."""
        blocking = plan in (None, PLAN_RUNNERS["blocking"])
        if not blocking or not self.entry.chapter.endswith("collectives"):
            return []
        types = [p for p, _, _ in self.pairs if p.kind == "DATATYPE" and not p.is_array]
        lines = []
        if types:
            lines.append(f"        const datatype::Kept kept({', '.join('*' + object_name(p) for p in types)});")
        if any(p.kind == "OPERATION" for p, _, _ in self.pairs):
            lines.append("        coll::Op operation = *op_;")
        return lines

    def call(self, prepared):
        first = {"Context& context": ["entry.context"], "Process& process": ["entry.process"], "": []}
        arguments = list(first[parameters.first_parameter(self.entry)])
        plan = next((PLAN_RUNNERS[note] for note in self.entry.notes if note in PLAN_RUNNERS), None)
        if plan is not None:
            arguments.append("steps")
        for parameter, base, large in self.pairs:
            if plan is not None and parameter.kind in NOT_OF_PLANS:
                continue
            if parameter.name != "...":
                arguments += core_argument(
                    self.entry, self.procedure, parameter, base, large, prepared)
        runner = "run(" if self.is_anytime() else f"run(calls::{self.procedure.name}, "
        locks = not self.entry.notes & {"no-lock", "free"}
        if not locks:
            runner = "run_unlocked("
        kept = self.kept(plan)
        if kept and "*op_" in arguments:
            arguments[arguments.index("*op_")] = "operation"
        call = f"{self.core}({', '.join(arguments)})"
        if plan is not None:
            call = f"{plan}[&](coll::Steps& steps) {{ return {call}; }})"
        after = []
        for p in self.narrowed():
            if procedure_base_name(self.procedure) in UNDEFINED_WHEN_LARGE:
                after.append(f"*{p.name} = narrow_or_undefined({p.name}_);")
            else:
                after.append(f'error = narrow("{p.name}", {p.name}_, {p.name});')
        freed = FREES.get(self.procedure.name)
        if freed is not None:
            after.append(f"*{freed[0]} = {freed[1]};")
        measured = ""
        if self.entry.chapter.endswith("collectives") and locks:
            measured = collectives.measures(self.procedure)
        measure = f", [&] {{ {measured} }}" if measured else ""
        if kept:
            return [f"    return entry.{runner}[&] {{", *kept, f"        return {call};", f"    }}{measure});"]
        if not after:
            return [f"    return entry.{runner}[&] {{ return {call}; }}{measure});"]
        lines = [f"    return entry.{runner}[&] {{", f"        Error error = {call};"]
        for step in after:
            lines += ["        if (!error) {", f"            {step}", "        }"]
        return lines + ["        return error;", "    });"]


PROLOGUE = """// Entry points of MPI: {subject}. Generated by abi/generate.py from abi/; read
// src/mpi/entry/entry.hpp first.
#include "mpi.h"

{includes}

using namespace warren;
using namespace warren::mpi;

#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC visibility push(default)
extern "C" {{
"""

EPILOGUE = """
} // extern "C"
#pragma GCC visibility pop
"""


def chapter_source(standard, entries, chapter):
    """The file of a chapter's entry points; of chapter "unsupported" all that no line lists."""
    text = []
    for name, procedure in standard.procedures.items():
        base = name[:-2] if standard.is_large_count_form(name) else name
        entry = entries.get(base)
        if (entry.chapter if entry else "unsupported") != chapter:
            continue
        if entry:
            function = EntryWriter(standard, entry, procedure).text()
        else:
            body = "\n".join(unsupported_body(procedure))
            function = f"{signature(procedure)} {{\n{body}\n}}\n"
        text.append(f"\n{function}{alias(procedure)}\n")
    includes = ['#include "mpi/entry/entry.hpp"']
    if chapter != "unsupported":
        includes.append(f'#include "mpi/entry/{chapter}.hpp"')
    subject = chapter.replace("_", " ") if chapter != "unsupported" else "what is not implemented yet"
    return PROLOGUE.format(subject=subject, includes="\n".join(includes)) + "".join(text) + EPILOGUE
