#!/usr/bin/env python3
"""Runs the commands of README.md and docs/guide against a build tree.

    run_documented_commands.py BUILD [PAGE…]

Each page has a scratch folder of its own. A ```c or ```python block whose first line is a comment
with a file's name is written there; each ```sh block is run by `sh -eu` in it, with BUILD/bin first in
PATH and build/release standing for BUILD. A comment before a block says what it needs, or why it is not
run:
    <!-- needs: dynamorio -->        left out, loudly, where that is missing
    <!-- not run: REASON -->
Prints PAGE:LINE of each block that failed; the exit code is 1 if there is any.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parent.parent
TIME_LIMIT_S = 240
FENCE = re.compile(r"^```(\w*)\s*$")
MARK = re.compile(r"^<!-- (needs|not run): (.*) -->$")
FILE_NAME = re.compile(r"^(?:/\*|#|//) ([\w.]+)(?: \*/)?$")


def blocks_of(text):
    """Each fenced block as (line, language, lines, mark), mark being (kind, words) or None."""
    lines = text.splitlines()
    number, mark = 0, None
    while number < len(lines):
        fence = FENCE.match(lines[number])
        if fence:
            begin = number + 1
            number = begin
            while number < len(lines) and lines[number].rstrip() != "```":
                number += 1
            yield begin, fence.group(1), lines[begin:number], mark
            mark = None
        elif MARK.match(lines[number]):
            mark = MARK.match(lines[number]).groups()
        elif lines[number].strip():
            mark = None
        number += 1


def can_record():
    """Whether the kernel lets this user have performance events."""
    try:
        limit = int(pathlib.Path("/proc/sys/kernel/perf_event_paranoid").read_text())
    except (OSError, ValueError):
        return False
    return limit <= 2 or os.geteuid() == 0


def available(build):
    """What a block may need, and whether it is here."""
    folder = build / "lib/warren"
    return {"dynamorio": (folder / "libwarren-counts.so").exists(),
            "hooks": (folder / "libwarren-hooks.so").exists() and shutil.which("gcc") is not None,
            "perf-events": can_record(),
            "python-packages": (TOP / "build/python/requirements.txt").exists()}


def run_page(page, build, there):
    """Runs the blocks of one page; returns (run, failed)."""
    name = page.relative_to(TOP).as_posix()
    environment = {**os.environ, "PATH": f"{build}/bin:{os.environ['PATH']}",
                   "PYTHONDONTWRITEBYTECODE": "1"}
    if there["python-packages"]:
        environment.setdefault("WARREN_PYTHON", str(TOP / "build/python/bin/python3"))
    run = failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        pathlib.Path(scratch, "build").mkdir()
        pathlib.Path(scratch, "build/release").symlink_to(build)
        for line, language, lines, mark in blocks_of(page.read_text(encoding="utf-8")):
            named = FILE_NAME.match(lines[0]) if lines else None
            if language != "sh":
                if named:
                    pathlib.Path(scratch, named.group(1)).write_text("\n".join(lines) + "\n")
                continue
            if mark and mark[0] == "not run":
                print(f"{name}:{line}: not run: {mark[1]}")
                continue
            needs = mark[1].split(", ") if mark else []
            missing = [need for need in needs if not there[need]]
            if missing:
                print(f"{name}:{line}: LEFT OUT: {', '.join(missing)} is missing")
                continue
            run += 1
            try:
                done = subprocess.run(["sh", "-eu", "-c", "\n".join(lines)], cwd=scratch, env=environment,
                                      capture_output=True, text=True, timeout=TIME_LIMIT_S,
                                      stdin=subprocess.DEVNULL)
                problem = f"status {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
                bad = done.returncode != 0
            except subprocess.TimeoutExpired:
                problem, bad = f"not ended after {TIME_LIMIT_S} s", True
            if bad:
                failed += 1
                print(f"{name}:{line}: FAILED: {problem}")
    return run, failed


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    build = pathlib.Path(sys.argv[1]).resolve()
    pages = [pathlib.Path(page).resolve() for page in sys.argv[2:]] or \
        [TOP / "README.md", *sorted((TOP / "docs/guide").glob("*.md"))]
    there = available(build)
    results = [run_page(page, build, there) for page in pages]
    run = sum(result[0] for result in results)
    failed = sum(result[1] for result in results)
    print(f"{run} blocks of {len(pages)} pages run, {failed} failed")
    return 1 if failed or run == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
