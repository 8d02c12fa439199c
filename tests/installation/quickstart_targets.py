#!/usr/bin/env python3
"""The targets that quickstart builds make all that it runs, all that README.md names, and all that is installed.

    quickstart_targets.py SOURCE BUILD

The build tree of the tests has everything, so Ninja is asked what a target makes.
"""
import pathlib
import re
import subprocess
import sys

source, build = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
failures = []


def ninja(*words):
    return subprocess.run(["ninja", "-C", build, "-t", *words], capture_output=True, text=True, check=True).stdout


rules = dict(line.rsplit(": ", 1) for line in ninja("targets", "all").splitlines() if ": " in line)


def inputs_of(name):
    """What a file or a target is made of."""
    lines = ninja("query", name).splitlines()
    names = [line.strip().lstrip("| ") for line in lines[1:] if line.startswith("    ")]
    begin = next((i for i, line in enumerate(lines[1:]) if line.startswith("  outputs:")), len(lines))
    return names[:max(begin - 1, 0)]


def made_by(target):
    """What is made with the target: Ninja leaves out what only names of targets stand for."""
    made, waiting, seen = set(ninja("inputs", target).splitlines()), [target], set()
    while waiting:
        name = waiting.pop()
        seen.add(name)
        for one in inputs_of(name):
            made.add(one)
            if rules.get(one) == "phony" and one not in seen:
                waiting.append(one)
    return made


def is_made(name, made):
    """Also what CMake writes itself, and what is made beside something else, by the same rule."""
    if name in made:
        return True
    if name not in rules:
        return (build / name).exists()
    return set(inputs_of(name)) <= made


def expect(condition, message):
    if not condition:
        failures.append(message)


quickstart = (source / "quickstart").read_text()
readme = (source / "README.md").read_text()
targets = re.findall(r"build_with_progress\.sh \S+ \S+ (\w+)", quickstart)
if targets != ["product", "installed"]:
    sys.exit(f"quickstart builds {targets}; this test knows product and installed")
first, everything = made_by("product"), made_by("installed")

before, after = quickstart.split('say "5/6')
for part, made in ((before, first), (after, everything)):
    names = set(re.findall(r"\$prefix/(\w+/\w+)", part))
    expect(names, "quickstart runs nothing")
    for name in names:
        expect(is_made(name, made), f"quickstart runs {name}, which it has not built")
for name in set(re.findall(r"build/release/(bin/\w+)", readme)):
    expect(is_made(name, first), f"README.md names {name}, which the target product doesn't make")

installed = set()
for script in build.rglob("cmake_install.cmake"):
    for call in re.findall(r"file\(INSTALL DESTINATION [^)]*\)", script.read_text()):
        if "OPTIONAL" not in call:
            installed |= {pathlib.Path(name) for name in re.findall(r'"([^"]+)"', call.split(" FILES ", 1)[-1])}
files = sorted({str(path.relative_to(build)) for path in installed if path.is_relative_to(build)})
expect(len(files) > 20, f"only {len(files)} files of the build tree are installed: has CMake's format changed?")
for name in files:
    expect(is_made(name, everything), f"cmake --install copies {name}, which the target installed doesn't make")
if "warren_counts_client" in rules:
    expect(is_made("warren_counts_client", first), "the target product leaves the client of --mode counts out")

for failure in failures:
    print(failure)
sys.exit(1 if failures else 0)
