"""Whatever way a program ends, its recording is whole; see ways.c.
    ways.py BUILD WORD...    hooks_ways with these words"""

import json
import pathlib
import struct
import subprocess
import sys
import tempfile

COUNT = struct.Struct("<IIQIIQQQQ")  # CountRecord: analyser/recorder/format.hpp
HEADER = 32
PAGE = 4096

build, what = pathlib.Path(sys.argv[1]), sys.argv[2:]
ENDS = {"first": (0, "exit 0"), "quick": (3, "exit 3"), "overflow": (-11, "signal 11"),
        "execveat": (0, "exec"), "full": (0, "exit 0"), "closed": (0, "exit 0"),
        "limit": (0, "exit 0"), "jumps": (0, "exit 0"), "unaligned": (0, "exit 0"),
        "signal": (-int(what[-1]) if what[0] == "signal" else 0, "signal ")}
status, end = ENDS[what[0]]

with tempfile.TemporaryDirectory() as scratch:
    other = pathlib.Path(scratch, "other")
    command = [build / "bin/warren", "locality", "record", "--mode", "hooks", "--save", "0.05", "-o",
               scratch + "/recording", "--", build / "tests/hooks_ways", *what, *([other] if what[0] == "closed" else [])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
    (folder,) = pathlib.Path(scratch, "recording").iterdir()
    about = json.loads((folder / "process.json").read_text())
    writes = {}
    for _, _, unit, _, _, _, number, *_ in COUNT.iter_unpack((folder / "counts.rec").read_bytes()[HEADER:]):
        writes[unit] = writes.get(unit, 0) + number
    assert what[0] != "closed" or other.stat().st_size == 0, "it wrote into the program's file"
assert about["end"].startswith(end), about["end"]
lost = {one["what"] for one in about["lost"]}
assert ("first touches" in lost) == (what[0] == "limit"), about["lost"]
assert about["executable"].endswith("hooks_ways"), about
page = int(done.stdout.split()[1], 16)
if what[0] == "unaligned":
    assert [writes.get(page), writes.get(page + PAGE)] == [50, 50], writes
elif what[0] != "limit":
    assert writes.get(page, 0) == 1000, writes.get(page)
