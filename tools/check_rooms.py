#!/usr/bin/env python3
"""Checks the direction of dependency between the rooms of src/ (ARCHITECTURE.md).

A file may include headers of its own room and of rooms below it. Rooms on one level do not know each
other. Some stand beside: the launcher uses the rooms up to rank/, and no room includes it; discovery
serves the rooms that it is said to serve. Headers make no cycles. Prints each violation as FILE:LINE: reason; the exit code is 1 if there is any.
"""

import pathlib
import re
import sys

LEVELS = [["base"], ["balance"], ["fibre"], ["topology"], ["node"], ["memory"], ["image"], ["member"], ["rank"], ["transport"], ["datatype"],
          ["message"], ["comm"], ["coll", "rma"], ["mpi"]]
# Rooms beside the library, and the highest room that they may use.
BESIDE = {"discovery": "topology", "launch": "rank", "locality": "memory"}
# Those of them that others of them may use.
SERVES = {"discovery": {"launch", "memory"}}
# Generated tables of plain data, which depend on nothing: every room may look things up in them.
TABLES = {"mpi/calls.hpp"}

LEVEL = {room: level for level, rooms in enumerate(LEVELS) for room in rooms}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')
SOURCES = {".cpp", ".hpp", ".c", ".h", ".inc"}


def may_include(room, other):
    """None if files of `room` may include headers of `other`, else the reason why not."""
    if room == other:
        return None
    if room in SERVES.get(other, ()):
        return None
    if other in BESIDE:
        return f"no room includes {other}/" if other not in SERVES else f"{room}/ doesn't use {other}/"
    if room in BESIDE:
        highest = BESIDE[room]
        return None if LEVEL[other] <= LEVEL[highest] else f"{room}/ uses rooms up to {highest}/ only"
    if LEVEL[other] < LEVEL[room]:
        return None
    relation = "on a level with" if LEVEL[other] == LEVEL[room] else "above"
    return f"{other}/ is {relation} {room}/"


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


def check(source):
    """The violations in the tree `source`, as lines of text."""
    violations = []
    graph = {}
    for path in sorted(source.rglob("*")):
        if path.suffix not in SOURCES:
            continue
        name = path.relative_to(source).as_posix()
        room = name.split("/")[0]
        if room not in LEVEL and room not in BESIDE:
            violations.append(f"{path}:1: {room}/ is no room; its place in the order is missing here")
            continue
        graph[name] = []
        for number, included in includes_of(path):
            where = f"{path}:{number}"
            if included.startswith("."):
                violations.append(f'{where}: "{included}": includes are relative to src/')
                continue
            other = included.split("/")[0]
            if included in TABLES:
                continue
            if other in LEVEL or other in BESIDE:
                graph[name].append(included)
                reason = may_include(room, other)
                if reason:
                    violations.append(f'{where}: "{included}": {reason}')
    ring = cycle_in(graph)
    if ring:
        violations.append("headers include each other: " + " -> ".join(ring))
    return violations


def main():
    source = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else
                          pathlib.Path(__file__).resolve().parent.parent / "src")
    violations = check(source)
    for violation in violations:
        print(violation)
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
