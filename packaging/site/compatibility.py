#!/usr/bin/env python3
"""The table of programs of others that run: from results of ctest, and as a page.

    compatibility.py table RESULTS COMMIT > compatibility.tsv     RESULTS: ctest --output-junit
    compatibility.py page TABLE > page.md

RESULTS are those of `ctest --test-dir build/release -C packages -L packages --output-junit RESULTS`, which runs
programs of Debian's archive (tests/packages/run.py). A test is called packages.PROGRAM.KIND.
"""

import csv
import re
import sys
import xml.etree.ElementTree as xml

KINDS = ("processes", "threads", "fibres")
RESULTS = {"run": "passed", "fail": "failed", "notrun": "not run"}
# Programs are named as people know them, with what they were built for.
TITLES = {
    "lammps": ("LAMMPS", "Open MPI"),
    "netpipe_openmpi": ("NetPIPE", "Open MPI"),
    "netpipe_mpich": ("NetPIPE", "MPICH"),
    "hpcc": ("HPC Challenge", "Open MPI"),
    "mumps": ("MUMPS", "Open MPI"),
    "scalapack_lu_openmpi": ("ScaLAPACK, LU test", "Open MPI"),
    "scalapack_lu_mpich": ("ScaLAPACK, LU test", "MPICH"),
    "scalapack_qr_openmpi": ("ScaLAPACK, QR test", "Open MPI"),
    "scalapack_qr_mpich": ("ScaLAPACK, QR test", "MPICH"),
    "scalapack_eigen_openmpi": ("ScaLAPACK, symmetric eigenvalues", "Open MPI"),
    "scalapack_eigen_mpich": ("ScaLAPACK, symmetric eigenvalues", "MPICH"),
    "elk": ("Elk", "Open MPI"),
    "gromacs": ("GROMACS", "Open MPI"),
    "ptscotch": ("PT-Scotch", "Open MPI"),
    "phyml": ("PhyML", "Open MPI"),
}
HEAD = "# Made by packaging/site/compatibility.py from ctest -C packages -L packages at commit {}."


def table(results, commit):
    found = {}
    for case in xml.parse(results).getroot().iter("testcase"):
        _, program, kind = case.get("name").split(".")
        if program not in TITLES or kind not in KINDS:
            raise ValueError(f"{case.get('name')} is a test that this table does not know")
        found.setdefault(program, dict.fromkeys(KINDS, "not run"))[kind] = RESULTS[case.get("status")]
    if not found:
        raise ValueError(f"{results} has no tests")
    yield HEAD.format(commit)
    yield "\t".join(["program", "built for", *KINDS])
    for program, by_kind in found.items():
        yield "\t".join([*TITLES[program], *(by_kind[kind] for kind in KINDS)])


def page(path):
    with open(path, encoding="utf-8") as file:
        head, *lines = file.read().splitlines()
    commit = re.search(r"at commit (\S+)\.$", head)
    if commit is None:
        raise ValueError(f"{path}: the first line names no commit")
    columns, *rows = csv.reader(lines, delimiter="\t")
    yield "# Programs of others"
    yield ""
    yield ("Programs of Debian's archive, as they are there, that `mpiexec` starts with Warren's library. The table is of "
           f"commit `{commit[1]}`:")
    yield ""
    yield "```sh"
    yield "ctest --test-dir build/release -C packages -L packages"
    yield "```"
    yield ""
    for row in (columns, ["---"] * len(columns), *rows):
        if len(row) != len(columns):
            raise ValueError(f"{path}: {row}")
        yield f"| {' | '.join(row)} |"
    yield ""
    yield ("Ranks are [processes, threads or fibres](docs/guide/threads_and_fibres.md). "
           "[Porting](docs/guide/porting.md) says how other programs are started.")


def main(words):
    if len(words) == 3 and words[0] == "table":
        lines = table(words[1], words[2])
    elif len(words) == 2 and words[0] == "page":
        lines = page(words[1])
    else:
        print(__doc__, end="", file=sys.stderr)
        return 2
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (OSError, ValueError, KeyError, xml.ParseError) as problem:
        sys.exit(f"packaging/site/compatibility.py: {problem}")
