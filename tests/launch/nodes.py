#!/usr/bin/env python3
"""Jobs of several nodes, with ordinary programs: every agent runs on this machine.

    nodes.py --mpiexec M --cards PROGRAM [--only PART | --case NAME] [--list]
"""
import argparse
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import cases
from cases import case, expect, wait_until

LAUNCHER = "env NODE={host}"  # tells the nodes apart


def words(*arguments, hosts="a:2,b:2", launcher=LAUNCHER):
    return ["--hosts", hosts, "--launcher", launcher, *arguments]


def run(*arguments, hosts="a:2,b:2", launcher=LAUNCHER, **options):
    return cases.job(args.mpiexec, *words(*arguments, hosts=hosts, launcher=launcher), **options)


class Job(subprocess.Popen):
    """A job that runs meanwhile; `mark` is in the command lines of its ranks."""

    def __init__(self, *arguments, **options):
        super().__init__([args.mpiexec, *words(*arguments)], text=True, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, **options)


def processes(mark):
    """The processes whose command line has this word."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark in (entry / "cmdline").read_text().split("\0"):
                found.append(int(entry.name))
        except OSError:
            pass
    return found


def children(pid):
    return [int(child) for child in
            pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def sleepers(mark):
    return ["sh", "-c", f"echo up; sleep 600; true {mark}", mark]


def wait_for_ranks(job, count):
    for _ in range(count):
        expect(job.stdout.readline() == "up\n", "a rank")


def expect_nothing_left(mark):
    wait_until(lambda: not processes(mark), mark)


@case
def ranks_are_on_their_nodes():
    show = ["sh", "-c", "echo $WARREN_RANK/$WARREN_SIZE"]
    done = run("-l", *show)
    expect(sorted(done.stdout.splitlines()) == [f"[{rank}] {rank}/4" for rank in range(4)], done)
    by_agent = ["sh", "-c", "echo $WARREN_RANK $(ps -o ppid= $$)"]
    for order, groups in (("slot", [{0, 1}, {2, 3}]), ("node", [{0, 2}, {1, 3}])):
        nodes = {}
        for line in run("--map-by", order, *by_agent).stdout.splitlines():
            rank, agent = line.split()
            nodes.setdefault(agent, set()).add(int(rank))
        expect(sorted(nodes.values(), key=min) == groups, (order, nodes))


@case
def ranks_are_threads_or_fibres_too():
    for kind in args.kinds.split(","):
        done = run("--ranks", kind, "--map-by", "node", "-l", "env")
        ranks = set(re.findall(r"^\[(\d)\] WARREN_RANK=\1$", done.stdout, re.M))
        expect(done.returncode == 0 and ranks == {"0", "1", "2", "3"}, (kind, done))


@case
def several_programs_with_directories_and_variables():
    done = run("-n", "1", "-env", "A", "1", "sh", "-c", "echo first $A $B", ":", "-n", "3",
               "-wdir", "/usr", "sh", "-c", "echo second $WARREN_RANK $A$B $(pwd)",
               env=os.environ | {"B": "b"})
    expect(sorted(done.stdout.splitlines()) ==
           ["first 1 b"] + [f"second {rank} b /usr" for rank in (1, 2, 3)], done)


@case
def rank_0_reads_the_standard_input():
    text = "".join(f"{number}\n" for number in range(200_000))
    done = run("sh", "-c", "wc -c", input=text)
    expect(sorted(done.stdout.split()) == sorted([str(len(text)), "0", "0", "0"]), done)
    done = run("sh", "-c", "test $WARREN_RANK = 0 && head -n 1", input=text)
    expect(done.stdout == "0\n", done)


@case
def much_output_comes_whole():
    done = run("sh", "-c", "seq 1 100000")
    expect(len(done.stdout.splitlines()) == 400_000, len(done.stdout))
    expect(sorted(map(int, done.stdout.split()))[-4:] == [100_000] * 4, "numbers")


@case
def ranks_exchange_cards():
    for order in ("slot", "node"):  # (Of processes: the program finds the segment by its environment.)
        done = run("--map-by", order, args.cards, hosts="a:3,b:1,c:2")
        expect(done.returncode == 0 and done.stdout == 6 * "all right\n", (order, done))
    mark = f"cards-{os.getpid()}"
    done = run("-n", "2", args.cards, mark, ":", "-n", "2", "true")
    expect(done.returncode != 0 and "MPI_Init" in done.stderr, done)
    expect_nothing_left(mark)


@case
def a_failure_is_the_jobs():
    done = run("sh", "-c", "test $WARREN_RANK != 3 || exit 7")
    expect(done.returncode == 7 and "node b: rank 3 (sh, pid" in done.stderr, done)
    done = run("sh", "-c", "test $WARREN_RANK != 2 || kill -SEGV $$; sleep 600")
    expect(done.returncode == 128 + signal.SIGSEGV, done)
    expect("node b: rank 2" in done.stderr and done.stderr.count("\n") == 1, done)
    done = run("/nonexistent/program")
    expect(done.returncode == 127 and "/nonexistent/program" in done.stderr, done)


@case
def launchers_that_fail_are_named():
    for launcher, text in (("false {host}", "ended with code 1"),
                           ("no-such-launcher {host}", "no-such-launcher"),
                           ("echo {host}", "its agent is lost")):
        done = run("true", launcher=launcher)
        expect(done.returncode == 1 and text in done.stderr
               and re.search(r"node (a \(ranks 0-1\)|b \(ranks 2-3\)): ", done.stderr),
               (launcher, done))
    # What a shell says first is no frame.
    with tempfile.TemporaryDirectory() as folder:
        script = pathlib.Path(folder) / "launch"
        script.write_text("#!/bin/sh\necho Welcome to $1; shift; exec \"$@\"\n")
        script.chmod(0o755)
        done = run("echo", "hello", launcher=f"{script} {{host}}")
        expect(done.returncode == 0 and done.stdout == 4 * "hello\n", done)


@case
def a_time_limit_ends_all_nodes():
    mark = f"limit-{os.getpid()}"
    done = run("--timeout", "1", *sleepers(mark))
    expect(done.returncode == 124 and "the time limit of 1 s is over" in done.stderr, done)
    expect(done.stderr.count("state of the 2 ranks on node") == 2, done)
    expect_nothing_left(mark)


@case
def signals_reach_the_ranks_of_all_nodes():
    script = "trap 'echo got; exit 0' INT; echo up; while :; do sleep 0.1; done"
    with Job("sh", "-c", script) as job:
        wait_for_ranks(job, 4)
        job.send_signal(signal.SIGINT)
        output, errors = job.communicate(timeout=20)
    expect(output == 4 * "got\n" and job.returncode == 0, (output, errors, job.returncode))


@case
def nothing_is_left_when_mpiexec_is_killed():
    mark = f"front-{os.getpid()}"
    with Job(*sleepers(mark)) as job:
        wait_for_ranks(job, 4)
        job.kill()
        job.wait()
        expect_nothing_left(mark)


@case
def nothing_is_left_when_an_agent_is_killed():
    mark = f"agent-{os.getpid()}"
    with Job(*sleepers(mark)) as job:
        wait_for_ranks(job, 4)
        os.kill(children(job.pid)[1], signal.SIGKILL)
        began = time.monotonic()
        _, errors = job.communicate(timeout=20)
        expect(time.monotonic() - began < 10, "time")
    expect(job.returncode == 1 and "node b (ranks 2-3): its agent is lost" in errors
           and "SIGKILL" in errors, errors)
    expect_nothing_left(mark)


@case
def a_second_signal_ends_at_once():
    mark = f"second-{os.getpid()}"
    with Job("sh", "-c", f"trap '' INT TERM; echo up; while :; do sleep 0.1; done; true {mark}",
             mark) as job:
        wait_for_ranks(job, 4)
        job.send_signal(signal.SIGINT)
        time.sleep(0.3)
        job.send_signal(signal.SIGINT)
        job.communicate(timeout=10)
    expect(job.returncode == 128 + signal.SIGINT, job.returncode)
    expect_nothing_left(mark)


@case
def slurms_allocation_is_taken():
    with tempfile.TemporaryDirectory() as folder:
        script = pathlib.Path(folder) / "srun"
        script.write_text("#!/bin/sh\nwhile case $1 in --*) true;; *) false;; esac; do shift; done\n"
                          "exec \"$@\"\n")
        script.chmod(0o755)
        variables = os.environ | {"PATH": f"{folder}:{os.environ['PATH']}", "SLURM_JOB_ID": "1",
                                  "SLURM_JOB_NODELIST": "n[1-2]", "SLURM_TASKS_PER_NODE": "2(x2)"}
        done = cases.job(args.mpiexec, "-v", "sh", "-c", "echo $WARREN_RANK", env=variables)
        expect(sorted(done.stdout.split()) == ["0", "1", "2", "3"], done)
        expect("--nodelist=n2" in done.stderr, done)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--cards", required=True, type=os.path.abspath)
    parser.add_argument("--kinds", default="processes,threads,fibres", help="of ranks")
    args = cases.parse(parser)
    sys.exit(cases.run(args))
