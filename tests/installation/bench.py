#!/usr/bin/env python3
"""`warren bench` finds another MPI, takes turns with it, and says what it left out and why. The others are
Warren itself behind scripts that call themselves Hydra or Open MPI.

    bench.py BUILD WORK
"""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

build, work = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
failures = []
shutil.rmtree(work, ignore_errors=True)


def script(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)


def other(name, says, library):
    """An MPI that calls its launcher and its library so; `library` None: its programs say that they are Warren."""
    folder = work / name / "bin"
    script(folder / "mpiexec", f'[ "$1" = --version ] && echo "{says}" && exit\nexec {build}/bin/mpiexec "$@"\n')
    shim = work / name / "shim.h"
    shim.write_text("" if library is None else
                    "#define _GNU_SOURCE\n#include <mpi.h>\n#include <string.h>\nstatic int other(char* text, int* length) {\n"
                    f'    *length = (int)strlen(strcpy(text, "{library}"));\n    return 0;\n}}\n'
                    "#define MPI_Get_library_version other\n")
    script(folder / "mpicc", f'exec {build}/bin/mpicc -include {shim} "$@"\n')
    return work / name


def bench(*words, expect=0, **environment):
    done = subprocess.run([build / "bin/warren", "bench", *words], capture_output=True, text=True, timeout=250,
                          env={**os.environ, **environment})
    if done.returncode != expect:
        failures.append(f"warren bench {words}: exit code {done.returncode}, not {expect}: {done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def expect(text, pattern):
    if not re.search(pattern, text, re.MULTILINE):
        failures.append(f"no {pattern!r} in:\n{text}")


short = ("--ranks", "3", "--rounds", "1", "--seconds", "0.01")
friend = other("friend", "HYDRA build details", "MPICH Version:      9.9")
liar = other("liar", "Open MPI 9", None)
broken = other("broken", "HYDRA build details", "MPICH")
script(broken / "bin/mpicc", "echo no licence >&2\nexit 1\n")
strange = other("strange", "Telepathy 2", "Telepathy")
text = bench(*short, *(word for path in (friend, liar, broken, strange) for word in ("--mpi", path)))
expect(text, r"^ +Warren \S+ +MPICH 9\.9 ")
expect(text, r"^start and end of 3 ranks, ms +[\d.]+ +[\d.]+ ")
expect(text, r"^private memory of a rank, kB +[\d.]+ +[\d.]+ +failed$")
expect(text, r"^half round trip, 65536 B, µs +[\d.]+ +[\d.]+ +failed$")
expect(text, r"ran with another library: Warren")
expect(text, r"^left out: .*broken.*no licence")
expect(text, r"^left out: .*strange.*Telepathy 2")
# In PATH, with the name that Debian gives it; Warren's own mpiexec is none of the others.
(friend / "bin/mpiexec").rename(friend / "bin/mpiexec.mpich")
(friend / "bin/mpicc").rename(friend / "bin/mpicc.mpich")
(friend / "bin/mpiexec").symlink_to("mpiexec.mpich")
text = bench(*short, PATH=f"{friend}/bin:{build}/bin:{os.environ['PATH']}")
expect(text, r"^MPICH 9\.9: .*/friend/bin/mpiexec\.mpich$")
if text.count(f": {friend}/bin/mpiexec") != 1 or f": {build}/bin/mpiexec" in text:
    failures.append(f"found more than once, or Warren's own:\n{text}")
expect(bench("--help"), r"usage: warren bench")
expect(bench("--ranks", "0", expect=2), "--ranks is 1 to")
expect(bench("--mpi", work / "nowhere", expect=2), "there is no .*nowhere/bin/mpiexec")
expect(bench("--wrong", expect=2), "--wrong")


def living(mark):
    """Processes with this in their environment."""
    for path in pathlib.Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark.encode() in path.read_bytes():
                yield path.parent.name, (path.parent / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            pass


def ended_early(number):
    """While a job runs. Nothing is left but the child of the shell that has become the command."""
    temporary = work / f"temporary{number}"
    temporary.mkdir()
    mark = f"WARREN_TEST_MARK={os.getpid()}.{number}"
    command = f"sleep 600 & exec {build}/bin/warren bench --ranks 2 --rounds 1 --seconds 20 --mpi {strange}"
    shell = subprocess.Popen(["sh", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={
        **os.environ, "TMPDIR": str(temporary), mark.partition("=")[0]: mark.partition("=")[2]})
    until = time.monotonic() + 120
    while not any("/latency " in line and "mpiexec" not in line for _, line in living(mark)) and time.monotonic() < until:
        time.sleep(0.1)
    shell.send_signal(number)
    # (Not until the pipes are closed: the child has them.)
    code = shell.wait(60)
    left = list(living(mark))
    sleepers = [pid for pid, line in left if line.startswith("sleep")]
    for pid in sleepers:
        os.kill(int(pid), signal.SIGKILL)
    said = shell.stderr.read()
    files = list(temporary.iterdir())
    if code != 128 + number or len(left) != 1 or len(sleepers) != 1 or files or "Traceback" in said or said.count("\n") > 2:
        failures.append(f"after signal {number}: exit code {code}, left {left}, files {files}, said {said}")


for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    ended_early(number)
if failures:
    sys.exit("\n".join(failures))
