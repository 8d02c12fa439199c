#!/usr/bin/env python3
"""Ordinary programs as ranks that are threads, or fibres, of one process: mpiexec shows what it shows of process
ranks, and says of their ends what it says of processes'.

    ordinary_programs.py --mpiexec M --fixtures FOLDER --endings PROGRAM [--ranks fibres] [--times 8]
                         [--only PART | --case NAME] [--list]
"""
import argparse
import collections
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import cases
from cases import case, expect


def run(*arguments, **options):
    return cases.job(args.mpiexec, *arguments, **options)


def fixture(name):
    return os.path.join(args.fixtures, name)


def counts(*listed):
    return [args.times * count for count in (listed[1:2] if args.few else listed)]


def of_each_rank(text):
    """The lines of each rank, in its order; mpiexec's own without process numbers."""
    lines = collections.defaultdict(list)
    for line in text.splitlines():
        match = re.match(r"\[(\d+)\] ?(.*)", line)
        if match:
            lines[int(match[1])].append(match[2])
        else:
            lines["mpiexec"].append(re.sub(r": its stack is full.*", "", re.sub(r"pid \d+", "pid", line)))
    return lines


def without_rank(lines):
    """Of several ranks that fail alike, mpiexec names the one that it sees first."""
    lines["mpiexec"] = [re.sub(r"rank \d+", "rank", line) for line in lines["mpiexec"]]
    return lines


def expect_same(ranks, *program):
    shown = {}
    for kind in ("processes", args.ranks):
        done = run("--ranks", kind, "-l", "-n", str(ranks), *program)
        shown[kind] = (done.returncode, of_each_rank(done.stdout), without_rank(of_each_rank(done.stderr)), done)
    for part in range(3):
        expect(shown[args.ranks][part] == shown["processes"][part],
               f"{ranks} ranks of {program}: as {args.ranks} {shown[args.ranks][part]}, "
               f"as processes {shown['processes'][part]}")
    return shown[args.ranks][3]


@case
def c_and_cxx_programs_do_what_they_do_as_processes():
    for name in ("everything_c_O0", "everything_c_O3", "everything_cpp_O0", "everything_cpp_O3"):
        words = ("first", "-n", "4", "second") if "_c_" in name else ("7",)
        for ranks in counts(1, 2, 16, 64):
            output = of_each_rank(expect_same(ranks, fixture(name), *words).stdout)
            expect(all(len(output[rank]) > 5 for rank in range(ranks)), (name, output))


@case
def fortran_programs_do_what_they_do_as_processes():
    for name in ("everything_fortran_O0", "everything_fortran_O3"):
        program = os.path.join(os.path.dirname(args.endings), name)
        if not os.path.exists(program):
            return
        for ranks in counts(1, 2, 16, 64):
            output = of_each_rank(expect_same(ranks, program, "word").stdout)
            expect(all(len(output[rank]) > 5 for rank in range(ranks)), (name, output))
        expect(expect_same(2, program, "stop").returncode == 7, name)


@case
def ranks_have_openmp_threads():
    if not os.path.exists(fixture("openmp")):
        return
    for ranks in counts(1, 2, 8):
        # Its exit code is its number of threads.
        expect(expect_same(ranks, fixture("openmp"), "2").returncode == 2, ranks)


@case
def ranks_have_arguments_variables_and_directories_of_their_own():
    with tempfile.TemporaryDirectory() as folder:
        folder = os.path.realpath(folder)
        directory = ["-wdir", folder]
        if args.ranks == "fibres":  # which share it
            folder, directory = os.getcwd(), []
        done = run("--ranks", args.ranks, "-l", "-n", "2", "-env", "SAID", "one", args.endings, "say", ":",
                   "-n", "1", *directory, "-env", "SAID", "two", args.endings, "say", "more")
        lines = of_each_rank(done.stdout)
        here = os.getcwd()
        expect(lines[0] == [f"rank 0 of 3 in {here}: one, 2 words, counted 1"], done)
        expect(lines[1] == [f"rank 1 of 3 in {here}: one, 2 words, counted 1"], done)
        expect(lines[2] == [f"rank 2 of 3 in {folder}: two, 3 words, counted 1"], done)


@case
def input_goes_to_rank_0():
    done = run("--ranks", args.ranks, "-l", "-n", "3", args.endings, "read", stdin=None, input="hello\n")
    expect(sorted(done.stdout.splitlines()) == ["[0] 6 bytes", "[1] 0 bytes", "[2] 0 bytes"], done)


@case
def ranks_end_as_processes_do():
    for way, code in (("exit", 9), ("return", 3), ("quick_exit", 5), ("_exit", 6), ("exit_thread", 4),
                      ("closed_exit", 10)):
        expect(expect_same(3, args.endings, way, "1").returncode == code, way)


@case
def ranks_wait_for_their_own_children():
    done = expect_same(8, args.endings, "children")
    expect(sorted(done.stdout.splitlines()) == [f"[{rank}] 3 children" for rank in range(8)], done)


