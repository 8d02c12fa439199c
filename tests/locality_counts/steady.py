"""Programs that compute without system calls (steady.c), saved meanwhile.
    steady.py BUILD TEST[@MODE] PROGRAM ARGUMENT …
Status 77: DynamoRIO isn't built, or the processor lacks what the program needs."""

import os
import signal
import subprocess
import sys
import tempfile
import time

from recorded import MODE, SKIPPED, arguments, build, command, processes_in, program, record, test_name

WRITES = 1000  # of each page that the program prints
LIMIT = 60  # seconds that a save may take to be seen


def accesses(process):
    return sum(reads + writes for reads, writes, *_ in process.counts.values())


def exact(process, pages):
    """What was written before all the computing is there, to the last."""
    if MODE == "sample":  # what is in the first bursts only
        return all(process.writes(page) for page in pages[:1])
    return all(sum(process.writes(page).values()) == WRITES for page in pages)


def pages_of(running):
    pages = [int(running.stdout.readline().split()[1], 16)]
    for _ in range(3 if arguments[0] in ("threads", "idle") else 0):
        pages.append(int(running.stdout.readline().split()[1], 16))
    return pages


def killed(scratch):
    """Counts are saved while the program computes, again and again, and are there when it is killed."""
    with subprocess.Popen(command(scratch + "/recording", "--save", "0.05") + [program, *arguments],
                          stdout=subprocess.PIPE, text=True) as running:
        try:
            pages = pages_of(running)
            limit = time.monotonic() + LIMIT
            while not exact(found := processes_in(scratch + "/recording")[0], pages):
                assert time.monotonic() < limit, (pages, [found.writes(page) for page in pages])
                time.sleep(0.05)
            before = accesses(found)
            while accesses(processes_in(scratch + "/recording")[0]) < before + 100000:
                assert time.monotonic() < limit, "saved once only"
                time.sleep(0.05)
        finally:
            os.kill(found.about["pid"], signal.SIGKILL)
        assert running.wait(timeout=60) == -signal.SIGKILL
    (process,) = [one for one in processes_in(scratch + "/recording") if one.about["pid"] == found.about["pid"]]
    assert exact(process, pages) and accesses(process) >= before + 100000
    assert process.about["end"] is None and process.about["end_ns"] is None, process.about
    assert process.about["lost"] == [], process.about["lost"]


def unharmed(scratch):
    """The program does what it does alone, whatever is saved meanwhile."""
    status = -signal.SIGABRT if arguments[0] == "abort" else 0
    alone = subprocess.run([program, *arguments], capture_output=True, timeout=60, check=False).returncode
    if alone == SKIPPED:
        sys.exit(SKIPPED)
    assert alone == status, alone
    _, processes = record(scratch, "--save", "0.02", status=status)
    ends = sorted(str(process.about["end"]) for process in processes)
    expected = {"exec": ["exec"] * int((arguments[1:] or ["0"])[0]) + ["exit 0"],
                "fork": sorted(["exit 0", *(f"exit {turn}" for turn in range(20))])}.get(arguments[0], ends)
    assert ends == expected, ends
    assert all(process.counts and not process.about["lost"] for process in processes)


def main():
    parts = build / "lib/warren"
    if not (parts / "libwarren-counts.so").exists() or not (parts / "dynamorio/libdynamorio.so").exists():
        print("skipped: DynamoRIO isn't there; tools/build_dynamorio builds it")
        return SKIPPED
    with tempfile.TemporaryDirectory() as scratch:
        {"killed": killed, "unharmed": unharmed}[test_name](scratch)
    return 0


sys.exit(main())
