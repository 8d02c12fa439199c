#!/usr/bin/env python3
"""Runs the commands of README.md and docs/guide against a build tree.

    run_documented_commands.py [--network] BUILD [PAGE…]

Each page has a scratch folder of its own. A block of another language whose first line is a comment
with a file's name is written there; each ```sh block is run by `sh -eu` in it, with BUILD/bin first in
PATH and build/release standing for BUILD. A comment before an sh block says what it needs, or why it is
not run:
    <!-- needs: dynamorio, python-packages -->     left out, loudly, where one of them is missing
    <!-- not run: REASON -->
Prints PAGE:LINE of each block that failed or was left out, the latter again at the end. The exit code is
1 if a block failed, if none was run, or if a page can't be understood: a mistake in a fence or a comment
must not hide a command.
"""

import argparse
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parent.parent
TIME_LIMIT_S = 120  # per block: a thousand times what most take, for machines that are busy
OUTPUT_LIMIT = 4000  # characters of a failed block's output, from its end
FENCE = re.compile(r"^(\s*)```(\S*)\s*$")
MARK = re.compile(r"^<!-- (needs|not run): (\S.*?) -->$")
LIKE_A_MARK = re.compile(r"^\s*<!--\s*(needs|not[ -]run)\b", re.IGNORECASE)
FILE_NAME = re.compile(r"^(?:/\*|#|//|!) ([\w-]+\.\w+)(?: \*/)?$")
OTHER_SHELLS = ("bash", "console", "shell", "zsh")


class PageError(Exception):
    """A line of a page that can't be understood, and why."""

    def __init__(self, line, reason):
        super().__init__(reason)
        self.line = line


def blocks_of(text):
    """Each fenced block as (line, language, lines, mark), mark being (kind, words) or None."""
    lines = text.splitlines()
    number, mark, mark_line = 0, None, 0
    while number < len(lines):
        fence = FENCE.match(lines[number])
        if fence is None:
            if mark and lines[number].strip():
                raise PageError(mark_line, "this comment stands before no sh block")
            found = MARK.match(lines[number])
            if found:
                mark, mark_line = found.groups(), number + 1
            elif LIKE_A_MARK.match(lines[number]):
                raise PageError(number + 1, "write <!-- needs: WHAT --> or <!-- not run: REASON -->")
            number += 1
            continue
        begin = number + 1
        indentation, language = fence.groups()
        end = next((at for at in range(begin, len(lines)) if lines[at].strip() == "```"), None)
        if end is None:
            raise PageError(begin, "this block has no end")
        if language in OTHER_SHELLS or (language == "sh" and indentation):
            raise PageError(begin, "begin a block of commands with ```sh, not indented")
        if mark and language != "sh":
            raise PageError(mark_line, "this comment stands before no sh block")
        yield begin, language, lines[begin:end], mark
        number, mark = end + 1, None
    if mark:
        raise PageError(mark_line, "this comment stands before no sh block")


