#!/usr/bin/env python3
"""Loads of ranks that are fibres, as others see them, and what balancers do about them.

    loads.py MPIEXEC WARREN PROGRAM     bench/imbalance.c: ranks around a quarter of all do most
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import time

mpiexec, warren, program = sys.argv[1:]
RANKS = 16
os.environ.pop("WARREN_RANKS", None)


def fibres(*options, steps=40, hint=0):
    return [mpiexec, "--ranks", "fibres", "-n", str(RANKS), "--workers", "2", "--timeout", "100",
            *options, program, "lambda=200", "work=20", f"steps={steps}", f"hint={hint}"]


def run(*command, code=0):
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == code, (command, done.returncode, done.stdout, done.stderr)
    return done


def seen_meanwhile():
    with subprocess.Popen(fibres("--no-stealing", steps=10**8), stderr=subprocess.PIPE) as job:
        try:
            end = time.monotonic() + 60
            while True:
                done = subprocess.run([warren, "ranks", str(job.pid), "--json"], capture_output=True,
                                      text=True, check=False)
                seen = json.loads(done.stdout) if done.returncode == 0 else {"fibres": False}
                ready = seen["fibres"] and min(rank["ran_s"] for rank in seen["ranks"]) > 0.02
                assert ready or time.monotonic() < end, (done.stdout, done.stderr)
                if ready:
                    break
                time.sleep(0.1)
            assert len(seen["ranks"]) == RANKS and len(seen["workers"]) >= 2, seen
            loads = [rank["ran_s"] for rank in seen["ranks"]]
            assert loads[RANKS // 4] > 2 * loads[RANKS * 3 // 4], loads
            assert seen["rank_imbalance"] > 0.5, seen
            for number, rank in enumerate(seen["ranks"]):
                peers = {peer for peer, messages, bytes_ in rank["peers"] if bytes_ >= 1024 * messages > 0}
                assert {(number + 1) % RANKS, (number - 1) % RANKS} == peers, rank
            table = run(warren, "ranks", str(job.pid), "--once").stdout.splitlines()
            assert len(table) == RANKS + 2 and "imbalance of ranks" in table[0], table
        finally:
            job.terminate()


def balanced():
    with tempfile.TemporaryDirectory() as folder:
        matrix = os.path.join(folder, "matrix")
        for balancer in ("greedy", "refine", "topology"):
            for options, hint in ((("--balance-at", "collectives"), 0), (("--balance-at", "hints"), 1),
                                  (("--balance-at", "0.005"), 0)):
                done = run(*fibres("--no-stealing", "--balance", balancer, "--balance-record", matrix,
                                   "--load-summary", *options, hint=hint))
                found = re.search(r"balanced (\d+) times, (\d+) moves", done.stderr)
                assert found and (options[1] == "0.005" or (int(found[1]) >= 40 and int(found[2]) > 0)), done
        offline = run(warren, "balance", matrix).stdout
        assert re.search(r"^greedy +\d", offline, re.M) and re.search(r"^none +\d", offline, re.M), offline
        run(warren, "balance", matrix, "best", code=2)
        run(warren, "balance", program, code=1)
        run(warren, "balance", folder, code=1)
        # What a balancer never looked at is not recorded, and not in silence.
        os.remove(matrix)
        done = run(mpiexec, "--ranks", "fibres", "--balance", "none", "--balance-at", "hints",
                   "--balance-record", matrix, "-n", "2", "true")
        assert not os.path.exists(matrix) and f"{matrix}: nothing is written" in done.stderr, done
    none = run(*fibres("--balance", "none", "--balance-at", "collectives=4", "--load-summary"))
    assert re.search(r"balanced \d+ times, 0 moves", none.stderr), none
    for refused in (("--balance", "best"), ("--balance-at", "noon"), ("--balance-at", "collectives=0"),
                    ("--balance-record", matrix)):
        run(*fibres(*refused), code=2)
    on = ("--balance", "greedy")
    for refused in ((*on, "--balance-record", "/dev/null"), (*on, "--balance-record", "/"),
                    (*on, "--balance-record", "/none/file"), ("--balance-at", "hints")):
        run(*fibres(*refused), code=2)
    for refused in (("--migrate-pages",), ("--migrate-pages", "--balance", "none")):
        run(*fibres(*refused), code=2)
    for refused in (on, ("--balance-at", "hints"), ("--balance-record", matrix), ("--migrate-pages",)):
        run(mpiexec, *refused, "-n", "2", program, code=2)


def pages_follow_where_there_are_nodes():
    done = run(*fibres("--balance", "greedy", "--balance-at", "collectives", "--migrate-pages", "-v"))
    if len([name for name in os.listdir("/sys/devices/system/node") if re.fullmatch(r"node\d+", name)]) == 1:
        assert "all workers are on NUMA node 0, so pages stay where they are" in done.stderr, done


seen_meanwhile()
balanced()
pages_follow_where_there_are_nodes()
