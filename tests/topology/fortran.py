#!/usr/bin/env python3
"""What the Fortran module gets of described machines is what `warren topo --format json` says.

    fortran.py PROGRAM WARREN    PROGRAM: fortran.f90
"""

import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
import two_packages  # noqa: E402

ORIGINS = {"firmware": 1, "measured": 2, "guessed": 3}
KINDS = ("children", "memory", "io", "misc")


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


def listed(text):
    """"0-2,5" with all numbers."""
    ranges = (part.split("-") for part in text.split(",") if part)
    return ",".join(str(number) for one in ranges
                    for number in range(int(one[0]), int(one[-1]) + 1)) or "-"


def object_lines(one, parent, inherited):
    sets = (listed(one["cpus"]), listed(one["nodes"])) if "cpus" in one else inherited
    device = "-"
    if "vendor" in one:
        device = f"{one['vendor']},{one['device']}"
    elif "line_bytes" in one:
        device = f"{one['bytes']},{one['line_bytes']}"
    counts = ",".join(str(len(one.get(kind, []))) for kind in KINDS)
    yield (f"object {one['type']} {one['object']} {one['logical_index']} {one.get('os_index', -1)} "
           f"{parent} {counts} {sets[0]} {sets[1]} {device} {one.get('name', '')}")
    for kind in KINDS:
        for child in one.get(kind, []):
            yield from object_lines(child, one["object"], sets)


def expected_lines(said):
    yield from sorted(object_lines(said["machine"], -1, None), key=lambda line: int(line.split()[2]))
    for attribute in said["attributes"]:
        for one in attribute["values"]:
            yield (f"value {attribute['name']} {one.get('initiator', 0)} {one['node']} "
                   f"{one['value']} {ORIGINS[one['origin']]}")
    for matrix in said["distances"]:
        for place, value in enumerate(matrix["values"]):
            row, column = divmod(place, len(matrix["objects"]))
            yield f"distance {matrix['objects'][row]} {matrix['objects'][column]} {value}"


def main():
    program, warren = sys.argv[1:]
    output_of(program)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "node.xml")
        path.write_text(two_packages.xml())
        for source in (f"xml:{path}", "synthetic:package:2 numa:2 l3:1 core:40 pu:2"):
            expected = list(expected_lines(json.loads(output_of(warren, "topo", "--format", "json",
                                                                source))))
            found = output_of(program, source).splitlines()
            for one, other in zip(found, expected):
                if one != other:
                    sys.exit(f"{source}: '{one}' instead of '{other}'")
            if len(found) != len(expected):
                sys.exit(f"{source}: {len(found)} lines instead of {len(expected)}")


main()