@case
def crashes_are_said_of_the_rank_that_crashes():
    for way, code in (("segv", 139), ("abort", 134), ("fpe", 136), ("overflow", 139), ("heap", 134),
                      ("thread_segv", 139), ("closed_segv", 139), ("trap", 133), ("pipe", 141)):
        if way == "heap" and (args.sanitized or args.ranks == "fibres"):
            continue  # whose allocator has its own way to end; and whose library writes to the process's errors
        done = expect_same(4, args.endings, way, "2")
        expect(done.returncode == code, (way, done))
        expect(re.search(r"^mpiexec: rank 2 \(\S*endings, pid \d+\) was killed by", done.stderr, re.M), (way, done))
        expect(done.stdout == "[2] about to end\n", (way, done))


@case
def ranks_redirect_their_own_output():
    done = expect_same(3, args.endings, "redirect")
    expect(done.stdout.count("back\n") == 3 and "hidden" not in done.stdout, done)
    few = None
    if args.ranks == "fibres":  # which share pipes when descriptors are few
        def few():
            resource.setrlimit(resource.RLIMIT_NOFILE, (140, 140))
        done = run("--ranks", "fibres", "-v", "-n", "20", args.endings, "redirect", preexec_fn=few)
        expect("ranks each share pipes" in done.stderr, done)
        expect(done.stdout.count("back\n") == 20 and "hidden" not in done.stdout, done)
        with tempfile.TemporaryDirectory() as folder:
            done = run("--ranks", "fibres", "-n", "20", args.endings, "full", f"{folder}/started", preexec_fn=few)
        expect(done.returncode == 0, done)
    for ranks in (4, 20):
        done = run("--ranks", args.ranks, "-n", str(ranks), args.endings, "streams", preexec_fn=few)
        expect(done.returncode == 0 and done.stdout == ranks // 2 * "seen\n", done)
        done = run("--ranks", args.ranks, "-n", str(4 * ranks), args.endings, "close_early", preexec_fn=few)
        expect(done.returncode == 0 and done.stdout.count("seen\n") == 4 * ranks, done)
        with tempfile.TemporaryDirectory() as folder:
            done = run("--ranks", args.ranks, "-n", str(ranks), args.endings, "close_all", f"{folder}/started",
                       preexec_fn=few)
        expect(done.returncode == 0 and done.stdout.count("seen\n") == 2 * ranks and
               done.stderr.count("seen\n") == ranks, done)


@case
def sleeps_end_while_others_poll():
    done = run("--ranks", args.ranks, "-n", "9", args.endings, "poll", timeout=60)
    expect(done.returncode == 0 and done.stdout.count("slept") == 1, done)


@case
def ranks_have_handlers_of_their_own_for_crashes():
    if args.sanitized and args.ranks == "fibres":
        return  # the sanitizer asks the system's thread for its stack, which is not the fibre's
    done = expect_same(3, args.endings, "handled_segv", "1")
    expect(done.returncode == 12 and "[1] rank 1 has signal 11\n" in done.stdout, done)
    done = expect_same(3, args.endings, "handled_abort", "1")
    expect(done.returncode == 134 and "[1] rank 1 has signal 6\n" in done.stdout, done)
    fortran = os.path.join(os.path.dirname(args.endings), "everything_fortran_O0")
    if os.path.exists(fortran):  # whose library has a handler that prints where the program was
        done = run("--ranks", args.ranks, "-l", "-n", "3", fortran, "crash")
        expect(done.returncode == 139 and "mpiexec: rank 1 (" in done.stderr and "[1] Backtrace for" in done.stderr,
               done)


def host_of(job):
    children = pathlib.Path(f"/proc/{job.pid}/task/{job.pid}/children")
    for pid in children.read_text().split():
        if pathlib.Path(f"/proc/{pid}/comm").read_text().startswith("warren-rank-hos"):
            return int(pid)
    return 0


def waiting_job(ranks):
    job = subprocess.Popen([args.mpiexec, "--ranks", args.ranks, "-n", str(ranks), args.endings, "wait"],
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for _ in range(ranks):
        expect(job.stdout.readline() == "waiting\n", "no rank")
    return job, host_of(job)


@case
def the_end_of_the_whole_process_is_told():
    job, host = waiting_job(3)
    os.kill(host, signal.SIGKILL)
    _, errors = job.communicate(timeout=60)
    expect(job.returncode == 137 and f"ranks 0-2 ({args.endings}, pid {host}) were killed by SIGKILL" in errors,
           (job.returncode, errors))


@case
def nothing_is_left_when_mpiexec_is_killed():
    job, host = waiting_job(3)
    job.kill()
    job.communicate(timeout=60)
    deadline = time.monotonic() + 60
    while os.path.exists(f"/proc/{host}/cwd"):
        expect(time.monotonic() < deadline, "the host process lives on")
        time.sleep(0.02)


@case
def signals_and_time_limits_end_all_ranks():
    job, _ = waiting_job(3)
    job.send_signal(signal.SIGINT)
    _, errors = job.communicate(timeout=60)
    expect(job.returncode == 130 and "SIGINT" in errors, (job.returncode, errors))
    done = run("--ranks", args.ranks, "--timeout", "1", "-n", "3", args.endings, "wait")
    expect(done.returncode == 124 and "ranks 0-2: not initialised; " in done.stderr, done)


@case
def deadlocks_and_full_stacks_are_told():
    if args.ranks == "fibres":
        done = run("--ranks", "fibres", "-n", "3", "--stack-size", "128k", args.endings, "overflow", "1")
        expect("rank 1 (" in done.stderr and "its stack is full" in done.stderr, done)
        done = run("--ranks", "fibres", "-v", "-n", "5", "--workers", "1", "--timeout", "1", args.endings, "wait")
        expect(done.stdout == 5 * "waiting\n" and "another worker takes over" in done.stderr, done)
        if args.hanging:
            done = run("--ranks", "fibres", "-n", "4", args.hanging)
            expect(done.returncode == 125 and "deadlock: all ranks" in done.stderr and
                   "ranks 1-3: waits in MPI_Recv, peer 0" in done.stderr, done)


@case
def what_can_not_be_is_refused_with_the_remedy():
    done = run("--ranks", args.ranks, "-n", "2", fixture("fixed_address"))
    expect(done.returncode == 126 and "-fPIE" in done.stderr and "--ranks processes" in done.stderr, done)
    done = run("--ranks", args.ranks, "-n", "2", fixture("static"))
    expect(done.returncode == 126 and "-static" in done.stderr, done)
    with tempfile.TemporaryDirectory() as folder:
        script = pathlib.Path(folder) / "script"
        script.write_text("#!/bin/sh\n")
        script.chmod(0o755)
        done = run("--ranks", args.ranks, str(script))
        expect(done.returncode == 126 and "is no program" in done.stderr, done)
    done = run("--ranks", args.ranks, "-env", "LD_PRELOAD", "libc.so.6", args.endings, "return", "0")
    expect("has no MPI procedures" in done.stderr, done)
    done = run("--ranks", args.ranks, "--keep-going", "-n", "2", args.endings, "return", "0")
    expect(done.returncode == 2 and "--keep-going" in done.stderr, done)
    for value, code in (("threads", 126), ("processes", 0), ("fibres", 126), ("green", 2)):
        done = run("-n", "2", fixture("fixed_address"), env=os.environ | {"WARREN_RANKS": value})
        expect((done.returncode == code) and (value == "processes" or done.stderr != ""), (value, done))


@case
def each_rank_has_a_copy_of_another_library():
    folder = os.path.dirname(args.endings)
    library, user = os.path.join(folder, "libmpi_abi.so.1"), os.path.join(folder, "library_user")
    if not os.path.exists(user) or args.ranks == "fibres":
        return
    for ranks in (1, 2, 16):
        done = run("--ranks", args.ranks, "--library", library, "-l", "-n", str(ranks), user)
        expect(sorted(done.stdout.splitlines()) == sorted(
            f"[{rank}] rank {rank} of {ranks}, the next has card {(rank + 1) % ranks + 1000}, used once"
            for rank in range(ranks)) and done.returncode == 0, done)
    done = run("--ranks", args.ranks, "--library", library, "-n", "3", user, "abort")
    expect(done.returncode == 9 and "rank 1 (" in done.stderr and "aborted with code 9: told so" in done.stderr, done)
    done = run("--library", library, "-n", "3", user)
    expect(done.returncode == 2 and "for --ranks threads" in done.stderr, done)
    done = run("--ranks", args.ranks, "--library", "/nowhere/libmpi_abi.so.1", "-n", "3", user)
    expect(done.returncode == 2 and "/nowhere/libmpi_abi.so.1: No such file" in done.stderr, done)


@case
def the_host_program_is_for_mpiexec_only():
    host = os.path.join(os.path.dirname(args.mpiexec), "..", "libexec", "warren", "warren-rank-host")
    done = subprocess.run([host, "0"], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          timeout=60, check=False)
    expect(done.returncode == 1 and "for mpiexec only" in done.stderr, done)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixtures", required=True)
    parser.add_argument("--endings", required=True, help="the program endings.c beside this file")
    parser.add_argument("--ranks", choices=("threads", "fibres"), default="threads")
    parser.add_argument("--hanging", help="the program hanging.c beside this file")
    parser.add_argument("--times", type=int, default=1, help="so many times the numbers of ranks")
    parser.add_argument("--few", action="store_true", help="one number of ranks, the smallest")
    parser.add_argument("--sanitized", action="store_true", help="Warren is built with a sanitizer")
    args = cases.parse(parser)
    args.endings = os.path.abspath(args.endings)
    sys.exit(cases.run(args))
