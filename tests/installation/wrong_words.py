#!/usr/bin/env python3
"""./quickstart and ./check refuse words that they don't know before anything is installed or built.

    wrong_words.py SOURCE WORK

The scripts run in a copy, in which the first tool that they call ends them with exit code 9.
"""
import pathlib
import shutil
import subprocess
import sys

source, work = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
failures = []
shutil.rmtree(work, ignore_errors=True)
(work / "tools").mkdir(parents=True)
for script in ("quickstart", "check"):
    shutil.copy(source / script, work / script)
for tool in ("install_packages.sh", "python_packages.sh", "build_with_progress.sh"):
    (work / "tools" / tool).write_text("#!/bin/sh\nexit 9\n")
    (work / "tools" / tool).chmod(0o755)
BEGINS = 9


def expect(code, text, *words):
    done = subprocess.run([work / words[0], *words[1:]], capture_output=True, text=True, timeout=60)
    if done.returncode != code or text not in done.stdout + done.stderr:
        failures.append(f"{' '.join(words)}: exit code {done.returncode}, not {code}, or no {text!r}: {done.stdout}{done.stderr}")


for script in ("quickstart", "check"):
    expect(BEGINS, "", script)
    expect(0, f"./{script} [", script, "--help")
    expect(0, f"./{script} [", script, "-h")
for word in ("2x", "0", "-3", "many", ""):
    expect(2, f"{word} is no number", "quickstart", word)
expect(2, "too many: 4", "quickstart", "3", "4")
expect(BEGINS, "", "quickstart", "3")
for word in ("relaese", "releases", "two words", ""):
    expect(2, f"{word} is no preset", "check", word)
expect(2, "debug is no preset", "check", "release", "debug")
expect(2, "--lable-regex is no option", "check", "asan", "--lable-regex", "unit")
expect(2, "-L has no value", "check", "-L")
for words in (["asan"], ["asan", "-L", "unit"], ["-R", "relaese"], ["tsan", "-LE", "machines|many_fibres", "-V", "-j4"],
              ["-C", "many", "-L", "fibres_x8"], ["--rerun-failed", "--output-on-failure"]):
    expect(BEGINS, "", "check", *words)
if failures:
    sys.exit("\n".join(failures))
