#!/usr/bin/env python3
"""Worlds that meet and end: jobs that connect, spawn, fail and are killed.

    worlds.py --mpiexec M --partner PROGRAM [--only PART | --case NAME] [--list]
"""
import argparse
import os
import pathlib
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import cases
from cases import case, expect, wait_until


def command(ranks, *arguments):
    return [args.mpiexec, "-n", str(ranks), args.partner, *arguments]


def start(words):
    return subprocess.Popen(words, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            stdin=subprocess.DEVNULL)


def run(words):
    return subprocess.run(words, text=True, capture_output=True, stdin=subprocess.DEVNULL,
                          check=False, timeout=100)


def processes(mark, program=None):
    """The processes whose command line has this word, and begins with the program."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_text().split("\0") if entry.name.isdigit() else []
            if mark in words and program in (None, words[0]):
                found.append(int(entry.name))
        except OSError:
            pass
    return found


def mark():
    return f"mark.{os.getpid()}.{id(object())}"


def succeeded(job, *lines):
    expect(job.returncode == 0, f"exit code {job.returncode}: {job.stderr}")
    expect(sorted(job.stdout.split("\n")[:-1]) == sorted(lines), job.stdout)
    expect(job.stderr == "", job.stderr)


@case
def family():
    succeeded(run(command(2, "family")), "met 400", "met 900")


@case
def singleton_spawns():
    succeeded(run([args.partner, "family"]), "met 100", "met 900")


@case
def jobs_connect_by_port():
    server = start(command(2, "serve"))
    port = server.stdout.readline().strip()
    succeeded(run(command(3, "call", port)), "met 400")
    output, errors = server.communicate(timeout=60)
    expect((server.returncode, output, errors) == (0, "met 900\n", ""), f"{output}{errors}")


@case
def jobs_connect_by_name():
    name = mark()
    server = start(command(1, "serve", name))
    server.stdout.readline()
    succeeded(run([args.partner, "look_up", name]), "met 100")
    output, errors = server.communicate(timeout=60)
    expect((server.returncode, output, errors) == (0, "met 100\n", ""), f"{output}{errors}")


@case
def unknown_name_is_an_error():
    job = run(command(1, "look_up", mark()))
    expect(job.returncode != 0 and "MPI_ERR_NAME" in job.stderr, job.stderr)


@case
def dead_child_ends_its_parents():
    job = run(command(2, "child_dies"))
    expect(job.returncode != 0, "exit code 0")
    expect("SIGKILL" in job.stderr, job.stderr)
    expect(len(job.stderr.strip().split("\n")) == 1, job.stderr)


@case
def abort_of_a_child_ends_its_parents():
    job = run(command(2, "child_aborts"))
    expect(job.returncode == 7, f"exit code {job.returncode}: {job.stderr}")
    expect("MPI_Abort with code 7" in job.stderr, job.stderr)
    expect(len(job.stderr.strip().split("\n")) == 1, job.stderr)


@case
def disconnected_child_dies_alone():
    job = run(command(2, "disconnected_child_dies"))
    expect("goes on" in job.stdout, f"{job.stdout}{job.stderr}")
    expect("SIGKILL" in job.stderr, job.stderr)


def kill_and_look(number, whom):
    """Starts two worlds that wait, kills somebody, and expects that nothing remains."""
    name = mark()
    job = start(command(2, "wait", name))
    for _ in range(2):
        expect(job.stdout.readline() == "waits\n", "not both worlds wait")
    os.kill(whom(job, name), number)
    job.communicate(timeout=60)
    expect(job.returncode != 0, "exit code 0")
    wait_until(lambda: not processes(name), f"left: {processes(name)}")


@case
def killed_mpiexec_leaves_nothing():
    kill_and_look(signal.SIGKILL, lambda job, name: job.pid)


@case
def interrupted_mpiexec_leaves_nothing():
    kill_and_look(signal.SIGINT, lambda job, name: job.pid)


@case
def killed_rank_leaves_nothing():
    def parent(job, name):
        children = pathlib.Path(f"/proc/{job.pid}/task/{job.pid}/children").read_text().split()
        return next(int(child) for child in children if int(child) in processes(name, args.partner))
    kill_and_look(signal.SIGKILL, parent)


@case
def killed_singleton_leaves_nothing():
    name = mark()
    job = start([args.partner, "wait", name])
    for _ in range(2):
        expect(job.stdout.readline() == "waits\n", "not both worlds wait")
    job.kill()
    job.communicate(timeout=60)
    wait_until(lambda: not processes(name), f"left: {processes(name)}")


@case
def cycles_leave_nothing():
    succeeded(run(command(1, "cycles", "20")), "done")


parser = argparse.ArgumentParser()
parser.add_argument("--partner", required=True)
args = cases.parse(parser)
sys.exit(cases.run(args))
