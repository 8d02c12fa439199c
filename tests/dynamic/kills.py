#!/usr/bin/env python3
"""Kills of random processes of jobs that spawn: one message, with the signal, and nothing is left.

    kills.py --mpiexec M --talking PROGRAM [--kills N] [--seed S] [--kinds processes,threads,fibres]

A job goes on when the world of the process that was killed has disconnected; its exit code and its message are that
world's at the end.
"""
import argparse
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from cases import expect, wait_until

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV)


def state_of(pid):
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]


def processes(mark, of_ranks=False):
    """Those whose words have the mark, but for the ones that have ended; or those that have ranks."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_text().split("\0") if entry.name.isdigit() else []
            if mark in words and state_of(entry.name) not in "ZX" and (
                    not of_ranks or words[0] == args.talking or "warren-rank-host" in words[0]):
                found.append(int(entry.name))
        except OSError:
            pass
    return found


def kill(victim, number):
    """False: it was ending already. It is stopped and looked at first, to know."""
    try:
        os.kill(victim, signal.SIGSTOP)
        wait_until(lambda: state_of(victim) in "TtZX", f"process {victim} does not stop")
        alive = state_of(victim) in "Tt"
        os.kill(victim, number)
        os.kill(victim, signal.SIGCONT)
        return alive
    except OSError:
        return False


def run_one(turn, chance):
    mark = f"kills.{os.getpid()}.{turn}"
    ranks = args.kinds[turn % len(args.kinds)]
    behaviour = chance.choice(("stay", "cycle"))
    number = chance.choice(SIGNALS)
    words = ["--ranks", ranks, "-n", str(chance.randint(1, 3)), args.talking, mark, behaviour]
    job = subprocess.Popen([args.mpiexec, *words], text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE)
    try:
        expect(job.stdout.readline() == "starts\n", "it has not started")
        time.sleep(chance.random() * 0.4)
        victims = []
        while not victims and job.poll() is None:
            victims = sorted(processes(mark, of_ranks=True))
        hit = bool(victims) and kill(chance.choice(victims), number)
        errors = job.communicate(timeout=60)[1]
        if hit or job.returncode != 0 or behaviour == "stay":
            expect(job.returncode != 0, "exit code 0")
            expect(errors.count("\n") == 1 and number.name in errors, errors)
        wait_until(lambda: not processes(mark), f"left: {processes(mark)}")
        return True
    except (AssertionError, subprocess.TimeoutExpired) as failure:
        print(f"kill {turn}: {number.name}, {' '.join(words)}: {failure}", flush=True)
        job.kill()
        job.communicate()
        return False


parser = argparse.ArgumentParser()
parser.add_argument("--mpiexec", required=True, type=os.path.abspath)
parser.add_argument("--talking", required=True, type=os.path.abspath)
parser.add_argument("--kills", type=int, default=100)
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--kinds", type=lambda text: text.split(","), default=["processes", "threads", "fibres"])
args = parser.parse_args()
random_numbers = random.Random(args.seed)
failed = sum(not run_one(turn, random_numbers) for turn in range(args.kills))
print(f"{args.kills} kills, {failed} failed")
sys.exit(failed != 0)
