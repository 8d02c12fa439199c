#!/usr/bin/env python3
"""Says what of the binary interface differs from the lists in this folder.

    check.py BUILD              the exit code is 1 if anything differs
    check.py BUILD --write      writes the lists anew, after a change that was meant

symbols/LIBRARY.txt has a library's soname and a line per procedure or variable with the forms in which it is
exported: its profiling name and the names that Fortran compilers use (Mpi stands for the name as it is written,
mpi for small letters), then @ and a version, :w if it is weak, and of data :BYTES, as programs may have copied it.
headers.tsv has a hash of each public header without its comments.
docs/guide/versions.md says which changes are allowed.
"""

import argparse
import hashlib
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parent.parent
LIBRARIES = (
    "libmpi_abi.so.1",
    "libmpifort_abi.so.1",
    "libwarren.so.1",
    "mpich-abi/libmpi.so.12",
    "mpich-abi/libmpifort.so.12",
    "openmpi-abi/libmpi.so.40",
    "openmpi-abi/libmpi_mpifh.so.40",
)
# readelf --dyn-syms: number, value, size, type, binding, visibility, section, name
SYMBOL = re.compile(r"^\s*\d+: [0-9a-f]+\s+(\w+) (\w+)\s+(\w+)\s+\w+\s+(\S+) (\S+)")
NAME = re.compile(r"([Pp]?)(mpi\w*?)(_*)", re.IGNORECASE)
COMMENT = {".f90": re.compile(r"!.*")}
C_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
UPDATE = "packaging/abi/check.py BUILD --write"


class AbiError(Exception):
    """Why the interface can't be read."""


def readelf(option, path):
    done = subprocess.run(["readelf", "-W", option, path], capture_output=True, text=True)
    if done.returncode != 0 or done.stderr:
        raise AbiError(f"{path}: {done.stderr.strip()}")
    return done.stdout


def symbols_of(path):
    """The lines of a library's list."""
    soname = re.search(r"\(SONAME\).*\[(.*)\]", readelf("-d", path))
    if soname is None:
        raise AbiError(f"{path} has no soname")
    groups = {}
    for line in readelf("--dyn-syms", path).splitlines():
        found = SYMBOL.match(line)
        if found is None or found[4] == "UND" or (found[4] == "ABS" and found[2] == "OBJECT"):
            continue  # used here only; the name of a version
        size, kind, binding, _, name = found.groups()
        base, form = base_and_form(name)
        form += ":w" if binding == "WEAK" else ""
        form += f":{int(size, 0)}" if kind == "OBJECT" else ""
        groups.setdefault(base, set()).add(form)
    return [f"soname {soname[1]}", *(f"{base} {' '.join(sorted(forms))}" for base, forms in sorted(groups.items()))]


def base_and_form(symbol):
    """The name that the forms of a procedure share, and the form of this one."""
    name, _, version = symbol.partition("@")
    parts = NAME.fullmatch(name)
    if parts is None:
        return name, "." + ("@" + version if version else "")
    prefix, body, underscores = parts.groups()
    case = "mpi" if body.islower() else "MPI" if body.isupper() else "Mpi"
    base = body if case == "Mpi" else body.lower()
    return base, prefix + case + underscores + ("@" + version if version else "")


def declarations_in(path):
    """The text that compilers see, however it is laid out and explained."""
    text = COMMENT.get(path.suffix, C_COMMENT).sub(" ", path.read_text(encoding="utf-8"))
    return re.sub(r"\s+", " ", text).strip()


def headers_of(build):
    """Lines of headers.tsv: the public headers that are written by hand, and mpi.h, which is generated."""
    headers = {f"warren/{path.name}": path for path in (TOP / "include/warren").iterdir()}
    headers["mpi.h"] = build / "include/mpi.h"
    return [f"{name}\t{hashlib.sha256(declarations_in(path).encode()).hexdigest()}"
            for name, path in sorted(headers.items())]


def differences(title, listed, found):
    """Sentences about the lines that only one of the two has."""
    gone, new = sorted(set(listed) - set(found)), sorted(set(found) - set(listed))
    for line in gone[:20]:
        yield f"{title}: {line!r} is gone or another: programs that were built before may not run"
    for line in new[:20]:
        yield f"{title}: {line!r} is new"
    if len(gone) > 20 or len(new) > 20:
        yield f"{title}: {len(gone)} gone, {len(new)} new in all"


def compare(build, lists, write):
    """Sentences about all that differs from the lists in the folder `lists`; or writes them."""
    found = {f"symbols/{name.replace('/', '.')}.txt": symbols_of(build / "lib" / name) for name in LIBRARIES}
    found["headers.tsv"] = headers_of(build)
    for name, lines in found.items():
        path = lists / name
        if write:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        elif not path.exists():
            yield f"there is no {path}"
        else:
            yield from differences(path.stem, path.read_text(encoding="utf-8").splitlines(), lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--lists", type=pathlib.Path, default=HERE, help="another folder of lists")
    words = parser.parse_args()
    found = list(compare(words.build, words.lists, words.write))
    for sentence in found:
        print(sentence)
    if found:
        print(f"If that is meant and docs/guide/versions.md allows it: {UPDATE}")
    return 1 if found else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (AbiError, OSError) as problem:
        sys.exit(f"packaging/abi/check.py: {problem}")
