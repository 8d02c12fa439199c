#!/usr/bin/env python3
"""Checks what a built libmpi_abi.so shows to the world.

Usage: check_library.py LIBRARY PROCEDURES [--sanitized]

- Its dynamic symbols are the MPI_ (weak) and PMPI_ (strong) names of all procedures, and the tables
  for libraries of other ABIs (src/foreign); no other.
- It needs nothing but the C library (unless built with sanitizers, which bring their own).
- Its soname is libmpi_abi.so.1.
"""

import json
import re
import subprocess
import sys

C_LIBRARY = re.compile(r"(libc|libm|ld-linux[a-z0-9_-]*)\.so\.\d+")


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main():
    library, procedures = sys.argv[1:3]
    sanitized = "--sanitized" in sys.argv
    with open(procedures, encoding="utf-8") as file:
        names = [p["name"] for p in json.load(file)["procedures"]]
    expected = {name: "W" for name in names} | {"P" + name: "T" for name in names}
    expected |= {"warren_entry_points": "D", "warren_foreign_hooks": "D"}
    found = {}
    for line in output("nm", "-D", "--defined-only", library).splitlines():
        _, kind, name = line.split()
        found[name] = kind
    problems = []
    for name in sorted(expected.keys() | found.keys()):
        if found.get(name) != expected.get(name):
            problems.append(f"{name}: {found.get(name, 'missing')}, not {expected.get(name, 'missing')}")
    dynamic = output("readelf", "-dW", library)
    for needed in re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic):
        if not C_LIBRARY.fullmatch(needed) and not sanitized:
            problems.append(f"needs {needed}")
    if re.findall(r"\(SONAME\).*\[(.*)\]", dynamic) != ["libmpi_abi.so.1"]:
        problems.append("the soname is not libmpi_abi.so.1")
    if "TEXTREL" in dynamic:
        problems.append("has text relocations: ranks would not share its pages")
    print(f"{len(found)} symbols, {len(problems)} problems")
    for problem in problems[:20]:
        print(" ", problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
