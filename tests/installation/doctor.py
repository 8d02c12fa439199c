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
import tempfile

build = pathlib.Path(sys.argv[1])
WEIGHTS = ("ok", "note", "hinders", "prevents")
failures = []


def doctor(*words, before=(), expect=0, **options):
    """Its findings by their subjects, each (weight, text with the remedy)."""
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
       "process_vm_readv: Operation not permitted.*remedy: .*SYS_PTRACE")
for call, subject, weight, text in (
        ("memfd_create", "memory files", "prevents", "memfd_create: Operation not permitted.*remedy: .*seccomp"),
        ("membarrier", "membarrier", "hinders", "each message pays a fence.*remedy"),
        ("io_uring_setup", "io_uring", "ok", "io_uring_setup: Operation not permitted.*one node doesn't need it"),
        ("perf_event_open", "page faults", "hinders", "perf_event_open: Operation not permitted.*seccomp"),
        ("process_vm_readv", "single copy", "hinders", "process_vm_readv.*SYS_PTRACE")):
    prevents = weight == "prevents"
    refuse = [build / "tests/refuse_calls", call]
    found = doctor(before=refuse, expect=1 if prevents else 0)
    expect(found, subject, weight, text)
    expect(found, "seccomp", "note", "filters system calls")
    # And it is so.
    job = subprocess.run([*refuse, build / "bin/mpiexec", "--timeout", "60", "-n", "2", build / "bench/launch"],
                         capture_output=True, text=True)
    if (job.returncode != 0) != prevents:
        failures.append(f"without {call} a job ends with {job.returncode}: {job.stderr}")
few = doctor(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024)))
expect(few, "descriptors", "hinders", r"to 1024: \d{3} ranks that are processes.*remedy: as root, ulimit -Hn \d+.*--ranks fibres")
most = int(re.search(r"to 1024: (\d+)", few["descriptors"][1])[1])
for words, code in ((["-n", str(most)], 0), (["-n", str(most + 1)], 1),
                    (["--ranks", "fibres", "-n", str(most + 1)], 0)):
    job = subprocess.run([build / "bin/mpiexec", "--timeout", "120", *words, build / "bench/launch"], capture_output=True,
                         text=True, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024)))
    if (job.returncode != 0) != (code != 0):
        failures.append(f"1,024 descriptors, {words}: exit code {job.returncode}: {job.stderr[-500:]}")
expect(doctor(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (12, 12)), expect=1),
       "descriptors", "prevents", ": 0 ranks that")
narrow = doctor(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 33, 1 << 33)))
expect(narrow, "memory", "hinders", r"ulimit -v is 8388608 kB.*remedy: ulimit -v unlimited")


def with_pids_limit(most):
    """Findings in a control group with room for `most` processes and threads; None: there can't be one."""
    for root in ("/sys/fs/cgroup/pids", "/sys/fs/cgroup"):
        folder = pathlib.Path(root) / f"warren-doctor-{os.getpid()}"
        try:
            folder.mkdir()
        except OSError:
            continue
        try:
            (folder / "pids.max").write_text(str(most))
            return doctor(preexec_fn=lambda: (folder / "cgroup.procs").write_text(str(os.getpid())))
        except OSError:
            continue
        finally:
            folder.rmdir()
    return None


crowded = with_pids_limit(300)
if crowded is None:
    print("LEFT OUT: there can be no control group with a limit of processes")
else:
    expect(crowded, "processes", "hinders", r"room for 29\d more.*pids\.max is 300.*remedy: .*--ranks fibres")
expect(doctor(env={**os.environ, "SLURM_JOB_ID": "17"}), "launcher", "note", "SLURM_JOB_ID=17")
if not any(map(os.path.exists, ("/.dockerenv", "/run/.containerenv", "/.singularity.d"))):
    expect(doctor(env={**os.environ, "container": "lxc"}), "container", "note", "lxc")
expect(doctor(env={**os.environ, "WARREN_PYTHON": "/nowhere/python"}), "reports", "hinders", "/nowhere/python.*remedy: apt-get install python3-numpy.*WARREN_PYTHON")
if shutil.which("unshare") and subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode == 0:
    without = ["unshare", "-m", "sh", "-c", 'umount -l /dev/shm 2> /dev/null; exec "$@"', "sh"]
    expect(doctor(before=without), "memory files", "ok", "/dev/shm is not used")
    bare = doctor(before=["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /proc; mount -t tmpfs none /sys; exec "$@"', "sh"],
                  expect=1)
    expect(bare, "/proc", "prevents", "not mounted.*remedy: mount -t proc")
    if len(bare) != 1:
        failures.append(f"without /proc files that are there are said to be missing: {bare}")
    no_devices = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /dev; exec "$@"', "sh"]
    no_null = doctor(before=no_devices, expect=1)
    expect(no_null, "/dev/null", "prevents", "No such file.*remedy: mknod")
    if no_null["reports"] != doctor()["reports"]:
        failures.append(f"without /dev: {no_null['reports']}")
    job = subprocess.run([*no_devices, build / "bin/mpiexec", "-n", "2", build / "bench/launch"], capture_output=True, text=True)
    if job.returncode != 1 or "/dev/null, the input of" not in job.stderr:
        failures.append(f"without /dev a job ends with {job.returncode}: {job.stderr}")
    no_sys = ["unshare", "-m", "sh", "-c", 'umount -l /sys 2> /dev/null || mount -t tmpfs none /sys; exec "$@"', "sh"]
    expect(doctor(before=no_sys), "huge pages", "note", "unknown")

for program, text in (("bench/latency", "the standard's: .*libmpi_abi.so.1"), ("tests/mpich.truncation", "MPICH's ABI"),
                      ("tests/openmpi.truncation", "Open MPI's ABI")):
    if (build / program).exists():
        expect(doctor(build / program), "ABI", "ok", text)
    else:
        failures.append(f"{program} is not built")
expect(doctor("/nowhere/program", expect=1), "program", "prevents", "No such file.*remedy")
expect(doctor("/etc/passwd", expect=1), "program", "prevents", "Permission denied.*remedy")
expect(doctor("/usr/bin", expect=1), "program", "prevents", "no regular file.*remedy")
expect(doctor(env={**os.environ, "WARREN_RANKS": "nonsense"}, expect=1), "variables", "prevents",
       "WARREN_RANKS needs processes, threads or fibres, not 'nonsense'")
with tempfile.TemporaryDirectory() as scratch:
    cut = pathlib.Path(scratch) / "cut"
    cut.write_bytes((build / "bench/latency").read_bytes()[:100])
    cut.chmod(0o755)
    expect(doctor(cut, expect=1), "program", "prevents", "it is damaged.*remedy")
    script = pathlib.Path(scratch) / "script"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    expect(doctor(script), "as an image", "note", "it is a script: its ranks are processes")
    os.mkfifo(f"{scratch}/fifo", 0o777)
    os.chmod(f"{scratch}/fifo", 0o777)
    expect(doctor(f"{scratch}/fifo", expect=1), "program", "prevents", "no regular file.*remedy")
for words in (["doctor"], ["version"], ["help"], ["node"]):
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run([build / "bin/warren", *words], stdout=full, stderr=subprocess.PIPE, text=True)
    if done.returncode != 1 or "No space left" not in done.stderr:
        failures.append(f"warren {words} > /dev/full: exit code {done.returncode}: {done.stderr}")
doctor("one", "two", expect=2)
doctor("--wrong", expect=2)

if failures:
    sys.exit("\n".join(failures))
