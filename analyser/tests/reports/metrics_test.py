"""Recordings as the locality analysis reads, joins and reports them."""

import io
import json
import os
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

sys.path[:0] = [sys.argv.pop(1), os.path.dirname(os.path.abspath(__file__))]

import numpy as np  # noqa: E402

import recordings as made  # noqa: E402
from warren.locality import (__main__ as program, advice, analysis, metrics, recording,  # noqa: E402
                             tables, text, trace as traces)


def timed(records, time):
    records["time_ns"] = time
    return records


def figures(trace):
    return metrics.summarise(metrics.per_unit(trace), trace.granularity)[0]


class Recordings(unittest.TestCase):
    def setUp(self):
        self.place = tempfile.TemporaryDirectory()
        self.addCleanup(self.place.cleanup)
        self.folder = pathlib.Path(self.place.name)

    def run_report(self, *arguments):
        with mock.patch("sys.stdout", io.StringIO()) as out, mock.patch("sys.stderr",
                                                                         io.StringIO()) as err:
            code = program.main(["report", *map(str, arguments)])
        return code, out.getvalue(), err.getvalue()

    def baseline(self, name="run"):
        """Thread 0 has touched all 40 pages of one block, of which threads 0 to 3 use ten each."""
        base, owner = 1 << 32, np.repeat(np.arange(4), 10)
        dense = np.zeros((40, 4), int)
        dense[np.arange(40), owner] = 1000
        dense[:, 0] += 1
        folder = self.folder / name
        made.write_process(folder / "rank-00000", rank=0, counts=made.counts(dense, base, 1),
                           first=made.first(np.zeros(40), base, 1),
                           threads=made.threads(4, [10, 10, 10, 14]),
                           allocations=[made.allocation(base, 40 * 4096)])
        return folder

    def test_intervals_are_summed_or_chosen(self):
        records = np.concatenate([made.counts([[5, 0], [1, 2]]), made.counts([[1, 7], [0, 0]])])
        records["interval"][3:] = 2
        made.write_process(self.folder / "process-1", counts=records, first=made.first([0, 1]))
        trace = traces.load(self.folder)
        self.assertEqual(trace.starts.tolist(), [0, 2, 4])
        self.assertEqual(trace.accesses.tolist(), [6, 7, 1, 2])
        self.assertEqual(traces.load(self.folder, {2}).accesses.tolist(), [1, 7])

    def test_narrow_numbers_have_wide_sums(self):
        many = (1 << 32) - 100
        for most, size in ((many, 4), (many + 100, 8)):
            with self.subTest(most=most):
                folder = self.folder / f"most-{most}"
                matrix = [[many, most], [1, 2]]
                made.write_process(folder / "process-1", counts=made.counts(matrix), first=made.first([0, 0]),
                                   threads=made.threads(2))
                found = analysis.Analysis.of(folder)
                self.assertEqual((found.trace.accesses.dtype.itemsize, found.trace.accesses.tolist()),
                                 (size, [many, most, 1, 2]))
                self.assertEqual(found.program.accesses, many + most + 3)
                self.assertEqual(tables.thread_columns(found)["accesses"].tolist(), [many + 1, most + 2])

    def test_communication_is_summed_and_shown(self):
        made.write_process(
            self.folder / "run" / "process-1", threads=made.threads(2),
            counts=made.counts([[1, 1]]), first=made.first([0]),
            communication=[{"interval": i, "producer": 0, "consumer": 1, "events": 1, "bytes": 4096 * i}
                           for i in (1, 2)])
        found = traces.load(str(self.folder / "run"))
        self.assertEqual(found.communication.tolist(), [[0, 3 * 4096], [0, 0]])
        found = traces.load(str(self.folder / "run"), {2})
        self.assertEqual(found.communication.tolist(), [[0, 2 * 4096], [0, 0]])
        page = text.Page(io.StringIO(), "never", 80)
        text.summary(analysis.Analysis(found), [], page)
        self.assertIn("8.0 KiB in all; T0 to T1 8.0 KiB", page.text())

    def test_communication_of_too_many_threads_is_warned_of(self):
        for threads in (1024, 1025):
            folder = self.folder / str(threads)
            made.write_process(
                folder / "process-1", threads=made.threads(threads), counts=made.counts([[1, 1]]),
                first=made.first([0]),
                communication=[{"interval": 1, "producer": 0, "consumer": 1, "events": 1, "bytes": 64}])
            found = traces.load(str(folder))
            many = threads > 1024
            self.assertEqual(found.communication is None, many)
            self.assertEqual(metrics.communication(found) is None, many)
            self.assertEqual(any("1,025 threads" in text for text in found.warnings), many, found.warnings)

    def test_lives_of_reused_memory_are_different_units(self):
        base = 1 << 32
        records = np.concatenate([made.counts([[5, 0]], base, 1), made.counts([[0, 9]], base, 3)])
        first = np.concatenate([made.first([0], base, 1), made.first([1], base, 3)])
        begun = made.allocation(base, 4096)
        made.write_process(self.folder / "process-1", counts=records, first=first, allocations=[
            begun, dict(begun, event=recording.ALLOCATION_ENDED, time_ns=5),
            dict(begun, time_ns=6, size=8192)])
        trace = traces.load(self.folder)
        self.assertEqual(trace.units, 2)
        self.assertEqual(figures(trace).locality, 1.0)
        self.assertEqual(trace.unit_allocation.tolist(), [0, 1])

    def test_memory_that_is_used_again_keeps_its_first_touch(self):
        base = 1 << 32
        records = np.concatenate([made.counts([[5, 0, 1]], base, 1), made.counts([[0, 9, 0]], base, 3),
                                  made.counts([[0, 9, 0]], base, 5)])
        first = np.concatenate([made.first([0], base, 1), made.first([2], base, 5)])
        first["time_ns"] = [3, 13]  # before the third life it was unmapped
        begun = made.allocation(base, 4096)
        ended = dict(begun, event=recording.ALLOCATION_ENDED)
        made.write_process(self.folder / "process-1", counts=records, first=first, allocations=[
            begun, dict(ended, time_ns=5), dict(begun, time_ns=6), dict(ended, time_ns=11),
            dict(begun, time_ns=12)])
        found = analysis.Analysis.of(self.folder)
        self.assertEqual(found.trace.first_thread.tolist(), [0, 0, 2])
        self.assertEqual(found.trace.inherited.tolist(), [False, True, False])
        self.assertIn("placed by what had it before: allocate it once", advice.advise(found)[0].text)

    def test_pages_that_move_keep_their_first_touch(self):
        base, moved = 1 << 32, 1 << 33
        records = np.concatenate([made.counts([[5, 0]] * 2, base, 1), made.counts([[0, 9]] * 3, moved, 3)])
        first = np.concatenate([made.first([0, 1], base, 1), made.first([1], moved + 8192, 3)])
        begun = made.allocation(base, 8192)
        made.write_process(self.folder / "process-1", counts=records, first=first, allocations=[
            begun, dict(begun, event=recording.ALLOCATION_ENDED, time_ns=15),
            dict(begun, address=moved, previous=base, size=12288, time_ns=14)])
        self.assertEqual(traces.load(self.folder).first_thread.tolist(), [0, 1, 0, 1, 1])

    def test_first_touches_alone(self):
        base = 1 << 32
        touches = [{"flags": flags, "thread": thread, "address": base + offset, "bytes": 4096,
                    "time_ns": time, "node": 1}
                   for flags, thread, offset, time in (
                       (recording.TOUCH_VALID | recording.TOUCH_READ, 1, 0, 10),  # the page of zeros
                       (recording.TOUCH_VALID | recording.TOUCH_WRITE, 0, 8, 20),
                       (recording.TOUCH_VALID | recording.TOUCH_WRITE, 1, 4096, 30))]
        made.write_process(self.folder / "process-1", mode="first-touch", touches=touches,
                           threads=made.threads(2), allocations=[made.allocation(base, 8192)])
        found = analysis.Analysis.of(self.folder)
        self.assertEqual(found.trace.first_thread.tolist(), [0, 1])
        self.assertEqual(found.trace.node.tolist(), [1, 1])
        self.assertIsNone(found.program.locality)
        code, out, _ = self.run_report(self.folder)
        self.assertEqual(code, 0)
        self.assertIn("not known", out)

    def test_threads_whose_time_is_not_known_work_if_they_touch(self):
        base, other = 1 << 32, 1 << 33
        touches = [{"flags": recording.TOUCH_VALID | recording.TOUCH_WRITE, "thread": thread,
                    "address": address + 4096 * page, "bytes": 4096, "time_ns": 10 + page}
                   for page in range(40) for address, thread in ((base, 0), (other, page // 10))]
        threads = made.threads(4)
        for one in threads[3::2]:  # all but the first thread
            one["cpu_ns"] = 0
        made.write_process(
            self.folder / "process-1", mode="first-touch", touches=touches, threads=threads,
            allocations=[made.allocation(base, 40 * 4096), made.allocation(other, 40 * 4096)],
            names=[{"event": 1, "tid": 100, "address": base, "time_ns": 3, "name": b"field"}])
        found = analysis.Analysis.of(self.folder)
        change, = advice.advise(found)
        self.assertEqual(found.structures[change.structure].name, "field")
        self.assertIn("one of 4 that work", change.cause)

    def test_without_processor_times_all_threads_are_said_to_be_there(self):
        base = 1 << 32
        touches = [{"flags": recording.TOUCH_VALID | recording.TOUCH_WRITE, "thread": 0, "address": base + 4096 * page,
                    "bytes": 4096, "time_ns": 10 + page} for page in range(40)]
        names = [{"event": 1, "tid": 100, "address": base, "time_ns": 3, "name": b"field"}]
        for threads in (4, 1):
            folder = self.folder / f"of-{threads}"
            made.write_process(folder / "process-1", mode="first-touch", touches=touches, info={"end_ns": None},
                               threads=[one for one in made.threads(threads) if one["event"] == recording.THREAD_BEGAN],
                               allocations=[made.allocation(base, 40 * 4096)], names=names)
            found, shown = analysis.Analysis.of(folder), " ".join(self.run_report(folder)[1].split())
            changes = advice.advise(found)
            self.assertNotIn("No structure is touched first by one thread only", shown)
            if threads == 1:
                self.assertEqual(changes, [])
                self.assertIn("No process has several threads: what its one thread touches first is its own", shown)
                continue
            self.assertEqual([found.structures[change.structure].name for change in changes], ["field"])
            self.assertIn("100.0 % of its 40 pages were touched first by thread 0", shown)
            self.assertIn("one of 4 threads, whose processor times are not known", shown)

    def test_structures_without_a_name_are_said_not_to_be_judged(self):
        base = 1 << 32
        touches = [{"flags": recording.TOUCH_VALID | recording.TOUCH_WRITE, "thread": 0, "address": base + 4096 * page,
                    "bytes": 4096, "time_ns": 10 + page} for page in range(40)]
        made.write_process(self.folder / "process-1", mode="first-touch", touches=touches, threads=made.threads(2),
                           allocations=[made.allocation(base, 40 * 4096)])
        shown = " ".join(self.run_report(self.folder)[1].split())
        self.assertIn("T0 100 %", shown)
        self.assertIn("memory without a name isn't judged", shown)

    def test_a_stack_is_no_model_of_how_to_initialise(self):
        base, other = 1 << 32, 1 << 33
        matrix = np.zeros((32, 4))
        matrix[np.arange(32), np.arange(32) // 8] = 100
        first = np.concatenate([made.first(np.zeros(32), base, 1), made.first(np.arange(32) // 8, other, 2, stack=1)])
        for kind, has_model in (("stack", False), ("heap", True)):
            folder = self.folder / kind
            made.write_process(
                folder / "process-1", counts=np.concatenate([made.counts(matrix, base, 1), made.counts(matrix, other, 2)]),
                first=first, threads=made.threads(4), touch_stacks=[{"place": 2, "address": 0x400100}],
                allocations=[made.allocation(base, 32 * 4096),
                             made.allocation(other, 32 * 4096, what=recording.KINDS.index(kind))],
                names=[{"event": 1, "tid": 100, "address": place, "time_ns": 3, "name": name}
                       for place, name in ((base, b"field"), (other, b"model"))])
            found = analysis.Analysis.of(folder)
            with mock.patch.object(analysis.Analysis, "first_place", lambda self, site: ("loop.c:10", "f", "loop.c", 10)):
                text_of = advice.advise(found)[0].text
            self.assertEqual("(as model is at loop.c:10)" in text_of, has_model, text_of)
            self.assertNotIn("stack", text_of)

    def test_variables_of_the_recorder_are_no_structures(self):
        base, path = 1 << 32, "/opt/lib/libwarren-tracker.so"
        made.write_process(self.folder / "process-1", counts=made.counts([[5, 0], [1, 9]], base),
                           first=made.first([0, 0], base), threads=made.threads(2), paths=[path],
                           modules=[{"event": recording.MODULE_LOADED, "path_bytes": len(path), "begin": base,
                                     "end": base + 8192, "time_ns": 1}])
        found = analysis.Analysis.of(self.folder)
        self.assertEqual([one.name for one in found.structures], ["(recorder)"])
        self.assertEqual([one for one in advice.advise(found) if one.structure >= 0], [])

    def test_phases_choose_intervals_of_each_process(self):
        for rank, numbers in ((0, (1, 2)), (1, (2, 1))):  # of "solve" and of "rest"
            records = np.concatenate([made.counts([[10, 0]]), made.counts([[1, 0]])])
            records["interval"] = numbers
            made.write_process(
                self.folder / f"rank-0000{rank}", rank=rank, counts=records,
                first=made.first([0]), threads=made.threads(1),
                phases=[{"event": recording.PHASE_BEGAN, "tid": 100, "name": name}
                        for name in (b"solve", b"rest")],
                intervals=[{"number": numbers[0], "phase": 1}, {"number": numbers[1], "phase": 2}])
        path = self.folder / "solve.json"
        self.assertEqual(self.run_report(self.folder, "--phase", "solve", "--json", path)[0], 0)
        self.assertEqual(json.loads(path.read_text())["program"]["accesses"], 20)
        self.assertIn("rest, solve", self.run_report(self.folder, "--phase", "x")[2])

    def test_names_that_are_no_text_are_written_nevertheless(self):
        path, base = "/nowhere/lib\udcff.so", 1 << 32
        made.write_process(self.folder / "process-1", counts=made.counts([[3]], base),
                           first=made.first([0], base), threads=made.threads(1), paths=[path],
                           info={"command": ["\ud800"]},
                           modules=[{"event": recording.MODULE_LOADED, "begin": base, "end": base + 4096,
                                     "path_bytes": len(path)}])
        files = {kind: self.folder / f"all.{kind}" for kind in ("csv", "json", "html")}
        with io.TextIOWrapper(io.BytesIO(), encoding="ascii") as out, mock.patch("sys.stdout", out):
            self.assertEqual(program.main(["report", str(self.folder)] + [
                text for kind, file in files.items() for text in (f"--{kind}", str(file))]), 0)
            self.assertIn(b"(lib?.so)", out.buffer.getvalue())
        self.assertIn("lib?.so,", files["csv"].read_text())
        self.assertEqual(json.loads(files["json"].read_text())["structures"]["name"], ["(lib?.so)"])
        self.assertIn("(lib?.so)", files["html"].read_text())

    def test_no_cut_files_stay(self):
        path = self.folder / "out"
        with self.assertRaises(ValueError), tables.output(path) as file:
            file.write("some")
            raise ValueError
        self.assertFalse(path.exists())

    def test_a_process_whose_description_is_cut_off_is_reported_with_that_of_others(self):
        base = 1 << 32
        for number in (1, 2):
            made.write_process(self.folder / f"process-{number}", counts=made.counts([[10 * number]], base),
                               first=made.first([0], base), threads=made.threads(1))
        cut, whole = (self.folder / f"process-{number}" / "process.json" for number in (2, 1))
        text = cut.read_text()
        for size in (0, 1, len(text) // 2, len(text) - 1):
            os.truncate(cut, size)
            out = self.folder / "out.json"
            status, shown, _ = self.run_report(self.folder, "--json", str(out))
            self.assertEqual(status, 3)
            self.assertIn("process.json is damaged", " ".join(shown.split()))
            self.assertEqual("'granularity' is taken to be 4096, as in the other processes"
                             in " ".join(shown.split()), size < 2)
            data = json.loads(out.read_text())
            self.assertEqual(data["damage"][0]["path"], str(cut))
            self.assertEqual(data["program"]["accesses"], 30)
            cut.write_text(text)
        for path in (cut, whole):
            os.truncate(path, 5)
        with self.assertRaisesRegex(recording.Error, "process.json is damaged"):
            recording.Recording(self.folder)
        for process in (1, 2):  # enough to tell the granularity by
            made.write_process(self.folder / "many" / f"process-{process}", threads=made.threads(1),
                               counts=made.counts(np.ones((64, 1), int), base, 0, 512), granularity=512)
            os.truncate(self.folder / "many" / f"process-{process}" / "process.json", 5)
        loaded = traces.load(self.folder / "many")
        self.assertEqual((loaded.mode, loaded.granularity, loaded.units, len(loaded.damage)),
                         ("counts", 512, 128, 2))

    def test_reads_do_not_place_private_memory(self):
        base = 1 << 32
        first = np.concatenate([made.first([1], base, 1), made.first([0], base, 1)])
        first["flags"][0] = recording.FIRST_VALID
        first["time_ns"][1] = 20
        for name, kind, thread in (("private", 2, 0), ("shared", 3, 1)):
            made.write_process(self.folder / name / "process-1", counts=made.counts([[5, 5]], base, 1),
                               first=first, allocations=[made.allocation(base, 4096, what=kind)])
            self.assertEqual(traces.load(self.folder / name).first_thread.tolist(), [thread])

    def test_memory_touched_before_its_allocation_is_known_was_touched_nevertheless(self):
        base = 1 << 40
        first = made.first([2, 3], base, 0)
        first["address"][1] = base + (1 << 20)
        made.write_process(self.folder / "run" / "process-1", threads=made.threads(4),
                           counts=made.counts([[5, 0, 5, 0]], base, 1), first=first,
                           allocations=[made.allocation(base, 4096, what=6)])
        found = analysis.Analysis.of(str(self.folder / "run"))
        self.assertEqual(found.trace.first_thread.tolist(), [2])
        self.assertEqual(found.program.locality, 0.5)

    def test_counts_without_allocations_say_so(self):
        made.write_process(self.folder / "process-1", counts=made.counts([[1, 9], [1, 9]]),
                           first=made.first([0, 0]), threads=made.threads(2))
        found = analysis.Analysis.of(self.folder)
        self.assertEqual(found.structures[0].reason, "no allocations are recorded")
        self.assertIn("all lives are added up", found.warnings[0])
        self.assertIn("which structures they are is not known", advice.advise(found)[0].text)
        made.write_process(self.folder / "b" / "process-1", counts=made.counts([[1]]), first=made.first([0]),
                           allocations=[made.allocation(1 << 40, 4096)])
        found = analysis.Analysis.of(self.folder / "b")
        self.assertIn("too small", found.structures[0].reason)
        self.assertEqual([text for text in found.warnings if "lives" in text], [])

    def test_what_exec_replaced_hands_its_rank_on(self):
        def write(name, matrix, rank=None, **info):
            made.write_process(self.folder / name, rank=rank, counts=made.counts(matrix),
                               first=made.first([0] * len(matrix)), threads=made.threads(1), info=info)
        write("rank-00000", [[1]], 0, pid=7, end="exec", start_ns=1)
        write("process-7", [[1]], pid=7, end="exec", start_ns=2)
        write("process-7-2", [[5]] * 3, pid=7, end="exit 0", start_ns=3)
        write("rank-00001", [[1]], 1, pid=8, end="exit 0", start_ns=1)  # a script
        write("process-9", [[1]], pid=9, parent=8, end="exit 0", start_ns=2)
        write("process-10", [[5]] * 4, pid=10, parent=9, end="exit 0", start_ns=2)
        trace = traces.load(self.folder)
        self.assertEqual([one.name for one in trace.processes], ["process-7-2", "rank-00001"])
        self.assertEqual(trace.process_names, ["rank 0", "rank 1"])
        self.assertEqual(trace.units, 4)
        self.assertEqual(len([text for text in trace.warnings if "started by rank 1" in text]), 1)
        self.assertIn("process-10", trace.warnings[1])
        self.assertEqual(len(traces.load(self.folder, everything=True).processes), 6)

    def test_names_do_not_command_the_terminal(self):
        made.write_process(self.folder / "process-1", counts=made.counts([[3]]), first=made.first([0]),
                           threads=made.threads(1), info={"command": ["a\033[31mb"]})
        self.assertNotIn("\033", self.run_report(self.folder)[1])

    def test_frames_are_dictionaries_without_pandas(self):
        with mock.patch.dict(sys.modules, {"pandas": None}):
            import warren.locality
            run = warren.locality.load(self.baseline())
            self.assertEqual(run.units["T1"].sum(), 10000)
            self.assertEqual(run.structures["units"], [40])
            self.assertEqual(run.heat(rows=4)[3].tolist(), [10, 0, 0, 10000])
            with self.assertRaisesRegex(KeyError, "no structure 'x'"):
                run.heat("x")

    def touched(self, allocations, touches):
        """The first threads of a first-touch recording, by address and number of the block."""
        made.write_process(self.folder / "process-1", mode="first-touch", threads=made.threads(3),
                           allocations=allocations, touches=[
                               {"flags": recording.TOUCH_VALID | recording.TOUCH_WRITE,
                                "thread": thread, "address": address, "bytes": 4096, "time_ns": time}
                               for thread, address, time in touches])
        trace = traces.load(self.folder)
        return dict(zip(zip(trace.unit_address.tolist(), trace.unit_allocation.tolist()),
                        trace.first_thread.tolist()))

    def test_what_is_discarded_is_placed_anew(self):
        base = 1 << 32
        block = made.allocation(base, 8192)
        self.assertEqual(self.touched(
            [block, dict(block, event=recording.ALLOCATION_DISCARDED, size=4096, time_ns=20)],
            [(0, base, 10), (0, base + 4096, 10), (1, base, 30), (1, base + 4096, 30)]),
            {(base, 0): 1, (base + 4096, 0): 0})

    def test_pages_keep_their_place_when_their_block_moves(self):
        base, there = 1 << 32, 1 << 33
        block = made.allocation(base, 8192)
        self.assertEqual(self.touched(
            [block, dict(block, event=recording.ALLOCATION_ENDED, time_ns=19),
             dict(made.allocation(there, 12288, time=20), previous=base)],
            [(0, base, 10), (1, base + 4096, 10), (2, there + 8192, 30)]),
            {(base, 0): 0, (base + 4096, 0): 1, (there, 1): 0, (there + 4096, 1): 1,
             (there + 8192, 1): 2})

    def test_system_calls_place_what_nobody_touched_before(self):
        base = 1 << 32
        block = made.allocation(base, 12288)
        self.assertEqual(self.touched(
            [block, dict(block, event=recording.ALLOCATION_FILLED, tid=101, time_ns=20, address=base + 8,
                         size=8192)],
            [(0, base, 10), (2, base + 4096, 30)]),
            {(base, 0): 0, (base + 4096, 0): 1, (base + 8192, 0): 1})

    def test_launchers_are_left_out_of_jobs(self):
        run = self.baseline()
        made.write_process(run / "process-7", counts=made.counts([[5]]), first=made.first([0]),
                           info={"executable": "/usr/bin/mpiexec"})
        self.assertEqual(traces.load(run).units, 40)
        self.assertEqual(traces.load(run, everything=True).units, 41)

    def test_ranks_that_share_a_file_are_joined_in_counts(self):
        shared, file_at = recording.KINDS.index("shared"), (1 << 60) + 0x3000
        with tempfile.TemporaryDirectory() as folder:
            for rank, (base, skipped, time) in enumerate(((1 << 40, 0, 20), (1 << 41, 1, 10))):
                mapping = dict(made.allocation(base, 0x4000, what=shared), previous=file_at + 4096 * skipped)
                made.write_process(
                    f"{folder}/rank-{rank:05}", rank=rank, counts=made.counts([[10 + rank]] * 3, base, 1),
                    first=timed(made.first([0] * 3, base, 1), time),
                    threads=made.threads(1), allocations=[mapping])
            found = traces.load(folder)
        # The second rank's first page is the first one's second.
        self.assertEqual(found.units, 4)
        self.assertEqual(sorted(np.diff(found.starts).tolist()), [1, 1, 2, 2])
        self.assertEqual(metrics.per_unit(found).total.tolist(), [10, 21, 21, 11])
        self.assertEqual(sorted(found.first_thread.tolist()), [0, 1, 1, 1])  # rank 1 came first

    def test_a_file_that_a_process_maps_twice_has_one_row_of_each_thread(self):
        shared, file_at = recording.KINDS.index("shared"), 0xFFFF_FFF0_0000_3000
        bases = (1 << 40, 1 << 41)
        made.write_process(
            self.folder / "process-1", counts=np.concatenate([made.counts([[10, 1]], bases[0], 1),
                                                              made.counts([[5, 2]], bases[1], 2)]),
            first=np.concatenate([made.first([0], bases[0], 1), made.first([1], bases[1], 2)]),
            threads=made.threads(2),
            allocations=[dict(made.allocation(base, 0x1000, what=shared), previous=file_at)
                         for base in bases])
        found = traces.load(self.folder)
        self.assertEqual(found.units, 1)
        self.assertEqual(found.thread.tolist(), [0, 1])
        self.assertEqual(found.starts.tolist(), [0, 2])
        units = metrics.per_unit(found)
        self.assertEqual((units.total.tolist(), units.sharers.tolist()), ([18], [2]))

    def test_ranks_that_share_pages_are_joined_by_identity(self):
        base = 1 << 32
        for rank in (0, 1):
            touch = {"flags": recording.TOUCH_VALID | recording.TOUCH_WRITE, "thread": 0,
                     "address": base + rank * 65536, "bytes": 4096, "time_ns": 10 + rank,
                     "physical": 0x7000}
            private = dict(touch, address=1 << 40, physical=0x9000)
            made.write_process(self.folder / f"rank-0000{rank}", rank=rank,
                               touches=[touch, private], threads=made.threads(1),
                               counts=np.concatenate([
                                   made.counts([[10 + rank]], base + rank * 65536, 1),
                                   made.counts([[7]], 1 << 40)]),
                               allocations=[made.allocation(base + rank * 65536, 4096, what=3)])
        trace = traces.load(self.folder)
        units = metrics.per_unit(trace)
        self.assertEqual(trace.units, 3)  # private memory is nobody else's
        self.assertEqual(sorted(zip(units.total.tolist(), units.sharers.tolist())),
                         [(7, 1), (7, 1), (21, 2)])
        self.assertEqual(figures(trace).locality, (10 + 7 + 7) / 35)

    def test_advice_gains_what_recomputing_says(self):
        found = analysis.Analysis.of(self.baseline())
        changes = advice.advise(found)
        self.assertEqual([change.kind for change in changes], ["first touch", "ranks"])
        first = changes[0]
        self.assertEqual(first.units, 30)
        self.assertAlmostEqual(first.wrong_gain, 0.75)
        self.assertIn("1-3", first.cause)
        found.trace.first_thread[:] = np.repeat(np.arange(4), 10)
        self.assertAlmostEqual(figures(found.trace).locality, first.locality_after)
        self.assertEqual(first.wrong_after, 0.0)

    def test_the_table_has_the_columns_of_the_paper(self):
        path = self.folder / "table.csv"
        code, out, _ = self.run_report(self.baseline(), "--csv", path, "--quiet")
        self.assertEqual((code, out), (0, ""))
        lines = path.read_text().splitlines()
        self.assertEqual(lines[0], "address,alloc.thread,alloc.location,firsttouch.thread,"
                         "firsttouch.location,structure.name,T0,T1,T2,T3")
        self.assertEqual(len(lines), 41)
        self.assertEqual(lines[40].split(",")[0], f"{(1 << 32) + 39 * 4096:#x}")
        self.assertEqual(lines[40].split(",")[-4:], ["1", "0", "0", "1000"])

    def test_json_has_everything(self):
        path = self.folder / "all.json"
        self.assertEqual(self.run_report(self.baseline(), "--json", path)[0], 0)
        data = json.loads(path.read_text())
        self.assertEqual(len(data["units"]["T3"]), 40)
        self.assertEqual(data["program"]["wrong"], 30)
        self.assertAlmostEqual(data["balance"]["imbalance"], 14 / 11 - 1)
        self.assertEqual(data["advice"][0]["units"], 30)

    def test_changes_that_round_to_nothing_have_no_sign(self):
        for exact, shown in ((-0.0004, "0.0"), (0.0004, "0.0"), (0, "0.0"), (-0.0006, "-0.1"), (0.25, "+25.0")):
            before, after = (mock.Mock(program=mock.Mock(locality=one, correctness=None, exclusivity=one),
                                       balance=mock.Mock(imbalance=None), damage=[]) for one in (0.5, 0.5 + exact))
            page = text.Page(io.StringIO(), "never", 80)
            text.comparison(before, after, page)
            found = [line.split()[-1] for line in page.lines if "%" in line]
            self.assertEqual(found, [shown] * 2)

    def test_the_summary_fits_the_terminal(self):
        for width in (40, 80, 200):
            code, out, _ = self.run_report(self.baseline(f"w{width}"), "--width", width)
            self.assertEqual(code, 0)
            self.assertLessEqual(max(map(len, out.splitlines())), width)
        self.assertIn("\033[", self.run_report(self.baseline("c"), "--color", "always")[1])

    def test_what_is_missing_or_damaged_is_said(self):
        code, _, said = self.run_report(self.folder / "nothing")
        self.assertEqual(code, 1)
        self.assertIn("does not exist", said)
        self.assertIn("no recording", self.run_report(self.folder)[2])
        run = self.baseline()
        self.assertIn("phases: none", self.run_report(run, "--phase", "solve")[2])
        self.assertIn("0-3,8", self.run_report(run, "--intervals", "x")[2])
        self.assertIn("no such", self.run_report(run, "--what-if", "no such.json")[2])
        counts = run / "rank-00000" / "counts.rec"
        whole = counts.read_bytes()
        counts.write_bytes(whole[:-5])
        code, out, _ = self.run_report(run)
        self.assertEqual(code, 3)
        self.assertIn("ends within a record", " ".join(out.split()))
        for thread in (100_000, 0xe6000000):  # tables have a column each
            changed = bytearray(whole)
            changed[32 + 4:32 + 8] = thread.to_bytes(4, "little")
            counts.write_bytes(changed)
            code, said, _ = self.run_report(run, "--csv", self.folder / "out.csv")
            self.assertEqual(code, 3)
            self.assertIn("1 of its 70 records is left out, as record 1 has a thread", " ".join(said.split()))
            self.assertEqual(len((self.folder / "out.csv").read_text().splitlines()), 40)
        counts.write_bytes(b"damaged!" + whole[8:])
        code, said, _ = self.run_report(run)
        self.assertEqual(code, 3)
        self.assertIn("no file of a locality recording", " ".join(said.split()))

    def test_damaged_bytes_of_lines_are_said_or_left_out(self):
        both = {"flags": 1, "address": 1 << 32, "allocation": 1, "instruction": 0x1234}
        run = self.folder / "lines"
        made.write_process(run / "process-1", granularity=64, counts=made.counts([[9, 9]], 1 << 32, 1, 64),
                           first=made.first([0], 1 << 32, 1, 64), threads=made.threads(2, [10, 10]),
                           allocations=[made.allocation(1 << 32, 64)],
                           bytes=[{**both, "thread": 0, "written": 0xff},
                                  {**both, "thread": 1, "written": 0xff00}])
        self.assertEqual(traces.load(run).line_use["written"].tolist(), [0xff, 0xff00])
        path = run / "process-1" / "bytes.rec"
        whole = path.read_bytes()
        path.write_bytes(whole[:-5])
        self.assertEqual(traces.load(run).line_use["thread"].tolist(), [0])
        self.assertIn("ends within a record", " ".join(self.run_report(run)[1].split()))
        generator = np.random.default_rng(1)
        for _ in range(300):
            content = np.frombuffer(whole, "u1").copy()
            at = generator.integers(0, len(content), generator.integers(1, 9))
            content[at] = generator.integers(0, 256, len(at))
            path.write_bytes(content.tobytes())
            code, out, said = self.run_report(run)
            self.assertEqual(said, "", content.tolist())
            self.assertTrue("bytes.rec" in "".join(out.split()) if code == 3 else code == 0, (content.tolist(), out))


if __name__ == "__main__":
    unittest.main()
