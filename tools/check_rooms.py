#!/usr/bin/env python3
"""Checks the direction of dependency between the rooms of src/ and analyser/.

src/rooms.tsv has the order: a file may include headers of its own room and of rooms that come before it
in that table. Rooms beside the library name the last room that they may use, and nobody includes them.
Headers make no cycles. docs/ARCHITECTURE.md lists the same rooms in the same order. Prints each
violation as FILE:LINE: reason; the exit code is 1 if there is any.
"""

import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent


def read_order(path):
    """The rooms in their order, and for each room beside the library the last room that it may use."""
    order, beside = [], {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        columns = line.split("\t")
        order.append(columns[0])
        if len(columns) > 3:
            beside[columns[0]] = columns[3]
    return order, beside


ORDER, BESIDE = read_order(TOP / "src/rooms.tsv")
LEVEL = {room: level for level, room in enumerate(ORDER)}
# Generated tables of plain data, which depend on nothing: every room may look things up in them.
TABLES = {"mpi/calls.hpp"}
# Beside the code of a room, what its tests use.
TESTS = re.compile(r"_test\.cpp$|/test_\w+\.hpp$")
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')
SOURCES = {".cpp", ".hpp", ".c", ".h", ".inc"}


def room_of(name):
    """The room that the file `name` (relative to src/, or analyser/…) is in, or None."""
    parts = name.split("/")
    for length in range(len(parts) - 1, 0, -1):
        room = "/".join(parts[:length])
        if room in LEVEL:
            return room
    return None


def may_include(room, other):
    """None if files of `room` may include headers of `other`, else the reason why not."""
    if room == other:
        return None
    if other in BESIDE:
        return f"no room includes {other}/"
    limit = LEVEL[BESIDE[room]] + 1 if room in BESIDE else LEVEL[room]
    if LEVEL[other] < limit:
        return None
    if room in BESIDE:
        return f"{room}/ uses rooms up to {BESIDE[room]}/ only"
    return f"{other}/ comes after {room}/ in src/rooms.tsv"


def includes_of(path):
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, match.group(1)


def cycle_in(graph):
    """A list of files that include each other in a ring, or None."""
    finished = set()

    def visit(file, trail):
        if file in trail:
            return trail[trail.index(file):] + [file]
        if file in finished:
            return None
        for included in graph.get(file, []):
            ring = visit(included, trail + [file])
            if ring:
                return ring
        finished.add(file)
        return None

    for file in sorted(graph):
        ring = visit(file, [])
        if ring:
            return ring
    return None


def check(*sources):
    """The violations in the trees `sources`, as lines of text: src/ first, and others by their name."""
    violations = []
    graph = {}
    for source in sources:
        for path in sorted(source.rglob("*")):
            if path.suffix not in SOURCES:
                continue
            name = path.relative_to(source).as_posix()
            if source != sources[0]:
                name = f"{source.name}/{name}"
                if name.startswith("analyser/tests/"):
                    continue
            room = room_of(name)
            if room is None:
                violations.append(f"{path}:1: its folder is no room of src/rooms.tsv")
                continue
            graph[name] = []
            for number, included in includes_of(path):
                where = f"{path}:{number}"
                if included.startswith("."):
                    violations.append(f'{where}: "{included}": includes are relative to src/')
                    continue
                other = room_of(included)
                if included in TABLES or other is None:
                    continue
                graph[name].append(included)
                reason = may_include(room, other)
                if reason and not TESTS.search(name):
                    violations.append(f'{where}: "{included}": {reason}')
    ring = cycle_in(graph)
    if ring:
        violations.append("headers include each other: " + " -> ".join(ring))
    return violations


def check_document(path):
    """The violation if the table of rooms in the document has other rooms, or another order."""
    listed = re.findall(r"^\| `([a-z_/]+)` \|", path.read_text(encoding="utf-8"), re.MULTILINE)
    listed = [room for room in listed if room in LEVEL]
    if listed == ORDER:
        return []
    return [f"{path}:1: its rooms are not those of src/rooms.tsv in their order: "
            f"{' '.join(listed)}"]


def main():
    violations = check(TOP / "src", TOP / "analyser")
    document = TOP / "docs/ARCHITECTURE.md"
    violations += check_document(document)
    for violation in violations:
        print(violation)
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