def number_in(file):
    """The number that a file of the kernel holds; None where there is no such file."""
    try:
        return int(pathlib.Path(file).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def python_of(build):
    """The Python that `warren locality report` of this build takes."""
    own = build.parent / "python/bin/python3"
    return os.environ.get("WARREN_PYTHON") or (str(own) if own.exists() else "python3")


def imports(python, modules):
    try:
        return subprocess.run([python, "-c", f"import {modules}"], capture_output=True,
                              check=False).returncode == 0
    except OSError:
        return False


def calls_gcc(mpicc):
    """Whether a compiler wrapper calls gcc: clang takes other flags of hooks."""
    try:
        said = subprocess.run([mpicc, "--version"], capture_output=True, text=True, check=False).stdout
    except OSError:
        return False
    return "Free Software Foundation" in said


def what_is_there(build, network):
    """Whether each thing is here that a block may need."""
    root = os.geteuid() == 0
    perf_limit = number_in("/proc/sys/kernel/perf_event_paranoid")
    numa_nodes = list(pathlib.Path("/sys/devices/system/node").glob("node[0-9]*"))
    library = build / "lib/warren"
    return {
        "dynamorio": (library / "libwarren-counts.so").exists(),
        "gdb": all(map(shutil.which, ("gdb", "pgrep")))
               and (root or not number_in("/proc/sys/kernel/yama/ptrace_scope")),
        "hooks": (library / "libwarren-hooks.so.0").exists() and calls_gcc(build / "bin/mpicc"),
        "network": network,  # asked for by --network only
        "numa": len(numa_nodes) > 1,
        "perf-events": perf_limit is not None and (root or perf_limit <= 2),
        "python-packages": imports(python_of(build), "numpy, tree_sitter"),
    }


def run_block(script, folder, environment, limit_s):
    """What went wrong with a block; None if nothing did. Ends all processes that it leaves behind."""
    with tempfile.TemporaryFile() as output:  # (a pipe would be held open by such processes)
        process = subprocess.Popen(["sh", "-eu", "-c", script], cwd=folder, env=environment,
                                   stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                                   start_new_session=True)
        try:
            status = process.wait(limit_s)
            problem = f"status {status}"
        except subprocess.TimeoutExpired:
            status, problem = None, f"not ended after {limit_s} s"
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
        if status == 0:
            return None
        output.seek(0)
        return f"{problem}\n{output.read().decode(errors='replace')[-OUTPUT_LIMIT:]}"


def run_page(page, build, there, limit_s=TIME_LIMIT_S):
    """Runs the blocks of one page; returns how many ran and failed, and what was left out, as lines."""
    name = os.path.relpath(page, TOP)
    environment = {**os.environ, "PATH": f"{build}/bin:{os.environ['PATH']}",
                   "PYTHONDONTWRITEBYTECODE": "1"}
    run = failed = 0
    left_out = []
    try:
        blocks = list(blocks_of(page.read_text(encoding="utf-8")))
        for line, _, _, mark in blocks:
            for need in mark[1].split(", ") if mark and mark[0] == "needs" else []:
                if need not in there:
                    raise PageError(line, f"'{need}' can't be needed, but {', '.join(there)}")
    except PageError as error:
        print(f"{name}:{error.line}: FAILED: {error}")
        return 0, 1, []
    with tempfile.TemporaryDirectory() as scratch:
        pathlib.Path(scratch, "build").mkdir()
        pathlib.Path(scratch, "build/release").symlink_to(build)
        for line, language, lines, mark in blocks:
            if language != "sh":
                named = FILE_NAME.match(lines[0]) if lines else None
                if named:
                    pathlib.Path(scratch, named[1]).write_text("\n".join(lines) + "\n", encoding="utf-8")
                continue
            missing = []
            if mark:
                missing = [need for need in mark[1].split(", ") if mark[0] == "needs" and not there[need]]
            if missing or (mark and mark[0] == "not run"):
                reason = f"missing: {', '.join(missing)}" if missing else f"not run: {mark[1]}"
                left_out.append(f"{name}:{line}: LEFT OUT: {reason}")
                continue
            run += 1
            problem = run_block("\n".join(lines), scratch, environment, limit_s)
            if problem:
                failed += 1
                print(f"{name}:{line}: FAILED: {problem}")
    return run, failed, left_out


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--network", action="store_true", help="run blocks that need the network, too")
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("pages", type=pathlib.Path, nargs="*")
    words = parser.parse_args()
    build = words.build.resolve()
    if not (build / "bin/mpiexec").exists():
        sys.exit(f"{build} is no build tree: it has no bin/mpiexec")
    pages = words.pages or [TOP / "README.md", *sorted((TOP / "docs/guide").glob("*.md"))]
    there = what_is_there(build, words.network)
    results = [run_page(page.resolve(), build, there) for page in pages]
    run = sum(result[0] for result in results)
    failed = sum(result[1] for result in results)
    left_out = [line for result in results for line in result[2]]
    print(*left_out, sep="\n")
    print(f"{run} blocks of {len(pages)} pages run, {failed} failed, {len(left_out)} LEFT OUT")
    return 1 if failed or run == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
