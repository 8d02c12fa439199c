#!/usr/bin/env python3
"""The binary interface is the one of packaging/abi, and packaging/abi/check.py sees what changes.

    abi_lists.py PACKAGING BUILD WORK
"""
import pathlib
import shutil
import sys

packaging, build, work = map(pathlib.Path, sys.argv[1:])
sys.dont_write_bytecode = True
sys.path.insert(0, str(packaging / "abi"))
import check  # noqa: E402

failures = list(check.compare(build, packaging / "abi", False))
shutil.rmtree(work, ignore_errors=True)
list(check.compare(build, work, True))


def expect(what, wanted, got):
    if wanted != got:
        failures.append(f"{what}: {got}, not {wanted}")


def after(file, change):
    """What is said when a list is another."""
    path = work / file
    text = path.read_text()
    path.write_text(change(text))
    found = list(check.compare(build, work, False))
    path.write_text(text)
    return found


expect("the lists just written", [], list(check.compare(build, work, False)))
mpi = "symbols/libmpi_abi.so.1.txt"
expect("a new procedure", ["libmpi_abi.so.1: 'MPI_Send Mpi:w PMpi' is new"],
       after(mpi, lambda text: text.replace("MPI_Send Mpi:w PMpi\n", "")))
expect("a lost procedure", 1, len(after(mpi, lambda text: text + "MPI_Telepathy Mpi:w PMpi\n")))
expect("another size", 2, len(after(mpi, lambda text: text.replace("warren_entry_points .:", "warren_entry_points .:9"))))
expect("another soname", 2, len(after(mpi, lambda text: text.replace("soname libmpi_abi.so.1", "soname libmpi_abi.so.7"))))
expect("a lost name of Fortran", 2, len(after("symbols/mpich-abi.libmpifort.so.12.txt",
                                             lambda text: text.replace("\nmpi_send ", "\nmpi_send mpi___ "))))
expect("another header", 2, len(after("headers.tsv", lambda text: text.replace("warren/memory.h\t", "warren/memory.h\t0"))))
(work / mpi).unlink()
expect("no list", [f"there is no {work / mpi}"], list(check.compare(build, work, False)))

for name, base, form in (("PMPI_Send", "MPI_Send", "PMpi"), ("mpi_send__", "mpi_send", "mpi__"),
                         ("MPI_SEND", "mpi_send", "MPI"), ("warren_version@@WARREN_0", "warren_version", ".@@WARREN_0")):
    expect(name, (base, form), check.base_and_form(name))
one, other = work / "one.h", work / "other.h"
one.write_text("/* It counts. */\nint count(int from); // all\n")
other.write_text("int count(int\n    from);\n")
expect("comments", check.declarations_in(one), check.declarations_in(other))
other.write_text("long count(int from);\n")
if check.declarations_in(one) == check.declarations_in(other):
    failures.append("a function's type is another, and nobody sees it")
if failures:
    sys.exit("\n".join(failures))
