#!/usr/bin/env python3
"""What `warren doctor` says where something stands in the way.

    doctor.py BUILD
"""
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys

build = pathlib.Path(sys.argv[1])
WEIGHTS = ("ok", "note", "hinders", "prevents")
failures = []


def doctor(*words, before=(), expect=0, **options):
    """Its findings by their subjects, each (weight, text with the mend)."""
    done = subprocess.run([*before, build / "bin/warren", "doctor", *words], capture_output=True, text=True, timeout=120,
                          **options)
    if done.returncode != expect:
        failures.append(f"doctor {words}: exit code {done.returncode}, not {expect}: {done.stdout}{done.stderr}")
    found = {}
    subject = None
    for line in done.stdout.partition("\n\n")[0].splitlines():
        weight, name, text = line[:10].strip(), line[10:25].strip(), line[26:]
        if weight:
            subject = name
            if weight not in WEIGHTS:
                failures.append(f"a weight of its own: {line}")
        found[subject] = (weight or found[subject][0], found.get(subject, ("", ""))[1] + text)
    return found


def expect(found, subject, weight, text):
    what = found.get(subject)
    if what is None or what[0] != weight or not re.search(text, what[1]):
        failures.append(f"{subject}: {what}, not {weight}, {text}")


expect(doctor(), "memory files", "ok", "/dev/shm is not used")
expect(doctor(), "hwloc", "ok", "found")
expect(doctor(before=[build / "tests/refuse_cma"]), "single copy", "hinders",
       "process_vm_readv: Operation not permitted.*mend: .*SYS_PTRACE")
few = doctor(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024)))
expect(few, "descriptors", "hinders", r"to 1024: \d{3} ranks.*mend: ulimit -Hn \d+")
expect(doctor(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (12, 12)), expect=1),
       "descriptors", "prevents", ": 0 ranks")
narrow = doctor(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 33, 1 << 33)))
expect(narrow, "memory", "hinders", r"ulimit -v is 8388608 kB.*mend: ulimit -v unlimited")
expect(doctor(env={**os.environ, "SLURM_JOB_ID": "17"}), "launcher", "note", "SLURM_JOB_ID=17")
expect(doctor(env={**os.environ, "WARREN_PYTHON": "/nowhere/python"}), "reports", "hinders", "/nowhere/python.*mend")
if shutil.which("unshare") and subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode == 0:
    without = ["unshare", "-m", "sh", "-c", 'umount -l /dev/shm 2> /dev/null; exec "$@"', "sh"]
    expect(doctor(before=without), "memory files", "ok", "/dev/shm is not used")

for program, text in (("bench/latency", "the standard's: .*libmpi_abi.so.1"), ("tests/mpich.truncation", "MPICH's ABI"),
                      ("tests/openmpi.truncation", "Open MPI's ABI")):
    if (build / program).exists():
        expect(doctor(build / program), "ABI", "ok", text)
    else:
        failures.append(f"{program} is not built")
expect(doctor("/nowhere/program", expect=1), "program", "prevents", "No such file.*mend")
expect(doctor("/etc/passwd", expect=1), "program", "prevents", "Permission denied.*mend")
doctor("one", "two", expect=2)
doctor("--wrong", expect=2)

if failures:
    sys.exit("\n".join(failures))
