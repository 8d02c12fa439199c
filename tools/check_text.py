#!/usr/bin/env python3
"""Checks what no file of the repository should hold, in the files that git tracks.

Paths of somebody's machine, lines without an end, tabs and blanks at the end of a line, and in src and
analyser comments that don't name what they are about. Prints FILE:LINE: reason; the exit code is 1 if
there is any.
"""

import pathlib
import re
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent
SOURCES = {".cpp", ".hpp", ".c", ".h", ".py", ".sh", ".cmake"}
# A folder of a person or of a machine; /root and /home belong to whoever runs the tools.
MACHINE_PATHS = re.compile(r"(?<![\w.$}~-])/(home|Users|work|root|mnt)/[\w.-]+")

# "Of the file", "What is left", "The same for all": the reader has to guess the subject.
WITHOUT_SUBJECT = re.compile(r"//  ?(Of|What|The same) ")


def tracked_files():
    names = subprocess.run(["git", "-C", TOP, "ls-files", "-z"], check=True, capture_output=True)
    return [TOP / name for name in names.stdout.decode().split("\0") if name]


def violations_in(path):
    name = path.relative_to(TOP).as_posix()
    try:
        text = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        return  # a picture or an archive
    if text and not text.endswith("\n") and path.suffix != ".json":
        yield f"{name}: the last line has no end"
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        where = f"{name}:{number}"
        if f"{TOP}/" in line or MACHINE_PATHS.search(line):
            yield f"{where}: a path of one machine: {line.strip()[:80]}"
        if line != line.rstrip() and not name.startswith("abi/"):
            yield f"{where}: blanks at the end of the line"
        if "\t" in line and path.suffix in SOURCES:
            yield f"{where}: a tab"
        if name.startswith(("src/", "analyser/")) and WITHOUT_SUBJECT.search(line):
            yield f"{where}: a comment without a subject: {line.strip()[:80]}"


def main():
    found = False
    for path in tracked_files():
        if path.is_symlink() or not path.is_file() or path == pathlib.Path(__file__).resolve():
            continue
        for violation in violations_in(path):
            print(violation)
            found = True
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
