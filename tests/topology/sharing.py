#!/usr/bin/env python3
"""Unmodified programs share mpiexec's topology of hwloc.

    sharing.py --mpiexec M --user HWLOC_USER [--case NAME] [--without-threads]
        [--sanitized USER …]
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import cases
from cases import case, expect

MACHINE = "synthetic:pack:2 numa:2 l3:1 core:4 pu:2"  # 32 PUs

for variable in ("WARREN_RANKS", "HWLOC_XMLFILE", "HWLOC_SYNTHETIC", "HWLOC_COMPONENTS"):
    os.environ.pop(variable, None)
os.environ["HWLOC_PLUGINS_PATH"] = "/nonexistent"  # for speed


def run(*words, machine=MACHINE, variables=None, ranks=1):
    topology = ["--topology", machine] if machine else []
    return subprocess.run([args.mpiexec, "-v", "-n", str(ranks), *topology, *words],
                          capture_output=True, text=True, check=False, timeout=60,
                          stdin=subprocess.DEVNULL, env={**os.environ, **(variables or {})})


def loads(done):
    """How often a topology came from shared memory, XML, discovery and nowhere."""
    found = re.search(r"from shared memory (\d+) times, from XML (\d+) times, discovered (\d+) "
                      r"times, and could not be had (\d+)", done.stderr)
    expect(found, done)
    return tuple(map(int, found.groups()))


def lines(done):
    return [line.split() for line in done.stdout.splitlines()]


@case
def ranks_adopt_one_topology():
    done = run("--hwloc-shmem", args.user, "userdata", ranks=3)
    expect(done.returncode == 0 and loads(done) == (3, 0, 0, 0), done)
    expect([line[:2] for line in lines(done)] == [["32", "0"]] * 3, done)


@case
def adopting_costs_a_kilobyte():
    done = run("--hwloc-shmem", args.user, "loads", "2")  # the first initialises hwloc itself
    expect(loads(done) == (2, 0, 0, 0) and int(lines(done)[1][3]) <= 1536, done)


@case
def the_machine_itself_is_this_system():
    done = run("--hwloc-shmem", args.user, machine=None)
    expect(done.returncode == 0 and loads(done) == (1, 0, 0, 0) and lines(done)[0][1] == "1", done)


@case
def further_loads_adopt_further_copies_and_then_read_xml():
    done = run("--hwloc-shmem=copies=2", args.user, "loads", "4")
    expect(done.returncode == 0 and loads(done) == (2, 2, 0, 0), done)
    expect("all 2 copies are in use" in done.stderr, done)
    expect(len({tuple(line[:3]) for line in lines(done)}) == 1, done)


@case
def each_way_can_be_forced():
    heap = {}
    for way, expected in (("shmem", (2, 0, 0, 0)), ("xml", (0, 2, 0, 0)), ("native", (0, 0, 2, 0))):
        done = run(f"--hwloc-shmem={way}", args.user, "loads", "2")
        expect(done.returncode == 0 and loads(done) == expected, done)
        expect([line[0] for line in lines(done)] == ["32", "32"], done)
        heap[way] = int(lines(done)[1][3])
    expect(heap["shmem"] < 1536 < heap["xml"] and heap["native"] > 1536, heap)


@case
def a_taken_address_falls_back_to_xml():
    done = run("--hwloc-shmem", args.user, "taken")
    expect(done.returncode == 0 and loads(done) == (0, 1, 0, 0) and "taken" in done.stderr, done)
    done = run("--hwloc-shmem=shmem", args.user, "taken")
    expect(done.returncode == 1 and loads(done) == (0, 0, 0, 1), done)
    expect("hwloc_topology_load: Device or resource busy" in done.stderr, done)


@case
def places_can_be_chosen():
    for place in ("at=before-heap", "at=after-heap", "at=0x1f0000000000"):
        done = run(f"--hwloc-shmem={place}", args.user)
        # Sanitizers leave no hole above the heap.
        expect(done.returncode == 0 and
               (loads(done) == (1, 0, 0, 0) or "no such hole" in done.stderr), done)
    expect("at 0x1f0000000000," in done.stderr, done)
    done = run("--hwloc-shmem=at=0x1000", args.user)  # the system's
    expect(loads(done) == (0, 1, 0, 0) and "can't be shared" in done.stderr, done)
    done = run("--hwloc-shmem=shmem,at=0x1000", args.user)
    expect(done.returncode == 1 and not done.stdout, done)


@case
def programs_get_the_objects_that_they_ask_for():
    done = run("--hwloc-shmem", args.user, "devices")
    expect(loads(done) == (0, 0, 1, 0) and "more kinds of objects" in done.stderr, done)
    done = run("--hwloc-shmem=xml,io", args.user, "devices", machine=None)
    expect(done.returncode == 0, done)
    done = run("--hwloc-shmem", args.user, "smaller")
    expect(done.returncode == 0 and loads(done) == (0, 1, 0, 0), done)
    done = run("--hwloc-shmem", args.user, "disallowed")
    expect(loads(done) == (0, 0, 1, 0), done)
    done = run("--hwloc-shmem", args.user, "own")
    expect(loads(done) == (0, 0, 1, 0) and lines(done)[0][0] == "3", done)
    done = run("--hwloc-shmem", "-env", "HWLOC_SYNTHETIC", "pu:5", args.user)
    expect(loads(done) == (0, 0, 1, 0) and lines(done)[0][0] == "5", done)


@case
def an_adopted_topology_can_be_restricted():
    done = run("--hwloc-shmem", args.user, "restrict", ranks=2)
    expect(done.returncode == 0 and loads(done) == (2, 0, 0, 0), done)


@case
def threads_read_xml():
    if args.without_threads:
        return
    done = run("--ranks", "threads", "--hwloc-shmem", args.user, ranks=2)
    expect(done.returncode == 0 and "threads read XML" in done.stderr, done)
    expect([line[0] for line in lines(done)] == ["32"] * 2, done)
    done = run("--ranks", "threads", "--hwloc-shmem=shmem", args.user)
    expect(done.returncode == 2 and "once per process" in done.stderr, done)


@case
def a_user_s_own_preloaded_libraries_stay():
    done = run("--hwloc-shmem", "-env", "LD_PRELOAD", "libm.so.6", "sh", "-c", "echo $LD_PRELOAD")
    expect(re.fullmatch(r"libm\.so\.6:/.*/libwarren-hwloc\.so\n", done.stdout), done)
    expect(not done.stderr.startswith("ERROR"), done)


@case
def a_job_within_a_job_has_its_own():
    done = run("--hwloc-shmem", args.mpiexec, "-v", "-n", "1", "--hwloc-shmem", "--topology",
               "synthetic:pu:7", args.user)
    expect(done.returncode == 0 and lines(done)[0][0] == "7", done)
    done = run("--hwloc-shmem", args.mpiexec, "-n", "1", "sh", "-c", "env; ls -l /proc/self/fd")
    expect("WARREN_HWLOC" not in done.stdout and "warren-hwloc" not in
           done.stdout.replace("libwarren-hwloc", ""), done)


@case
def wrong_sources_are_refused():
    for source, why in (("synthetic:nonsense:2", "no synthetic description"),
                        ("/nonexistent", "No such file"), (__file__, "topology"),
                        ("/dev/null", "/dev/null"), ("/usr", "")):
        done = run("--hwloc-shmem", args.user, machine=source)
        expect(done.returncode == 1 and why in done.stderr and not done.stdout, done)


@case
def without_hwloc_ranks_are_on_their_own():
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "libhwloc.so.15").write_text("no library")
        broken = {"LD_LIBRARY_PATH": folder}
        words = ["-x", "LD_LIBRARY_PATH=", "--bind-to", "none"]
        done = run("--hwloc-shmem", *words, args.user, machine=None, variables=broken)
        expect(done.returncode == 0 and "discover hwloc's topology by themselves" in done.stderr,
               done)
        done = run("--hwloc-shmem=shmem", *words, args.user, machine=None, variables=broken)
        expect(done.returncode == 1 and "libhwloc" in done.stderr, done)


@case
def nothing_stays_when_mpiexec_is_killed():
    job = subprocess.Popen([args.mpiexec, "-n", "2", "--hwloc-shmem", "sleep", "100"],
                           stdin=subprocess.DEVNULL)
    ranks = pathlib.Path(f"/proc/{job.pid}/task/{job.pid}/children")
    deadline = time.monotonic() + 20
    started = []
    while len(started) < 3:  # the guardian, too
        expect(time.monotonic() < deadline, "no ranks")
        started = ranks.read_text().split()
        time.sleep(0.02)
    job.kill()
    job.wait()
    while any(pathlib.Path(f"/proc/{pid}/maps").exists() and
              "Z" not in pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1][:3]
              for pid in started):
        expect(time.monotonic() < deadline, "processes stay")
        time.sleep(0.02)


@case
def sanitized_programs_share_it_or_read_xml():
    for user in args.sanitized:
        done = run("--hwloc-shmem", user, variables={"ASAN_OPTIONS": "detect_leaks=0"}, ranks=2)
        expect(done.returncode == 0 and [line[0] for line in lines(done)] == ["32", "32"], done)
        expect(loads(done) in ((2, 0, 0, 0), (1, 1, 0, 0), (0, 2, 0, 0)), done)


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--user", required=True)
parser.add_argument("--sanitized", action="append", default=[], metavar="USER",
                    help="a program built with a sanitizer")
parser.add_argument("--without-threads", action="store_true",
                    help="no ranks that are threads: sanitizers belong to whole processes")
args = cases.parse(parser)
sys.exit(cases.run(args))
