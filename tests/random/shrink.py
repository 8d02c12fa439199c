#!/usr/bin/env python3
"""Finds the steps of a failing random program that it takes to fail.

    shrink.py RANKS --seed S --steps N [further options of random_programs]

Leaves out steps (--only) as long as what is left still fails; a step that makes a communicator is left
out together with what is done on it. A hang counts as a failure. Prints the shortest list found.
"""

import os
import pathlib
import subprocess
import sys

BUILD = pathlib.Path(os.environ.get("BUILD", "build/release"))
LIMIT_S = os.environ.get("LIMIT", "20")


def fails(ranks, options, steps):
    ranges = []
    for step in steps:
        if ranges and ranges[-1][1] == step - 1:
            ranges[-1][1] = step
        else:
            ranges.append([step, step])
    only = ",".join(f"{first}-{last}" for first, last in ranges)
    run = subprocess.run([BUILD / "bin/mpiexec", "-n", ranks, "--timeout", LIMIT_S,
                          BUILD / "tests/random_programs", "--programs", "1", *options,
                          "--only", only], capture_output=True, text=True)
    if run.returncode != 0:
        print(f"fails with {len(steps)} steps: {only}", flush=True)
    return run.returncode != 0


def main():
    ranks, options = sys.argv[1], sys.argv[2:]
    steps = list(range(int(options[options.index("--steps") + 1])))
    if not fails(ranks, options, steps):
        sys.exit("it does not fail")
    length = len(steps) // 2
    while length > 0:
        begin = 0
        while begin < len(steps):
            left = steps[:begin] + steps[begin + length:]
            if left and fails(ranks, options, left):
                steps = left
            else:
                begin += length
        length //= 2


if __name__ == "__main__":
    main()
