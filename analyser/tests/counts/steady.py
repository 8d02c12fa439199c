"""Programs that compute without system calls (steady.c), saved meanwhile, and others that do what they do alone
(children.c, unseen.c).
    steady.py BUILD TEST[@MODE] PROGRAM ARGUMENT …
Status 77: DynamoRIO isn't built, or the processor lacks what the program needs."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zlib

from recorded import ALLOCATION, HEADER, MODE, NAME, PAGE, PHASE, STACK, SKIPPED, arguments, build, command, processes_in, program, record, test_name

WRITES = 1000  # of each page that the program prints
TRACKED = {"allocations.rec": ALLOCATION, "stacks.rec": STACK, "phases.rec": PHASE, "names.rec": NAME}
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


def run_alone():
    status = subprocess.run([program, *arguments], capture_output=True, timeout=60, check=False).returncode
    if status == SKIPPED:
        sys.exit(SKIPPED)
    return status


def record_as_alone(scratch, status):
    """With the status that the program has alone. Where much else runs, the kernel's timer of processor time and
    its sum of it may be far apart: `timer` finds that alone as well then, before or afterwards, and it's tried
    again."""
    tries = 5 if arguments[0] == "timer" else 1
    for turn in range(tries):
        alone = run_alone()
        if alone != status:
            assert tries > 1, alone
            continue
        folder = f"{scratch}/{turn}"
        os.mkdir(folder)
        try:
            return record(folder, "--save", "0.02", status=status)
        except AssertionError:
            if tries == 1 or run_alone() == status:
                raise
    print("skipped: the kernel's own ticks don't go with the processor time now")
    sys.exit(SKIPPED)


def unharmed(scratch):
    """The program does what it does alone, whatever is saved meanwhile."""
    status = -{"abort": signal.SIGABRT, "terminated": signal.SIGTERM}.get(arguments[0], 0)
    _, processes = record_as_alone(scratch, status)
    ends = sorted(str(process.about["end"]) for process in processes)
    expected = {"exec": ["exec"] * int((arguments[1:] or ["0"])[0]) + ["exit 0"],
                "fork": sorted(["exit 0", *(f"exit {turn}" for turn in range(20))])}.get(arguments[0], ends)
    assert ends == expected, ends
    assert all(process.counts and not process.about["lost"] for process in processes)
    for process in processes:
        check_sums(process)  # nobody else, forked children above all, has written into its files


def outlived(scratch):
    """A process ends, with all that it has counted, while a child of vfork sleeps, which goes on."""
    output, (process,) = record(scratch)
    assert output == "the child goes on\n", output
    assert process.about["end"] == "exit 0" and process.counts and not process.about["lost"], process.about
    check_sums(process)


def lost_children(scratch):
    """Children of vfork that a signal kills end in the recording, which ends whole."""
    _, processes = record_as_alone(scratch, 0)
    ends = sorted(process.about["end"] for process in processes)
    assert ends == ["exit 0"] + ["exit 3"] * int(arguments[1]), ends
    for process in processes:
        assert process.counts and not process.about["lost"] and process.about["end_ns"], process.about
        check_sums(process)
    events = {}
    (parent,) = [process for process in processes if process.about["end"] == "exit 0"]
    for event, number, *_ in parent.threads:
        events.setdefault(number, []).append(event)
    del events[0]  # the first thread, which ends with the process
    assert [each[-1] for each in events.values()] == [2] * int(arguments[1]), events


def hot_pages(output):
    """How often each page of `steady hot` was written."""
    _, first, turns = output.split()
    return {int(first, 16) + page * PAGE: 1 + int(turns) + (500 if page >= 11800 else 0) for page in range(12000)}


def check_most_used(process, expected):
    """Not all fits: the units with most accesses are there with their first touches, the rest is counted."""
    firsts = {at for _, _, at, *_ in process.firsts}
    for page, writes in expected.items():
        if writes > 500:
            assert process.writes(page) == {0: writes} and page in firsts, (page, process.writes(page), writes)
        else:
            assert process.writes(page) in ({}, {0: writes}), (page, process.writes(page), writes)
    kept = sum(page in firsts for page in expected)
    lost = {loss["what"]: loss["count"] for loss in process.about["lost"]}
    assert 200 < kept < 12000 and lost["first touches"] >= 12000 - kept, (kept, lost)
    assert lost["counts"] >= sum(not process.writes(page) for page in expected) > 0, lost
    assert all(lost.values()), lost


def check_sums(process):
    """The description says how long the recorder's files are, and their checksums."""
    sums = process.about["files"]
    for name in ("threads.rec", "modules.rec", "strings.bin", "intervals.rec", "counts.rec", "first.rec",
                 "touch_stacks.rec"):
        data = pathlib.Path(process.folder, name).read_bytes()
        assert sums[name] == {"bytes": len(data), "crc32": zlib.crc32(data)}, (name, sums[name], len(data))
    assert set(sums) == {path.name for path in process.folder.iterdir()} - {"process.json"}, sums
    for name, form in TRACKED.items():
        if name in sums:
            check_tracked(pathlib.Path(process.folder, name).read_bytes(), sums[name], form)


