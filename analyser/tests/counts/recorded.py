"""What tests of counts have in common: their words, programs recorded by `warren locality record`, and what is in
their recordings (analyser/recorder/format.hpp)."""

import json
import pathlib
import struct
import subprocess
import sys

COUNT = struct.Struct("<IIQIIQQQQ")  # CountRecord and so on
FIRST = struct.Struct("<IIQQQII")
THREAD = struct.Struct("<IIIIQQQ16s")
BYTES = struct.Struct("<IIQIIQQQ")
COMMUNICATION = struct.Struct("<IIIIQQ")
ALLOCATION = struct.Struct("<IIQQQIIQ")
INTERVAL = struct.Struct("<IIQQ")
TOUCH = struct.Struct("<IIQQQQIi")
PHASE = struct.Struct("<IIQiI104s")
NAME = struct.Struct("<IIQQQ128s")
STACK = struct.Struct("<IIQ")
HEADER = 32
MODULE = 72
PAGE = 4096
SKIPPED = 77

build = pathlib.Path(sys.argv[1])
test_name, _, MODE = sys.argv[2].partition("@")
program = str(build / "tests" / sys.argv[3])
arguments = sys.argv[4:]
MODE = MODE or ("hooks" if sys.argv[3].startswith("hooks_") else "counts")


def records(folder, name, form):
    data = (folder / name).read_bytes()[HEADER:]
    return list(form.iter_unpack(data[: len(data) // form.size * form.size]))


class Process:
    def __init__(self, folder):
        self.folder = folder
        self.about = json.loads((folder / "process.json").read_text())
        self.counts = {}  # (unit, thread) -> reads, writes, bytes read, bytes written
        self.parts = {}  # (unit, thread, number of the allocation) -> the same
        for _, thread, unit, allocation, _, *sums in records(folder, "counts.rec", COUNT):
            for table, key in ((self.counts, (unit, thread)), (self.parts, (unit, thread, allocation))):
                known = table.setdefault(key, [0, 0, 0, 0])
                table[key] = [old + new for old, new in zip(known, sums)]
        self.lives = {}  # address -> numbers of the allocations that began there
        if (folder / "allocations.rec").exists():
            for number, (event, _, address, *_) in enumerate(records(folder, "allocations.rec", ALLOCATION), 1):
                if event == 1:
                    self.lives.setdefault(address, []).append(number)
        self.firsts = records(folder, "first.rec", FIRST)
        self.modules = ((folder / "modules.rec").stat().st_size - HEADER) // MODULE
        self.threads = records(folder, "threads.rec", THREAD)

    def writes(self, unit):
        return {thread: sums[1] for (at, thread), sums in self.counts.items() if at == unit and sums[1]}


def command(folder, *options, mode=MODE):
    return [str(build / "bin/warren"), "locality", "record", "--mode", mode, "-o", folder, *options, "--"]


def record(scratch, *options, words=None, status=0, said=None):
    done = subprocess.run(command(scratch + "/recording", *options) + (words or [program, *arguments]),
                          capture_output=True, text=True, timeout=100, check=False)
    if done.returncode == SKIPPED:
        print("skipped: the processor lacks these instructions")
        sys.exit(SKIPPED)
    if done.returncode != status:
        raise AssertionError(f"status {done.returncode}, not {status}: {done.stdout}{done.stderr}")
    if said is not None:
        said.append(done.stderr)
    return done.stdout, processes_in(scratch + "/recording")


def processes_in(folder):
    if MODE == "first-touch":
        return []  # which has other files
    return [Process(one) for one in sorted(pathlib.Path(folder).iterdir()) if one.name != "faults"]
