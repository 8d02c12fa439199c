#!/usr/bin/env python3
"""analyser/dynamorio/build finds a cargo that is new enough, among the system's packages too, and says what to do
where there is none.

    dynamorio_source.py SOURCE

Commands of the system are stand-ins; that of cargo brings a source without content, which the script refuses.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

source = pathlib.Path(sys.argv[1])
failures = []
BUILD = "analyser/dynamorio/build"
version = re.search(r"^version=(\S+)", (source / BUILD).read_text(), re.M)[1]
checksum = re.search(r"^sum=(\S+)", (source / BUILD).read_text(), re.M)[1]

# By package: its version, what apt-cache says of it.
BOOKWORM = {"cargo": "0.66.0+ds1-1", "cargo-web": "1.85.0+dfsg2-1~deb12u1"}
TRIXIE = {"cargo": "1.85.0+dfsg3-1"}
BULLSEYE = {"cargo": "0.47.0-3"}


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)


def cargo(number, checked):
    return f"""case $1 in
--version) echo 'cargo {number} (0000 2025-01-01)' ;;
fetch)
    echo 'checksum = "{checked}"' > Cargo.lock
    mkdir -p "$CARGO_HOME/registry/src/one/dynamorio-sys-{version}/dynamorio"
    touch "$CARGO_HOME/registry/src/one/dynamorio-sys-{version}/dynamorio/CMakeLists.txt" ;;
esac
"""


def run(packages, present=None, checked=checksum):
    """What the script says, and which packages it asks for."""
    with tempfile.TemporaryDirectory() as folder:
        top = pathlib.Path(folder)
        for name in ("build", "dynamorio.patch"):
            (top / "analyser/dynamorio").mkdir(parents=True, exist_ok=True)
            shutil.copy(source / "analyser/dynamorio" / name, top / "analyser/dynamorio" / name)
        write(top / "ready", cargo("1.85.0", checked))
        write(top / "tools/install_packages.sh",
              f'echo "$@" >> "{top}/asked"\ncase " $* " in *" cargo"*) cp "{top}/ready" "{top}/bin/cargo" ;; esac\n')
        (top / "asked").touch()
        (top / "bin").mkdir()
        for name in ("sh", "awk", "sed", "sort", "head", "cat", "cut", "sha256sum", "mkdir", "rm", "mktemp", "dirname",
                     "readlink", "grep", "dpkg", "cp", "touch"):
            if shutil.which(name):
                (top / "bin" / name).symlink_to(shutil.which(name))
        write(top / "bin/apt-cache", "case $2 in\n" + "".join(
            f"{name}) printf '{name}:\\n  Installed: (none)\\n  Candidate: {number}\\n' ;;\n"
            for name, number in packages.items()) + "esac\n")
        if present is not None:
            write(top / "bin/cargo", cargo(present, checked))
        environment = {"PATH": str(top / "bin"), "HOME": folder, "CARGO_HOME": str(top / "cargo"), "LC_ALL": "C"}
        done = subprocess.run([top / BUILD], env=environment, capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout + done.stderr, (top / "asked").read_text()


def expect(condition, *what):
    if not condition:
        failures.append(what)


REFUSED = "isn't as in DynamoRIO"  # the stand-in's source has been fetched
if shutil.which("dpkg"):
    for packages, wanted in ((BOOKWORM, "cargo-web"), (TRIXIE, "cargo")):
        status, text, asked = run(packages)
        expect(status == 1 and REFUSED in text, packages, status, text)
        expect(f"{wanted} ca-certificates" in asked.splitlines(), packages, asked)
        expect("cargo, which fetches" in text and wanted in text, packages, text)
    status, text, asked = run(BOOKWORM, present="1.63.0")
    expect(status == 1 and "cargo-web ca-certificates" in asked.splitlines(), asked, text)
    status, text, asked = run(BULLSEYE)
    expect(status == 1 and "DYNAMORIO_SOURCE" in text and "rustup" in text, text)
    expect("--update" in asked.splitlines(), asked)
status, text, asked = run(BOOKWORM, present="1.80.1")
expect(status == 1 and REFUSED in text and "cargo" not in asked, asked, text)
status, text, _ = run(TRIXIE, present="1.85.0", checked="0" * 64)
expect(status == 1 and "is not the one that is known" in text, text)

for failure in failures:
    print(*failure)
sys.exit(1 if failures else 0)