def check_tracked(data, sum_, form):
    """The tracker writes it, with room behind; its first word is never 0 in a record."""
    written = data[:sum_["bytes"]]
    assert sum_ == {"bytes": len(written), "crc32": zlib.crc32(written)}, (sum_, len(data))
    assert (len(written) - HEADER) % form.size == 0 or not written, len(written)
    assert all(record[0] for record in form.iter_unpack(written[HEADER:]))


def size_of(folder):
    """Of all files, in mode sample those of first touches too."""
    return sum(one.stat().st_size for one in pathlib.Path(folder).rglob("*") if one.is_file())


def check_used(output, process):
    """What was counted in memory that came and went has not taken the room of what is there all the time."""
    _, first, writes = output.split()
    firsts = {at for _, _, at, *_ in process.firsts}
    for page in range(int(first, 16), int(first, 16) + 20 * PAGE, PAGE):
        assert process.writes(page) == {0: int(writes)} and page in firsts, (page, process.writes(page), writes)
    assert all("fewest" not in loss["why"] for loss in process.about["lost"]), process.about["lost"]
    if arguments[0] == "cold":
        lost = [loss for loss in process.about["lost"] if "memory that was freed" in loss["why"]]
        written = sum(sums[1] for sums in process.counts.values()) - 20 * int(writes)
        assert len(lost) == 1 and lost[0]["count"] > 0, process.about["lost"]
        assert written > 1000, written  # while there was room
    else:
        assert process.about["lost"] == [], process.about["lost"]


def check_gone(output, process):
    """Memory that is unmapped has its counts and first touches while there is room beside what is in use: what
    was written of others that are gone takes none."""
    begin = int(output.split()[1], 16)
    blocks, pages = map(int, arguments[1:])
    firsts = {at for _, _, at, *_ in process.firsts}
    expected = set(range(begin, begin + blocks * pages * PAGE, PAGE))
    counted = {at: sums[1] for (at, _), sums in process.counts.items() if at in expected}
    kept = expected & firsts
    assert counted == dict.fromkeys(kept, 2), (len(counted), len(kept))
    lost = {loss["what"]: loss["count"] for loss in process.about["lost"]}
    if blocks > 1:
        assert len(kept) == len(expected) and not lost, (len(kept), lost)
    else:  # more than there is room for
        gone = pages - len(kept)
        assert 3000 < len(kept) < pages and lost["counts"] == lost["first touches"] == gone, (len(kept), lost)


def check_short(output, process):
    if arguments[0] == "gone":
        check_gone(output, process)
    elif arguments[0] == "hot":
        check_most_used(process, hot_pages(output))
    else:
        check_used(output, process)
    check_sums(process)


def limited(scratch):
    said = []
    output, (process,) = record(scratch, "--limit", "1M", said=said)
    check_short(output, process)
    assert ("counts are lost: there was no room" in said[0]) == bool(process.about["lost"]), said
    assert size_of(scratch + "/recording") <= 1 << 20


def tracker_limited(scratch):
    """What the tracker has no room for is counted to the last, in the recording and, once, on the standard
    error, also before another program is executed; what it has room for is summed up."""
    said = []
    _, processes = record(scratch, "--limit", "1M", said=said)
    assert [process.about["end"] for process in processes] == ["exec", "exit 0"], processes
    for process, blocks in zip(processes, map(int, arguments[1:])):
        (lost,) = [loss for loss in process.about["lost"] if loss["what"] == "allocations"]
        there = (process.about["files"]["allocations.rec"]["bytes"] - HEADER) // ALLOCATION.size
        assert 5000 < there < 2 * blocks <= lost["count"] + there < 2 * blocks + 1000, (lost, there)
        assert said[0].count(f" {lost['count']} allocations are lost: {lost['why']}\n") == 1, said
        check_sums(process)
    assert said[0].count("allocations are lost") == 2, said


def stderr_taken(scratch):
    """What is said at the end is said where it began, and not into a file of the program's."""
    said = []
    other = scratch + "/other"
    record(scratch, "--limit", "1M", words=[program, *arguments, other], said=said)
    assert re.search(r" \d+ allocations (of process \d+ )?are lost: ", said[0]) and os.path.getsize(other) == 0, said


def moved(scratch):
    """A recording's folder may get another name meanwhile: what is in it is ended and summed up there."""
    with subprocess.Popen(command(scratch + "/recording") + [program, *arguments]) as running:
        limit = time.monotonic() + LIMIT
        while not list(pathlib.Path(scratch, "recording").glob("process-*/stacks.rec")):
            assert time.monotonic() < limit, "nothing is recorded"
            time.sleep(0.05)
        os.rename(scratch + "/recording", scratch + "/other")
        assert running.wait(timeout=LIMIT) == 0
    assert not os.path.exists(scratch + "/recording")
    (folder,) = pathlib.Path(scratch, "other").glob("process-*")
    about = json.loads((folder / "process.json").read_text())
    assert about["end"] == "exit 0" and about["lost"] == [], about
    assert set(about["files"]) == {path.name for path in folder.iterdir()} - {"process.json"}, about["files"]
    for name, sum_ in about["files"].items():
        data = (folder / name).read_bytes()[:sum_["bytes"]]
        assert sum_ == {"bytes": len(data), "crc32": zlib.crc32(data)}, name


