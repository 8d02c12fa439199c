"""The standard's procedures, types and constants, as read from the data files beside this one."""

import csv
import json
import pathlib
from dataclasses import dataclass, field

HERE = pathlib.Path(__file__).parent


@dataclass(frozen=True)
class Parameter:
    name: str  # "..." for a variable argument list
    c_type: str  # with trailing [] for arrays, as in "const int[]" or "int[][3]"
    kind: str  # the standard's parameter kind (RANK, DATATYPE, …); "" where the data have none
    direction: str  # in, out, inout or ""
    length: str  # of an array: a parameter's name, a constant, "*" (known to the core only) or ""
    root_only: bool

    @property
    def is_array(self):
        return self.c_type.endswith("]")

    @property
    def is_pointer(self):
        return self.c_type.endswith("*")

    @property
    def declaration(self):
        if self.name == "...":
            return "..."
        if self.is_array:
            base, brackets = self.c_type.split("[", 1)
            return f"{spaced(base.strip())}{self.name}[{brackets}"
        return f"{spaced(self.c_type)}{self.name}"


@dataclass(frozen=True)
class Procedure:
    name: str  # MPI_Send_c
    returns: str
    parameters: tuple

    @property
    def prototype(self):
        return ", ".join(p.declaration for p in self.parameters) or "void"


@dataclass
class Entry:
    """A line of entries.tsv: procedures that the library implements, and by what."""

    procedure: str  # the base name; its _c form is implemented with it
    chapter: str
    core: str
    notes: set = field(default_factory=set)


def spaced(c_type):
    """A C type, ready for a name to follow."""
    return c_type if c_type.endswith("*") else c_type + " "


def read_table(file_name):
    with open(HERE / file_name, encoding="utf-8") as file:
        lines = (line for line in file if line.strip() and not line.startswith("#"))
        return list(csv.DictReader(lines, delimiter="\t"))


def read_parameter(data):
    if "c" in data:
        return Parameter("...", "...", "", "", "", False)
    length = data.get("length", "")
    return Parameter(
        name=data["name"],
        c_type=data["c_type"],
        kind=data.get("kind") or "",
        direction=data.get("direction") or "",
        length=length if isinstance(length, str) else length[0],
        root_only=bool(data.get("root_only")),
    )


class Standard:
    def __init__(self):
        with open(HERE / "procedures.json", encoding="utf-8") as file:
            listed = json.load(file)["procedures"]
        self.procedures = {
            p["name"]: Procedure(
                p["name"], p["returns"], tuple(read_parameter(q) for q in p["parameters"])
            )
            for p in listed
        }
        self.types = read_table("types.tsv")
        self.constants = read_table("constants.tsv")

    def large_count_form(self, name):
        """The _c form of a procedure, or None."""
        return self.procedures.get(name + "_c")

    def is_large_count_form(self, name):
        return name.endswith("_c") and name[:-2] in self.procedures


def read_entries(standard):
    """entries.tsv by base name, complete with defaults. Raises ValueError for what can't be."""
    entries = {}
    for row in read_table("entries.tsv"):
        name = row["procedure"]
        if name not in standard.procedures:
            raise ValueError(f"entries.tsv: {name} is not a procedure of the standard")
        if name in entries:
            raise ValueError(f"entries.tsv: {name} is listed twice")
        core = row["core"]
        if core in ("", "-", None):
            core = name.removeprefix("MPI_").lower()
        notes = set((row.get("notes") or "").split())
        unknown = notes - NOTES
        if unknown:
            raise ValueError(f"entries.tsv: {name}: unknown notes {sorted(unknown)}")
        entries[name] = Entry(name, row["chapter"], core, notes)
    return entries


# anytime: may be called before MPI_Init and after MPI_Finalize; the core gets the Process.
# free: the same, and needs nothing at all of the process's state, or finds it itself.
# value: like free, and the result is the core's, whatever it is: nothing is checked.
# no-lock: the core neither changes nor awaits anything of the rank: called without the lock.
# blocking, nonblocking, persistent: the core is a collective operation's plan, without the
# procedure's communicator, info and request, and src/mpi/entry/schedules.hpp carries it out.
# short: before anything else the entry point tries a short way, short_ and the core's name in
# src/mpi/entry/short_messages.hpp, short_windows.hpp or short_queries.hpp; it gets the procedure's own arguments, and false means that nothing
# has been done.
NOTES = {
    "anytime", "free", "value", "no-lock", "blocking", "nonblocking", "persistent", "short"
}
