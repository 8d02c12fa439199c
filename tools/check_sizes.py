#!/usr/bin/env python3
"""Checks the sizes of files, functions and classes.

A file has up to 600 lines and a function up to 70, with its head; a class of the rooms in CLASS_ROOMS
has up to 40 member functions that are defined. tools/size_exceptions.tsv names what may be larger, up
to which size and why; an entry that is not needed any more is reported, too. Generated files are in no
repository. lizard (build/python, from tools/python_packages.sh) finds the functions. Prints
NAME: reason; the exit code is 1 if there is any.
"""

import collections
import os
import pathlib
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent
EXCEPTIONS = TOP / "tools" / "size_exceptions.tsv"
LIMITS = {"file": 600, "function": 70, "class": 40}
MEANT = {"file": "lines", "function": "lines", "class": "member functions"}
WITH_LINES = {".cpp", ".hpp", ".c", ".h", ".py", ".sh", ".cmake", ".js"}
WITH_FUNCTIONS = {".cpp", ".hpp", ".c", ".h", ".py", ".js"}
CLASS_ROOMS = ("src/mpi/coll/", "src/mpi/message/", "src/launch/")

try:
    import lizard
except ImportError:
    python = TOP / "build" / "python" / "bin" / "python3"
    if pathlib.Path(sys.prefix) == python.parent.parent or not python.exists():
        sys.exit("check_sizes.py needs lizard: run tools/python_packages.sh")
    os.execv(python, [str(python), *sys.argv])


def sizes_of_files(top, names):
    for name in names:
        if pathlib.Path(name).suffix in WITH_LINES:
            yield "file", name, len((top / name).read_bytes().splitlines())


def sizes_of_functions(top, names):
    """Functions are named FILE:NAME, without namespaces; classes ROOM:CLASS."""
    members = collections.Counter()
    paths = [str(top / name) for name in names if pathlib.Path(name).suffix in WITH_FUNCTIONS]
    for file in lizard.analyze_files(paths):
        name = pathlib.Path(file.filename).relative_to(top).as_posix()
        for function in file.function_list:
            parts = function.name.split("::")
            while len(parts) > 1 and parts[0][:1].islower():
                parts.pop(0)
            short = "::".join(parts)
            if short == "TEST" or short.startswith("TEST_"):  # GoogleTest's; its name is in the head
                short = function.long_name.replace(" ", "").split("(", 1)[1].rstrip(")").split("::")[-1]
            yield "function", f"{name}:{short}", function.length
            room = next((room for room in CLASS_ROOMS if name.startswith(room)), None)
            if room and len(parts) > 1 and not name.endswith("_test.cpp"):
                members[f"{room}:{'::'.join(parts[:-1])}"] += 1
    for name, count in members.items():
        yield "class", name, count


def read_exceptions(path):
    """{(kind, name): limit}"""
    rows = [line.split("\t") for line in path.read_text().splitlines()
            if line and not line.startswith("#")]
    for row in rows:
        if len(row) != 4 or row[0] not in LIMITS or not row[2].isdigit() or not row[3].strip():
            raise ValueError(f"{path.name}: no kind, name, limit and reason: {row}")
    return {(kind, name): int(limit) for kind, name, limit, _ in rows}


def violations(sizes, exceptions):
    largest = {}
    for kind, name, size in sizes:
        key = (kind, name)
        largest[key] = max(size, largest.get(key, 0))  # overloads have one name
    for (kind, name), size in sorted(largest.items()):
        limit = exceptions.get((kind, name), LIMITS[kind])
        if size > limit:
            yield f"{name}: {size} {MEANT[kind]}, the limit of this {kind} is {limit}"
    for kind, name in sorted(exceptions):
        if largest.get((kind, name), 0) <= LIMITS[kind]:
            yield (f"{name}: needs no limit of its own: take it out of tools/{EXCEPTIONS.name}")


def main():
    names = subprocess.run(["git", "-C", TOP, "ls-files"], check=True, capture_output=True, text=True)
    files = [name for name in names.stdout.splitlines()
             if (TOP / name).is_file() and not (TOP / name).is_symlink()]
    sizes = [*sizes_of_files(TOP, files), *sizes_of_functions(TOP, files)]
    found = list(violations(sizes, read_exceptions(EXCEPTIONS)))
    for violation in found:
        print(violation)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
