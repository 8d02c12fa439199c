"""Recordings of each mode with every file cut, deleted and changed in turn: the report is of what is
whole, says what is lost, and its exit status tells that it isn't all."""

import contextlib
import ctypes
import io
import itertools
import json
import os
import pathlib
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import unittest
import zlib

sys.path[:0] = [sys.argv.pop(1), os.path.dirname(os.path.abspath(__file__))]

import numpy as np  # noqa: E402

import recordings as made  # noqa: E402
from warren.locality import __main__ as program, recording, trace as traces  # noqa: E402

BASE = 1 << 40
UNITS, THREADS = 24, 3
STRIDE = int(os.environ.get("WARREN_TEST_DAMAGE", "5"))  # one of so many ways to damage files is tried


def stacks():
    return [{"place": 1, "caller": 0, "address": 0x400100}, {"place": 1, "caller": 1, "address": 0x400200}]


def common():
    return {"paths": ["/nonexistent/program"],
            "modules": [{"event": 1, "path_bytes": 20, "begin": 0x400000, "end": 0x500000}],
            "stacks": stacks(), "touch_stacks": stacks(), "threads": made.threads(THREADS, [5, 6, 7]),
            "allocations": [made.allocation(BASE, UNITS * 4096, stack=2)],
            "phases": [{"event": 3, "tid": 100, "time_ns": 5, "level": 2}],
            "names": [{"event": 1, "tid": 100, "address": BASE, "time_ns": 5, "name": b"field"}]}


def touches():
    return [{"flags": 3, "thread": index % THREADS, "address": BASE + 4096 * index, "bytes": 4096,
             "time_ns": 10 + index, "stack_id": 2, "node": 0} for index in range(UNITS)]


def write_first_touch(folder, rank=None, pid=None, sums=True):
    made.write_process(folder, "first-touch", rank, info={"pid": pid} if pid else {}, touches=touches(), **common())
    if sums:
        made.describe_files(folder)


def write_counts(folder, rank, mode="counts", granularity=64, sums=True):
    matrix = np.arange(1, UNITS * THREADS + 1).reshape(UNITS, THREADS) * 1000
    lines = [{"flags": 1, "thread": thread, "address": BASE + granularity * unit, "allocation": 1, "written": 0xff << thread,
              "instruction": 0x400300} for unit in range(UNITS) for thread in range(THREADS)]
    made.write_process(
        folder, mode, rank, granularity, counts=made.counts(matrix, BASE, 1, granularity),
        first=made.first(np.zeros(UNITS), BASE, 1, granularity, stack=2),
        intervals=[{"number": 1, "begin_ns": 1, "end_ns": 2}],
        communication=[{"interval": 1, "producer": 0, "consumer": 1, "events": 3, "bytes": 192}],
        bytes=lines, info={"bursts": 10} if mode == "sample" else {}, **common())
    if sums:
        made.describe_files(folder)


def write(top, mode, sums=True):
    for rank in (0, 1):
        folder = top / f"rank-0000{rank}"
        if mode == "first-touch":
            write_first_touch(folder, rank, sums=sums)
        else:
            write_counts(folder, rank, mode, 4096 if mode == "sample" else 64, sums)
        if mode == "sample":
            write_first_touch(top / "faults" / folder.name, pid=100 + rank, sums=sums)


@contextlib.contextmanager
def as_others():
    """As for those who aren't the superuser: modes of files hold."""
    libc = ctypes.CDLL(None, use_errno=True)
    header, before = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()  # version 3; this thread
    if libc.capget(header, before):
        raise unittest.SkipTest("the kernel tells no capabilities")
    now = (ctypes.c_uint32 * 6)(*before)
    now[0] &= ~0b110  # DAC_OVERRIDE and DAC_READ_SEARCH of the effective ones
    libc.capset(header, now)
    try:
        yield
    finally:
        libc.capset(header, before)


def change_description(folder, **changed):
    path = pathlib.Path(folder, "process.json")
    info = {**json.loads(path.read_text()), **changed}
    info.pop("sum", None)
    text = json.dumps(info)[:-1]
    path.write_text(f'{text},\n "sum": {zlib.crc32(text.encode())}\n}}\n')


