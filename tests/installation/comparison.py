#!/usr/bin/env python3
"""Every program that bench/compare and bench/groups start builds as they build it, with nothing but mpi.h.

    comparison.py BENCH BUILD WORK      bench/, a build tree, a folder for what is built
"""
import pathlib
import sys

bench, build, work = map(pathlib.Path, sys.argv[1:])
sys.path.insert(0, str(bench))
from comparison import libraries, questions  # noqa: E402

warren, why = libraries.find_warren(build)
if warren is None:
    sys.exit(why)
programs = questions.programs(questions.questions([], None, False)) | {"groups"}
folders, errors = libraries.build_binaries(bench, work, [warren], programs)
if errors:
    sys.exit("\n".join(errors.values()))
missing = [name for name in programs if not (folders["abi"] / name).exists()]
if missing or len(programs) < 10:
    sys.exit(f"missing {missing} of {sorted(programs)}")
