#!/usr/bin/env python3
"""Writes what the build makes of the standard's data: mpi.h, the call table, the entry points.

    generate.py list               the names of the files that `write` makes
    generate.py write DIRECTORY    makes them: include/mpi.h, generated/…

Modules: standard (the data), header (mpi.h), calls (call table), parameters (what the core gets),
checks and collectives (what is refused), entries (the entry points), check_tests (calls that must
fail, for the tests); entry_points (their table), foreign, foreign_numbers, foreign_entries,
foreign_fortran and foreign_header (the libraries of other ABIs); fortran, fortran_interfaces,
fortran_modules and fortran_sections (Fortran for the standard ABI).
"""

import pathlib
import sys

import calls
import check_tests
import entries
import entry_points
import foreign
import foreign_entries
import foreign_fortran
import foreign_header
import foreign_numbers
import fortran_modules
import fortran_sections
import header
import standard


FOREIGN_ABIS = ("mpich", "openmpi", "standard")


def chapters(implemented):
    return sorted({entry.chapter for entry in implemented.values()}) + ["unsupported"]


def standard_fortran_files(made, folder, data, abi):
    """The library of Fortran for the standard ABI, whose C library is the core, and what programs use."""
    del made[f"{folder}/include/mpi.h"]
    for part in range(fortran_sections.PARTS):
        made[f"{folder}/fortran_sections_{part}.cpp"] = (
            lambda part=part: fortran_sections.text(abi, data, part)
        )
    return made | fortran_modules.files(data)


def foreign_files(data, abi):
    folder = f"generated/foreign/{abi.name}"
    made = {
        f"{folder}/numbers.hpp": lambda: foreign_numbers.text(abi),
        f"{folder}/include/mpi.h": lambda: foreign_header.text(abi, data),
    }
    for part in range(foreign_fortran.PARTS):
        made[f"{folder}/fortran_{part}.cpp"] = (
            lambda part=part: foreign_fortran.text(abi, data, part)
        )
    if abi.name == "standard":
        return standard_fortran_files(made, folder, data, abi)
    for part in range(foreign_entries.PARTS):
        made[f"{folder}/calls_{part}.cpp"] = (
            lambda part=part: foreign_entries.text(abi, data, part)
        )
    return made


def files(data, implemented):
    """File name -> function that makes its text."""
    made = {
        "include/mpi.h": lambda: header.text(data),
        "generated/mpi/calls.hpp": lambda: calls.header(data),
        "generated/calls.cpp": lambda: calls.source(data),
        "generated/wrong_calls.inc": lambda: check_tests.source(data, implemented),
        "generated/mpi/entry_points.hpp": lambda: entry_points.header(data),
        "generated/entries_table.cpp": lambda: entry_points.source(data),
    }
    for abi in map(foreign.Abi, FOREIGN_ABIS):
        made |= foreign_files(data, abi)
    for chapter in chapters(implemented):
        made[f"generated/entries_{chapter}.cpp"] = (
            lambda chapter=chapter: entries.chapter_source(data, implemented, chapter)
        )
    return made


def write(path, text):
    """Leaves a file alone that has the text already, so that what depends on it isn't rebuilt."""
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def main(arguments):
    data = standard.Standard()
    try:
        implemented = standard.read_entries(data)
    except ValueError as error:
        sys.exit(str(error))
    if arguments == ["list"]:
        print(";".join(files(data, implemented)))
    elif len(arguments) == 2 and arguments[0] == "write":
        for name, text in files(data, implemented).items():
            write(pathlib.Path(arguments[1]) / name, text())
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