class Damage(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.top = pathlib.Path(place.name) / "run"
        self.random = random.Random(1)  # the same at each run
        self.turns = itertools.count(1)

    def report(self, folder, *options):
        out, said = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(said):
            status = program.main(["report", str(folder), "--width", "2000", *map(str, options)])
        self.assertEqual(said.getvalue() == "", status in (0, 3), said.getvalue())
        return status, out.getvalue() + said.getvalue()

    def changed(self, content):
        """Ways to damage a file, every STRIDE-th of all: (name, content; None: it isn't there)."""
        return [way for way in self.all_changed(content) if next(self.turns) % STRIDE == 0]

    def all_changed(self, content):
        size = len(content)
        yield "gone", None
        yield "empty", b""
        for end in {1, 31, 32, 33, size // 2, size - 2} - {0}:  # (behind a description is the end of a line)
            if end < size:
                yield f"cut to {end}", content[:end]
        for at in {0, 8, 12, 20, size // 2, size - 1, *(self.random.randrange(size) for _ in range(4))} if size else ():
            flipped = bytearray(content)
            flipped[at % size] ^= 1 << self.random.randrange(8)
            yield f"bit of byte {at % size}", bytes(flipped)
        garbage = bytearray(content)
        garbage[size // 3:size // 2] = self.random.randbytes(size // 2 - size // 3)
        if bytes(garbage) != content:
            yield "garbage", bytes(garbage)
        yield "zeros", content[:size // 2] + bytes(size - size // 2) if any(content[size // 2:]) else None

    def check_mode(self, mode):
        write(self.top, mode)
        status, whole = self.report(self.top)
        self.assertEqual((status, "Damaged" in whole), (0, False))
        whole = traces.load(self.top)
        other = whole.unit_process == 0
        before = (whole.accesses[np.repeat(other, np.diff(whole.starts))].tolist(),
                  whole.first_thread[other].tolist())
        folders = [self.top / "rank-00001"] + [self.top / "faults" / "rank-00001"] * (mode == "sample")
        for folder in folders:
            for path in sorted(folder.iterdir()):
                content = path.read_bytes()
                for how, data in self.changed(content):
                    with self.subTest(file=str(path.relative_to(self.top)), how=how):
                        path.unlink(missing_ok=True)
                        if data is not None:
                            path.write_bytes(data)
                        status, shown = self.report(self.top)
                        self.assertEqual(status, 3, shown)
                        self.assertIn(f"{path} ", shown)
                        self.assertIn("; lost: ", shown)
                        said = [line for line in shown.split("Damaged: ")[1].splitlines() if line.strip()]
                        self.assertEqual(len(said), len(set(said)), shown)
                        now = traces.load(self.top)
                        self.assertEqual(now.process_names[0], "rank 0")
                        other = now.unit_process == 0
                        self.assertEqual((now.accesses[np.repeat(other, np.diff(now.starts))].tolist(),
                                          now.first_thread[other].tolist()), before)
                path.write_bytes(content)
        self.assertEqual(self.report(self.top)[0], 0)

    def test_first_touch(self):
        self.check_mode("first-touch")

    def test_counts(self):
        self.check_mode("counts")

    def test_sample(self):
        self.check_mode("sample")

    def test_without_sums_what_can_be_seen_is_said(self):
        for mode in ("first-touch", "counts", "sample"):
            top = self.top / mode
            write(top, mode, sums=False)
            status, shown = self.report(top)
            self.assertEqual(status, 0, shown)
            for path in sorted((top / "rank-00001").iterdir()):
                content = path.read_bytes()
                for how, data in self.changed(content):
                    with self.subTest(mode=mode, file=path.name, how=how):
                        path.unlink(missing_ok=True)
                        if data is not None:
                            path.write_bytes(data)
                        status, shown = self.report(top)
                        self.assertIn(status, (0, 3), shown)
                        name = path.name.removesuffix(".rec").removesuffix(".bin")
                        always = recording.NEEDED.get(mode, recording.NEEDED_OF_COUNTS)
                        if path.name == "process.json" and (data is None or data[-1:] != content[-1:]) or \
                                data is None and name in always or data == b"" and path.suffix == ".rec":
                            self.assertEqual(status, 3, shown)
                path.write_bytes(content)

    def test_what_is_missing_of_a_recording_that_was_never_finished(self):
        for mode in ("first-touch", "counts", "sample"):
            top = self.top / mode
            write(top, mode, sums=False)
            for folder in top.glob("**/rank-*"):
                change_description(folder, end_ns=None)
            status, shown = self.report(top)
            self.assertEqual(status, 0, shown)
            for path in sorted((top / "rank-00001").glob("*.*")):
                name = path.name.removesuffix(".rec").removesuffix(".bin")
                if name not in recording.NEEDED.get(mode, recording.NEEDED_OF_COUNTS):
                    continue
                with self.subTest(mode=mode, file=path.name):
                    content = path.read_bytes()
                    path.unlink()
                    status, shown = self.report(top)
                    path.write_bytes(content)
                    self.assertEqual(status, 3, shown)
                    self.assertIn(f"{path.name} is missing", " ".join(shown.split()))

    def test_what_cannot_be_read_is_left_out(self):
        for mode in ("first-touch", "counts", "sample"):
            top = self.top / mode
            write(top, mode)
            faults = [top / "faults" / "rank-00001", top / "faults"] if mode == "sample" else []
            folders = [top / "rank-00001", *faults]
            for path in [*folders, *(file for folder in folders[:2] for file in sorted(folder.iterdir()))]:
                before = path.stat().st_mode
                for bits in (0, 0o444) if path.is_dir() else (0,):
                    with self.subTest(path=str(path.relative_to(self.top)), bits=bits):
                        path.chmod(bits)
                        try:
                            with as_others():
                                status, shown = self.report(top)
                        finally:
                            path.chmod(before)
                        self.assertEqual(status, 3, shown)
                        self.assertIn(f"{path}", shown)
                        self.assertIn("can't be read: Permission denied", shown)
            self.assertEqual(self.report(top)[0], 0)

    def test_ranks_that_are_gone(self):
        for rank in range(4):
            write_counts(self.top / f"rank-0000{rank}", rank)
            change_description(self.top / f"rank-0000{rank}", size=4)
        self.assertEqual(self.report(self.top)[0], 0)
        aside = self.top.parent / "aside"
        (self.top / "rank-00003").rename(aside)
        status, shown = self.report(self.top)
        self.assertEqual(status, 3)
        self.assertIn("rank-00003 is missing: the job had 4 ranks; lost: the whole process", shown)
        (self.top / "rank-00003").write_bytes(b"")
        status, shown = self.report(self.top)
        self.assertEqual(status, 3)
        self.assertIn("rank-00003 is no folder: the job had 4 ranks", shown)
        (self.top / "rank-00003").unlink()
        shutil.rmtree(self.top / "rank-00001")  # they may be those of another node
        status, shown = self.report(self.top)
        self.assertEqual(status, 0)
        self.assertIn("of the job's 4 ranks 2 are not in it, rank 1 for one", shown)
        self.assertEqual(self.report(self.top / "rank-00000")[0], 0)
        write_first_touch(self.top / "faults" / "rank-00001", pid=101)  # it was recorded into this folder
        status, shown = self.report(self.top)
        self.assertEqual(status, 3)
        self.assertIn("rank-00001 is missing", shown)

    def test_first_touches_of_a_sample_that_are_gone(self):
        write(self.top, "sample")
        faults = self.top / "faults"
        shutil.rmtree(faults / "rank-00001")
        for folder in (self.top, self.top / "rank-00001"):
            status, shown = self.report(folder)
            self.assertEqual(status, 3, shown)
            self.assertIn(f"{faults / 'rank-00001'} is missing; lost: first touches", shown)
        self.assertEqual(self.report(self.top / "rank-00000")[0], 0)
        # The recorder of both was stopped, or this one went on to another program, or was made by the other.
        for where, changed in (("faults/rank-00000", {"end_ns": None}), ("rank-00001", {"end_ns": None}),
                               ("rank-00001", {"end": "exec"}), ("rank-00001", {"rank": None, "parent": 100})):
            before = (self.top / where / "process.json").read_text()
            change_description(self.top / where, **changed)
            status, shown = self.report(self.top, "--everything")
            self.assertEqual((status, "known of bursts only" in shown), (0, True), shown)
            (self.top / where / "process.json").write_text(before)
        shutil.rmtree(faults / "rank-00000")
        self.assertEqual(self.report(self.top)[0], 3)
        faults.rmdir()
        status, shown = self.report(self.top)  # as where the kernel tells nothing
        self.assertEqual((status, "known of bursts only" in shown), (0, True), shown)
        for rank in (0, 1):  # which says that there was one
            change_description(self.top / f"rank-0000{rank}", faults=True)
        for folder in (self.top, self.top / "rank-00001"):
            status, shown = self.report(folder)
            self.assertEqual((status, "known of bursts only" in shown), (3, True), shown)
            self.assertEqual(shown.count(f"{faults} is missing; lost: first touches"), 1, shown)
        faults.write_bytes(b"")
        status, shown = self.report(self.top)
        self.assertEqual(status, 3)
        self.assertIn(f"{faults} can't be read: Not a directory; lost: first touches", shown)

    def test_first_touches_up_to_where_their_recorder_was_stopped(self):
        write(self.top, "sample")
        said = "rank-00001: first touches are known of the first 0.0 s only: the recorder was stopped"
        for folder, end, is_said in (("rank-00001", 9000, False), ("faults/rank-00001", None, True),
                                     ("rank-00001", None, True), ("rank-00001", 20, False)):
            change_description(self.top / folder, end_ns=end)
            with self.subTest(folder=folder, end=end):
                status, shown = self.report(self.top)
                self.assertEqual(status, 0, shown)
                self.assertEqual(said in shown, is_said, shown)
                self.assertNotIn("rank-00000: first touches are", shown)

    def test_files_of_the_tracker_may_be_longer_where_the_recorder_is_within(self):
        """What other threads wrote after the end, or room: it doesn't count, nor is it damage."""
        for mode, status in (("counts", 0), ("sample", 0), ("first-touch", 3)):
            write(self.top / mode, mode)
            whole = traces.load(self.top / mode)
            for name in ("allocations", "stacks", "phases", "names"):
                path = self.top / mode / "rank-00001" / f"{name}.rec"
                content = path.read_bytes()
                for more in (bytes(1000), b"\xff" * 1000, content[32:]):
                    path.write_bytes(content + more)
                    with self.subTest(mode=mode, name=name):
                        self.assertEqual(self.report(self.top / mode)[0], status)
                        now = traces.load(self.top / mode)
                        self.assertEqual((now.accesses.tolist(), now.first_thread.tolist()),
                                         (whole.accesses.tolist(), whole.first_thread.tolist()))
                path.write_bytes(content)

    def test_files_of_the_tracker_that_older_recorders_did_not_sum_up(self):
        """What is cut within a record is seen."""
        write(self.top, "counts")
        folder = self.top / "rank-00001"
        info = json.loads((folder / "process.json").read_text())
        names = ("allocations", "stacks", "phases", "names")
        change_description(folder, files={name: one for name, one in info["files"].items()
                                          if name.removesuffix(".rec") not in names})
        for name in names:
            path = folder / f"{name}.rec"
            content = path.read_bytes()
            path.write_bytes(content + bytes(1000))
            status, shown = self.report(self.top)
            self.assertEqual(status, 0, shown)
            path.write_bytes(content[:-np.dtype(recording.FILES[name][1]).itemsize + 12])
            status, shown = self.report(self.top)
            self.assertEqual(status, 3)
            self.assertIn(f"{name}.rec ends within a record: 12 bytes are left out", shown)
            path.write_bytes(content)

    def test_values_of_a_description_that_cannot_be(self):
        write(self.top, "counts")
        folder = self.top / "rank-00001"
        loss = {"what": "counts", "count": -7, "why": "it is so"}
        for changed, said in (({"lost": [loss]}, "'lost' is \"[{'what': 'counts', 'count': -7"),
                              ({"lost": [{**loss, "count": 1 << 64}]}, "'lost' is "),
                              ({"host": ["x" * 100]}, 'x\" … (104 characters); lost: its ')):
            before = (folder / "process.json").read_text()
            change_description(folder, **changed)
            with self.subTest(changed=changed):
                status, shown = self.report(self.top)
                self.assertEqual(status, 3, shown)
                self.assertIn(f"{folder}/process.json is damaged: ", shown)
                self.assertIn(said, shown)
                self.assertNotIn("were lost: it is so", shown)
            (folder / "process.json").write_text(before)

    def test_strings_that_are_missing_are_not_said_to_be_cut_off(self):
        for sums in (True, False):
            top = self.top / str(sums)
            write(top, "counts", sums)
            path = top / "rank-00001" / "strings.bin"
            path.unlink()
            for ended in (True, False):
                if not ended:
                    change_description(top / "rank-00001", end_ns=None, files={})
                with self.subTest(sums=sums, ended=ended):
                    status, shown = self.report(top)
                    self.assertEqual(status, 3)
                    self.assertEqual(shown.count("strings.bin"), 1, shown)
                    self.assertIn("strings.bin is missing; lost: names of programs and libraries", shown)

    def test_everything_at_once_in_all_processes(self):
        """Whatever is left of it, there is a report or a reason why not, and no traceback."""
        for mode in ("first-touch", "counts", "sample"):
            top = self.top / mode
            write(top, mode)
            contents = {path: path.read_bytes() for path in top.rglob("*") if path.is_file()}
            for _ in range(40):
                for path, content in contents.items():
                    ways = [(None, content), *self.all_changed(content)]
                    data = self.random.choice(ways)[1]
                    path.unlink(missing_ok=True)
                    if data is not None:
                        path.write_bytes(data)
                status, shown = self.report(top, "--everything", "--html", self.top / "out.html", "--csv",
                                            self.top / "out.csv")
                self.assertIn(status, (1, 3), shown)
                self.assertTrue("lost: " in shown or "process.json" in shown, shown)

    def test_descriptions_of_all_processes(self):
        for mode in ("first-touch", "counts", "sample"):
            top = self.top / mode
            write(top, mode)
            for path in top.rglob("process.json"):
                text = path.read_text()
                path.write_text(text[:text.index('"files"')])
            status, shown = self.report(top)
            self.assertEqual(status, 3)
            self.assertIn(f"{mode}, 2 processes, 6 threads, {2 * UNITS} units", shown)

    def test_json_and_html_have_the_list(self):
        write(self.top, "counts")
        os.truncate(self.top / "rank-00000" / "counts.rec", 32 + 56 * 10 + 1)
        (self.top / "rank-00001" / "first.rec").unlink()
        status, shown = self.report(self.top, "--json", self.top / "out.json", "--html", self.top / "out.html")
        self.assertEqual(status, 3)
        found = json.loads((self.top / "out.json").read_text())["damage"]
        self.assertEqual([(one["process"], one["file"], one["lost"]) for one in found],
                         [("rank-00000", "counts.rec", "accesses"), ("rank-00001", "first.rec", "first touches")])
        self.assertIn("is cut off: 593 of 4,064 bytes are there", found[0]["what"])
        self.assertIn("counts.rec is cut off: 593 of 4,064 bytes are there", shown)
        html = (self.top / "out.html").read_text()
        self.assertIn("first.rec", html.split('id="facts"')[1])

    def test_a_quiet_report_says_that_there_is_damage(self):
        write(self.top, "counts")
        (self.top / "rank-00001" / "first.rec").unlink()
        out, said = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(said):
            status = program.main(["report", str(self.top), "--quiet"])
        self.assertEqual((status, out.getvalue()), (3, ""))
        self.assertIn("1 file of the recording is damaged or missing", said.getvalue())

    def test_a_quiet_report_counts_files_and_not_sentences(self):
        write(self.top, "counts")
        records = np.dtype(recording.FILES["counts"][1])
        path = self.top / "rank-00001" / "counts.rec"
        content = bytearray(path.read_bytes())
        content[32 + 4:32 + 8] = b"\xf0" * 4  # a thread
        content[32 + records.itemsize + 16:32 + records.itemsize + 20] = b"\x70" * 4  # an allocation
        path.write_bytes(content)
        self.assertGreater(len(traces.load(self.top).damage), 1)
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            program.main(["report", str(self.top), "--quiet", "--compare", str(self.top)])
        self.assertIn("1 file of the recording is damaged or missing", said.getvalue())

    def test_a_phase_that_is_lost_is_said_to_be(self):
        for name in ("phases", "intervals"):
            top = self.top / name
            write(top, "counts")
            for rank in (0, 1):
                (top / f"rank-0000{rank}" / f"{name}.rec").unlink()
            status, shown = self.report(top, "--phase", "level 2")
            self.assertEqual(status, 1)
            self.assertIn("has no accesses in a phase 'level 2'", shown)
            self.assertIn(f"rank-00001/{name}.rec is missing; lost: the program's phases", shown)

    def test_folders_have_dots(self):
        write(self.top, "counts")
        folder = self.top / "rank-00001.2"
        (self.top / "rank-00001").rename(folder)
        (folder / "first.rec").unlink()
        (folder / "process.json").write_text(json.dumps({"format": "else"}))
        self.assertEqual(self.report(self.top, "--json", self.top / "out.json")[0], 3)
        found = json.loads((self.top / "out.json").read_text())["damage"]
        self.assertEqual({(one["process"], one["file"]) for one in found},
                         {("rank-00001.2", "process.json"), ("rank-00001.2", "first.rec")})
        for path in folder.glob("*.rec"):
            path.unlink()
        (folder / "process.json").write_text("")
        (self.top / "rank-00000" / "process.json").write_text("")
        self.assertEqual(self.report(self.top, "--json", self.top / "out.json")[0], 3)
        found = json.loads((self.top / "out.json").read_text())["damage"]
        self.assertIn(("rank-00001.2", ""), {(one["process"], one["file"]) for one in found})

    def test_a_sample_without_a_description_tells_nothing_of_its_error(self):
        write(self.top, "sample")
        self.assertIn("estimates from 20 bursts", self.report(self.top)[1])
        for rank in (0, 1):
            path = self.top / f"rank-0000{rank}" / "process.json"
            path.write_text(path.read_text().split('"bursts"')[0])
        status, shown = self.report(self.top)
        self.assertEqual(status, 3)
        self.assertIn("sample, 2 processes", shown)
        self.assertNotIn("estimates from", shown)

    def test_who_reads_may_have_gone(self):
        write(self.top, "counts")
        module = str(pathlib.Path(program.__file__).parents[2])
        run = [sys.executable, "-m", "warren.locality", "report", str(self.top)]
        everything = {**os.environ, "PYTHONPATH": module, "PYTHONDONTWRITEBYTECODE": "1"}
        for status in (0, 3):
            for shell in ('"$@" | true; exit ${PIPESTATUS[0]}', '"$@" >&-', '"$@" 2>&- >/dev/null',
                          '"$@" --csv /dev/stdout | true; exit ${PIPESTATUS[0]}'):
                done = subprocess.run(["bash", "-c", shell, "bash", *run], capture_output=True, text=True, env=everything,
                                      check=False)
                self.assertIn(done.returncode, (status, 1) if "--csv" in shell else (status,), shell)
                self.assertNotIn("Traceback", done.stderr, shell)
                self.assertLessEqual(len(done.stderr.splitlines()), 1, shell)
            (self.top / "rank-00001" / "first.rec").unlink(missing_ok=True)

    def test_the_other_recording_of_a_comparison(self):
        write(self.top, "counts")
        shutil.copytree(self.top, self.top.parent / "after")
        (self.top.parent / "after" / "rank-00001" / "first.rec").unlink()
        status, shown = self.report(self.top, "--compare", self.top.parent / "after")
        self.assertEqual(status, 3)
        self.assertIn("after/rank-00001/first.rec is missing", shown)
        self.assertIn(f"Damaged: of {self.top.parent / 'after'}, ", shown)
        self.report(self.top, "--compare", self.top.parent / "after", "--json", self.top / "out.json")
        found = json.loads((self.top / "out.json").read_text())
        self.assertEqual((found["damage"], [one["file"] for one in found["after"]["damage"]]), ([], ["first.rec"]))
        self.report(self.top, "--json", self.top / "out.json")
        self.assertIsNone(json.loads((self.top / "out.json").read_text())["after"])

    def test_a_recording_compared_with_itself_tells_its_damage_once(self):
        write(self.top, "counts")
        (self.top / "rank-00001" / "first.rec").unlink()
        for other in (self.top, self.top.parent / "." / "run" / ".." / "run"):
            status, shown = self.report(self.top, "--compare", other)
            self.assertEqual((status, shown.count("first.rec is missing")), (3, 1))

    def test_of_a_sample_that_was_killed_before_it_saved_the_first_touches_are_reported(self):
        write(self.top, "sample")
        for rank in (0, 1):
            folder = self.top / f"rank-0000{rank}"
            for name in ("counts", "first", "bytes", "communication", "intervals"):
                os.truncate(folder / f"{name}.rec", 32)
            info = json.loads((folder / "process.json").read_text())
            for key in ("files", "sum"):
                info.pop(key)
            info["end_ns"] = None
            (folder / "process.json").write_text(json.dumps(info))
        status, shown = self.report(self.top)
        self.assertEqual(status, 0)
        self.assertIn("the recording has no end", shown)
        self.assertNotIn("estimates from", shown)
        found = traces.load(self.top)
        self.assertEqual(found.first_thread.tolist(),
                         [3 * process + unit % THREADS for process in (0, 1) for unit in range(UNITS)])

    def test_lost_counts_leave_the_first_touches(self):
        write(self.top, "counts")
        for rank in (0, 1):
            (self.top / f"rank-0000{rank}" / "counts.rec").unlink()
        status, _ = self.report(self.top)
        self.assertEqual(status, 3)
        found = traces.load(self.top)
        self.assertEqual((found.units, found.has_counts, found.first_thread[:UNITS].tolist()), (2 * UNITS, False, [0] * UNITS))

    def test_one_process_of_a_sample_has_its_faults(self):
        write(self.top, "sample")
        alone = traces.load(self.top / "rank-00001")
        self.assertEqual(alone.first_thread.tolist(), [unit % THREADS for unit in range(UNITS)])
        (self.top / "faults" / "rank-00000" / "touches.rec").unlink()  # no matter of this one
        self.assertEqual(self.report(self.top / "rank-00001")[0], 0)
        (self.top / "faults" / "rank-00001" / "touches.rec").unlink()
        self.assertEqual(self.report(self.top / "rank-00001")[0], 3)

    def test_sizes_that_cannot_be_take_neither_memory_nor_time(self):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for mode in ("first-touch", "counts", "sample"):
            top = self.top / mode
            write(top, mode, sums=False)
            folder = top / ("faults" if mode == "sample" else "") / "rank-00001"
            for name, (_, fields) in recording.FILES.items():
                path = folder / f"{name}.rec"
                if not path.exists() or path.stat().st_size == 32:
                    continue
                dtype = np.dtype(fields)
                content = path.read_bytes()
                for field in dtype.names:
                    if dtype[field].kind not in "ui":
                        continue
                    for value in (1 << 20, 1 << 31, 1 << 34, 1 << 46, (1 << 64) - 1):
                        records = np.frombuffer(content[32:], dtype).copy()
                        records[field][0] = value & np.iinfo(dtype[field].newbyteorder("=")).max
                        if name == "allocations" and field != "event":  # what is filled has a row per page
                            records["event"][0] = recording.ALLOCATION_FILLED
                        path.write_bytes(content[:32] + records.tobytes())
                        with self.subTest(mode=mode, file=name, field=field, value=value):
                            self.assertIn(self.report(top)[0], (0, 3))
                            self.assertLess(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, 512 << 10)
                path.write_bytes(content)


if __name__ == "__main__":
    unittest.main()