def saved_within_limit(scratch):
    """Saves leave room for what is written at the end, which is exact."""
    output, (process,) = record(scratch, "--limit", "4M", "--save", "0.02")
    expected = hot_pages(output)
    assert all(process.writes(page) == {0: writes} for page, writes in expected.items())
    assert process.about["lost"] == [], process.about["lost"]
    assert any("room became short" in what for what in process.about["missing"]), process.about["missing"]
    assert 2 << 20 < size_of(scratch + "/recording") <= 4 << 20
    check_sums(process)


def small_disk(folder, size):
    os.makedirs(folder)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=" + size, "none", folder], capture_output=True,
                      check=False).returncode:
        print("skipped: it may not mount a small file system")
        sys.exit(SKIPPED)


def no_room(scratch):
    """Where nothing can be recorded, nothing runs, and the reason is told."""
    folder = scratch + "/disk"
    small_disk(folder, "64k")
    try:
        pathlib.Path(folder, "other").write_bytes(bytes(60 << 10))
        run = subprocess.run(command(folder + "/recording") + [program, *arguments], capture_output=True, text=True,
                             timeout=LIMIT, check=False)
        assert run.returncode != 0 and run.stdout == "", run
        assert "nothing can be recorded in" in run.stderr and "No space left on device" in run.stderr, run
    finally:
        subprocess.run(["umount", folder], check=True)


def names_kept(scratch):
    """First touches that fill the disk leave the modules' names, without which nothing has a place in the source."""
    folder = scratch + "/disk"
    small_disk(folder, "200k")
    try:
        for turn in range(5):  # touches don't always come first
            recording = f"{folder}/{turn}"
            run = subprocess.run(command(recording) + [program, *arguments], capture_output=True, text=True,
                                 timeout=LIMIT, check=False)
            assert run.returncode == 0 and "No space left on device" in run.stderr, run
            (about,) = pathlib.Path(recording).glob("*/process.json")
            lost = {loss["what"] for loss in json.loads(about.read_text())["lost"]}
            assert "touches" in lost and not any("names" in what for what in lost), lost
            assert os.path.basename(program).encode() in about.with_name("strings.bin").read_bytes()
            shutil.rmtree(recording)
    finally:
        subprocess.run(["umount", folder], check=True)


def full_disk(scratch):
    folder = scratch + "/disk"
    small_disk(folder, "1536k")
    try:
        output, (process,) = record(folder)
        check_short(output, process)
        assert process.about["end"] == "exit 0"
    finally:
        subprocess.run(["umount", folder], check=True)


def quota_for_counts(scratch):
    """First touches, which would fill the disk, leave half of it to counts, allocations and names."""
    folder = scratch + "/disk"
    size = 1 << 20
    small_disk(folder, str(size))
    try:
        output, (process,) = record(folder)
        check_short(output, process)
        faults = pathlib.Path(folder, "recording/faults")
        if not faults.exists():
            print("skipped: the kernel tells no first touches")
            sys.exit(SKIPPED)
        (about,) = faults.glob("*/process.json")
        whys = {loss["what"]: loss["why"] for loss in json.loads(about.read_text())["lost"]}
        assert set(whys) == {"touches"} and "for counts and allocations" in whys["touches"], whys
        assert size // 4 < about.with_name("touches.rec").stat().st_size <= size // 2, size_of(faults)
    finally:
        subprocess.run(["umount", folder], check=True)


def summed(scratch):
    """A program that executes another leaves a whole recording as well."""
    _, processes = record(scratch, "--communication", "--granularity", "64")
    ends = sorted(process.about["end"] for process in processes)
    assert ends == ["exec"] * int(arguments[1]) + ["exit 0"], ends
    for process in processes:
        check_sums(process)
        assert "communication.rec" in process.about["files"] and "bytes.rec" in process.about["files"]


def main():
    parts = build / "lib/warren"
    if MODE in ("hooks", "first-touch"):
        pass
    elif not (parts / "libwarren-counts.so").exists() or not (parts / "dynamorio/libdynamorio.so").exists():
        print("skipped: DynamoRIO isn't there; analyser/dynamorio/build builds it")
        return SKIPPED
    with tempfile.TemporaryDirectory() as scratch:
        tests = (killed, unharmed, outlived, lost_children, limited, tracker_limited, stderr_taken, moved, saved_within_limit, full_disk, no_room,
                 names_kept, quota_for_counts, summed)
        {test.__name__: test for test in tests}[test_name](scratch)
    return 0


sys.exit(main())
