#!/usr/bin/env python3
"""Whether the library has every procedure that the modules declare: symbols.py INCLUDE_FOLDER LIBRARY"""

import pathlib
import re
import subprocess
import sys

ABSTRACT = re.compile(r"abstract interface.*?end interface", re.S)
PROCEDURE = re.compile(r"^ *(?:elemental )?(?:subroutine|function) (\w+)\([^)\n]*\)(.*)", re.M)
BIND = re.compile(r'bind\(C, *name="(\w+)"\)')


def declared(path):
    """The symbols of a module's interfaces."""
    text = re.sub(r"&\n *", "", ABSTRACT.sub("", path.read_text(encoding="utf-8")))
    for name, rest in PROCEDURE.findall(text):
        binding = BIND.search(rest)
        yield binding[1] if binding else name.lower() + "_"
    for name in re.findall(r"external :: (P?MPI_\w+)", text):
        yield name.lower() + "_"


def main(include, library):
    listing = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True)
    defined = {line.split()[-1] for line in listing.stdout.splitlines()}
    wanted = {symbol for path in pathlib.Path(include).glob("*.f90") for symbol in declared(path)}
    missing = sorted(wanted - defined)
    print(f"{len(wanted)} procedures, missing: {missing}")
    sys.exit(len(wanted) < 2000 or bool(missing))


if __name__ == "__main__":
    main(*sys.argv[1:])
