#!/usr/bin/env python3
"""Checks the documents: README.md, CONTRIBUTING.md, bench/README.md, docs/ and analyser/docs/.

Relative links lead to files that exist. Documents keep their limits of words (as `wc -w` counts). Paths
of source files in backticks exist, from the top or from src/ and its like. Prints FILE:LINE: reason; the
exit code is 1 if there is any.
"""

import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent
DOCUMENTS = ("README.md", "CONTRIBUTING.md", "docs/**/*.md", "analyser/docs/**/*.md", "bench/README.md")
# Patterns of documents and their limit: of each document, or of all together.
EACH = {
    "README.md": 400,
    "docs/ARCHITECTURE.md": 2000,
    "docs/GLOSSARY.md": 600,
    "docs/guide/*.md": 500,
    "docs/internals/*.md": 900,
    "bench/README.md": 3000,
}
TOGETHER = {
    ("docs/STYLE.md", "CONTRIBUTING.md"): 700,
    ("analyser/docs/*.md",): 2500,
}

FENCE = re.compile(r"^\s*(```|~~~)")
# (The text of a link may begin in the line before.)
LINK = re.compile(r"\]\(<?([^)\s>]+)|^\[[^\]]+\]:\s*(\S+)")
ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:|#|/")
CODE = re.compile(r"`([^`]+)`")
SOURCE = re.compile(r"(?!/)[\w./-]*/[\w.-]+\.(?:[ch]pp|[ch]|py|f90|inc|map|patch|cmake|tsv|js|css)")
# What a build or an installation has, not the repository; and headers that a build generates.
BUILT = ("build", "bin", "lib", "share")
GENERATED = {"mpi/calls.hpp"}
PLACEHOLDER = re.compile(r"(?:^|[/_.])[A-Z]{2,}(?=[/_.])")
ROW = re.compile(r"^\| `([a-z_/]+)` \|")


def lines_of(text):
    """The numbered lines outside of fenced code."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if FENCE.match(line):
            fenced = not fenced
        elif not fenced:
            yield number, line


def broken_links(_, path, line):
    for match in LINK.finditer(CODE.sub("", line)):
        target = match[1] or match[2]
        if not ELSEWHERE.match(target) and not (path.parent / target.split("#")[0]).exists():
            yield f"the link to {target} leads nowhere"


def missing_sources(top, path, line):
    folders = [top, top / "src", top / "include"]
    if path.is_relative_to(top / "analyser"):
        folders.append(top / "analyser")
    row = ROW.match(line)  # of the table of rooms: paths are relative to the room
    if row:
        folders += [top / "src" / row[1], top / row[1]]
    for name in CODE.findall(line):
        if (not SOURCE.fullmatch(name) or name in GENERATED or name.split("/")[0] in BUILT
                or PLACEHOLDER.search(name)):
            continue
        if not any((folder / name).exists() for folder in folders):
            yield f"there is no file {name}"


def too_long(top):
    def words(path):
        return len(path.read_text(encoding="utf-8").split())

    for pattern, limit in EACH.items():
        for path in sorted(top.glob(pattern)):
            if words(path) > limit:
                yield f"{path}:1: {words(path)} words, the limit is {limit}"
    for patterns, limit in TOGETHER.items():
        paths = [path for pattern in patterns for path in sorted(top.glob(pattern))]
        total = sum(map(words, paths))
        if total > limit:
            yield f"{paths[0]}:1: {total} words with {' and '.join(patterns)}, the limit is {limit}"


def check(top):
    """The violations in the documents of the tree `top`, as lines of text."""
    violations = []
    for pattern in DOCUMENTS:
        for path in sorted(top.glob(pattern)):
            for number, line in lines_of(path.read_text(encoding="utf-8")):
                for find in (broken_links, missing_sources):
                    violations += [f"{path}:{number}: {reason}" for reason in find(top, path, line)]
    return violations + list(too_long(top))


def main():
    violations = check(TOP)
    for violation in violations:
        print(violation)
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
