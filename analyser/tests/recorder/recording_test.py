"""Reading recordings: what the writer writes, and what is damaged, cut off or of another version.

    recording_test.py FOLDER-OF-THE-PYTHON-MODULES PROGRAM-THAT-WRITES-ONE
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import tracemalloc
import types
import unittest
import zlib

sys.path.insert(0, sys.argv[1])
WRITER = sys.argv[2]

import numpy as np  # noqa: E402

from warren.locality import lines, recording  # noqa: E402


class Recordings(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.top = pathlib.Path(self.temporary.name, "made")
        subprocess.run([WRITER, str(self.top)], check=True)
        self.folder = self.top / "rank-00003"

    def process(self):
        return recording.open(self.top).processes[0]

    def refused(self, *words):
        with self.assertRaises(recording.Error) as caught:
            recording.open(self.top)
        for word in words:
            self.assertIn(word, str(caught.exception))

    def damaged(self, *words, count=1):
        """Opens it; what is damaged is said once, in these words."""
        whole = recording.open(self.top)
        said = [str(one) for one in whole.damage]
        self.assertEqual(len(said), count, said)
        for word in words:
            self.assertIn(word, "\n".join(said))
        self.assertEqual([text for text in whole.warnings if text in said], [])
        return whole

    def change(self, name, offset, data):
        path = self.folder / name
        content = bytearray(path.read_bytes())
        content[offset:offset + len(data)] = data
        path.write_bytes(content)

    def cut(self, name, size):
        path = self.folder / name
        path.write_bytes(path.read_bytes()[:size])

    def test_what_was_written(self):
        whole = recording.open(self.top)
        self.assertEqual(whole.damage, [])
        self.assertEqual(whole.warnings, [f"{self.top}: of the job's 8 ranks 7 are not in it, rank 0 for one: they "
                                          "were recorded elsewhere, not at all, or are lost"])
        process, = whole.ranks
        self.assertEqual(process.warnings, [])
        self.assertEqual((process.info["rank"], process.info["size"], process.info["command"]),
                         (3, 8, ["./program", "-x"]))
        self.assertEqual(process.info["nodes"], [0, 1])
        self.assertEqual(process.threads["cpu_ns"].tolist(), [0, 0, 700, 0, 800, 900])
        self.assertEqual(process.threads["name"][1], b"one")
        module = process.modules[0]
        self.assertEqual(process.path(module), "/usr/bin/pro\u00fc")
        self.assertEqual(process.build_id(module), "1200ff")
        self.assertEqual((module["begin"], module["file_offset"]), (0x400000, 0x1000))
        begin, end = process.allocations
        self.assertEqual((begin["address"], begin["size"], recording.KINDS[begin["what"]]),
                         (0x7000, 0x2000, "heap"))
        self.assertEqual(process.stack(begin["stack_id"]).tolist(), [0x400200, 0x400100])
        self.assertEqual(end["event"], recording.ALLOCATION_ENDED)
        touch = process.touches[0]
        self.assertEqual((touch["address"], touch["physical"], touch["node"], touch["flags"]),
                         (0x7008, 0xabc000, 1, recording.TOUCH_VALID | recording.TOUCH_WRITE))
        self.assertEqual(process.stack(touch["stack_id"]).tolist(), [0x400400, 0x400300])
        self.assertEqual(process.stack(process.first[0]["stack_id"]).tolist(), [0x400400, 0x400300])
        self.assertEqual(process.stack(0).tolist(), [])
        self.assertEqual(process.counts[0].tolist(), (1, 2, 0x7000, 1, 0, 5, 6, 40, 48))
        self.assertEqual(process.intervals[0].tolist(), (1, 0, 1000, 9000))
        self.assertEqual(process.communication[0].tolist(), (1, 1, 2, 0, 9, 72))
        self.assertEqual(process.bytes[0].tolist(), (1, 2, 0x7000, 1, 0, 0xf0, 0xff << 56, 0x400400))
        self.assertEqual((process.phases[0]["level"], process.phases[0]["name"]), (-2, b"solve"))
        self.assertEqual((process.names[0]["size"], process.names[0]["name"]), (64, b"uBuffer"))

    def test_threads_are_told_apart_when_the_system_reuses_their_number(self):
        process = self.process()
        self.assertEqual(process.allocations["thread"].tolist(), [1, 2])
        self.assertEqual(process.thread_of([10, 20, 20, 99], [5000, 1999, 9999, 5]).tolist(),
                         [0, 1, 2, -1])

    def test_a_folder_of_one_process(self):
        self.assertEqual(len(recording.open(self.folder).processes), 1)

    def test_files_that_are_not_there_have_no_records(self):
        for path in self.folder.glob("*.rec"):
            path.unlink()
        self.damaged("touches.rec is missing; lost: first touches", "threads.rec", "modules.rec",
                     "touch_stacks.rec", count=4)  # the mode always has these
        self.assertEqual(len(self.process().touches), 0)
        self.assertEqual(self.process().allocations["thread"].tolist(), [])

    def test_cut_off_anywhere(self):
        sizes = {path.name: path.stat().st_size for path in self.folder.glob("*.rec")}
        for name, size in sizes.items():
            content = (self.folder / name).read_bytes()
            for end in {32, 33, 39, size - 17, size - 8, size - 1}:
                (self.folder / name).write_bytes(content[:end])
                whole = recording.open(self.top)
                records = getattr(whole.processes[0], name[:-4])
                width = recording.np.dtype(recording.FILES[name[:-4]][1]).itemsize
                self.assertEqual(len(records), (end - 32) // width)
                if (end - 32) % width:
                    self.assertIn(f"{name} ends within a record", "\n".join(map(str, whole.damage)))
            (self.folder / name).write_bytes(content)

    def test_cut_off_within_the_header(self):
        for size in (1, 23, 31):
            self.cut("touches.rec", size)
            whole = self.damaged("touches.rec ends within its header")
            self.assertEqual(len(whole.processes[0].touches), 0)
            subprocess.run(["rm", "-r", str(self.top)], check=True)
            subprocess.run([WRITER, str(self.top)], check=True)

    def test_stacks_that_were_not_written_are_unknown(self):
        self.cut("stacks.rec", 32)
        process = self.process()
        self.assertEqual(process.stack(process.allocations[0]["stack_id"]).tolist(), [])
        self.damaged("allocations.rec has 1 records that refer to calls that was not written")
        self.assertEqual(process.stack(process.touches[0]["stack_id"]).tolist(), [0x400400, 0x400300])

    def test_bytes_of_allocations_that_were_not_written_are_in_none(self):
        self.change("bytes.rec", 32 + 16, b"\3")
        process = self.process()
        self.assertEqual(process.bytes["allocation"].tolist(), [0])
        self.damaged("bytes.rec has 1 records that refer to an allocation that was not written")

    def test_names_of_modules_that_were_cut_off(self):
        self.cut("strings.bin", 4)
        process = self.process()
        self.assertEqual(process.path(process.modules[0]), "")
        self.damaged("strings.bin is cut off: 1 modules have no name")

    def test_records_that_were_never_finished(self):
        self.change("threads.rec", 32 + 56, bytes(56))
        process = self.process()
        self.assertEqual(process.threads["thread"].tolist(), [0, 1, 2, 2, 0])
        self.damaged("1 of its 6 records is left out, as record 2 was never finished")

    def test_room_for_records_to_come_is_no_loss(self):
        with (self.folder / "touches.rec").open("ab") as file:
            file.write(bytes(10 * 48))
        process = self.process()
        self.assertEqual((len(process.touches), process.warnings), (1, []))

    def test_room_that_is_no_multiple_of_a_record_is_no_loss(self):
        for name in ("allocations", "stacks", "phases", "names"):  # windows of pages, as the tracker maps them
            path = self.folder / f"{name}.rec"
            content = path.read_bytes()
            width = np.dtype(recording.FILES[name][1]).itemsize
            # Full but for the rest, and with room for many.
            for records in ((content[32:] * 4096)[:(4096 - 32) // width * width], content[32:]):
                path.write_bytes((content[:32] + records).ljust(4096, b"\0"))
                self.damaged(count=0)
            path.write_bytes(content[:32] + (content[32:] * 4096)[:(4096 - 32) // width * width + 9])
            self.assertIn(f"{name}.rec ends within a record: 9 bytes",
                          "\n".join(str(one) for one in recording.open(self.top).damage))
            path.write_bytes(content)

    def test_what_the_tracker_had_no_room_for_is_said(self):
        for name in ("allocations.rec", "stacks.rec", "phases.rec", "names.rec"):
            self.change(name, 24, (7).to_bytes(8, "little"))
        path = self.folder / "process.json"
        info = json.loads(path.read_text())
        expected = {f"{self.folder}: 7 {what} were lost: the disk was full, files were limited, or the recording "
                    "had reached its limit" for what in ("allocations", "calls of allocations", "phases", "names")}
        for mode, end, said in (("first-touch", 9000, set()), ("first-touch", None, expected),
                                ("counts", 9000, expected), ("sample", None, expected)):
            path.write_text(json.dumps({**info, "mode": mode, "end_ns": end}))
            with self.subTest(mode=mode, end=end):
                warnings = recording.open(self.top).processes[0].warnings
                self.assertEqual({text for text in warnings if "were lost" in text}, said)

    def test_what_the_recorder_lost_is_said(self):
        path = self.folder / "process.json"
        info = json.loads(path.read_text())
        info["lost"] = [{"what": "touches", "count": 7, "why": "the disk is full"}]
        info["end_ns"] = None
        path.write_text(json.dumps(info))
        said = "\n".join(self.process().warnings)
        self.assertIn("7 touches were lost: the disk is full", said)
        self.assertIn("no end", said)
        info["lost"] *= 2
        info["lost"][1]["count"] = 0  # nobody has counted them
        path.write_text(json.dumps(info))
        whole = recording.open(self.top)
        self.assertIn("all touches were lost: the disk is full", "\n".join(whole.warnings))
        self.assertEqual(whole.damage, [])

    def test_empty_files(self):
        self.cut("touches.rec", 0)
        self.damaged("touches.rec is empty")
        self.change("process.json", (self.folder / "process.json").read_bytes().index(b'"end_ns": 9000'),
                    b'"end_ns": null')
        whole = recording.open(self.top)
        self.assertEqual(whole.damage, [])
        self.assertIn("touches.rec is empty: its writer was stopped", "\n".join(whole.warnings))

    def test_headers_that_are_wrong(self):
        for offset, data, words in (
                (0, b"X", ["no file of a locality recording"]),
                (8, b"\2", ["touches.rec", "version 2", "version 1"]),
                (12, b"XXXX", ["kind 'XXXX'", "'TOUC'"]),
                (20, b"\x31", ["records of 49 bytes"])):
            content = (self.folder / "touches.rec").read_bytes()
            self.change("touches.rec", offset, data)
            self.assertEqual(len(self.damaged(*words).processes[0].touches), 0)
            (self.folder / "touches.rec").write_bytes(content)
        for content in (b"no recording", bytes(31)):
            (self.folder / "touches.rec").write_bytes(content)
            self.damaged("touches.rec", "no file of a locality recording")

    def test_records_that_cannot_be(self):
        for name, offset, data, words in (
                ("stacks.rec", 32 + 4, b"\1", ["stacks.rec is damaged", "record 1 is called by"]),
                ("touches.rec", 32 + 21, b"\1", ["touches.rec is damaged", "record 1 is of a page of a size"]),
                ("touches.rec", 32 + 16, b"\1", ["touches.rec is damaged", "record 1 is of a page of a size"]),
                ("allocations.rec", 32 + 48, b"\x77", ["allocations.rec", "record 2", "unknown event"]),
                ("allocations.rec", 32 + 4, b"\x77", ["no known kind"]),
                ("allocations.rec", 32 + 23, b"\x77", ["larger than can be"]),
                ("touches.rec", 32 + 1, b"\x77", ["unknown flags"]),
                ("touches.rec", 32 + 6, b"\x77", ["thread far beyond"]),
                ("first.rec", 32 + 6, b"\x77", ["thread far beyond"]),
                ("counts.rec", 32 + 7, b"\xff", ["record 1 has a thread that can't be"]),
                ("counts.rec", 32 + 31, b"\x77", ["record 1 has more reads than can be"]),
                ("counts.rec", 32 + 15, b"\x77", ["record 1 has an address that can't be"]),
                ("communication.rec", 32 + 7, b"\x77", ["record 1 has a producer that can't be"]),
                ("bytes.rec", 32 + 1, b"\x77", ["bytes.rec", "record 1", "unknown flags"]),
                ("modules.rec", 32 + 24, bytes(8), ["ends before it begins"])):
            content = (self.folder / name).read_bytes()
            self.change(name, offset, data)
            whole = self.damaged(*words)
            self.assertEqual(len(getattr(whole.processes[0], name[:-4])),
                             {"stacks.rec": 2, "allocations.rec": 2}.get(name, 0))
            (self.folder / name).write_bytes(content)

    def test_large_files_are_read_without_what_is_damaged_in_pieces(self):
        path = self.folder / "counts.rec"
        content = path.read_bytes()
        count = 2 * recording.records.CHUNK + 1000
        made = np.frombuffer(content[32:], recording.np.dtype(recording.FILES["counts"][1])).repeat(count)
        made["reads"] = np.arange(count)
        bad = np.array([0, 5, recording.records.CHUNK, count - 1])
        made["thread"][bad] = 1 << 20
        made["allocation"][7] = 99
        path.write_bytes(content[:32] + made.tobytes())
        whole = self.damaged("4 of its 525,288 records are left out, as record 1 has a thread", "refer to an allocation",
                             count=2)
        counts = whole.processes[0].counts
        self.assertIsInstance(counts, recording.Chosen)  # no copy
        good = np.delete(np.arange(count), bad)
        self.assertEqual(len(counts), len(good))
        self.assertTrue((counts["reads"] == good).all())
        self.assertTrue((counts[100:200]["reads"] == good[100:200]).all())
        self.assertTrue((np.array(counts)["reads"] == good).all())
        self.assertEqual(recording.column(counts, "allocation").tolist(),
                         np.where(good == 7, 0, made["allocation"][8]).tolist())
        half = recording.without(counts, recording.masked(counts, lambda piece: piece["reads"] % 2 == 0))
        self.assertEqual(half["reads"].tolist(), good[good % 2 == 0].tolist())

    def test_a_file_whose_tail_is_zeros_is_searched_in_pieces(self):
        with (self.folder / "counts.rec").open("ab") as file:
            file.truncate(32 + 56 * (2 * recording.records.CHUNK + 3))
        self.assertEqual(len(self.process().counts), 1)

    def test_which_bytes_threads_use_is_read_without_a_copy_of_the_records(self):
        path = self.folder / "bytes.rec"
        content = path.read_bytes()
        count = 1 << 17
        made = np.frombuffer(content[32:], recording.np.dtype(recording.FILES["bytes"][1])).repeat(count)
        made["thread"] = np.arange(count) % 2
        made["address"] = np.arange(count) % 1024 // 2 * 64
        made["read"], made["instruction"] = 1 << (np.arange(count) % 64).astype("<u8"), np.arange(count)
        made["thread"][:2] = 0xffffffff  # nobody
        path.write_bytes(content[:32] + made.tobytes())
        part = types.SimpleNamespace(
            process=self.process(), keys=np.arange(256, dtype="<u8"), trace=types.SimpleNamespace(granularity=64),
            key_of=lambda unit, allocation: unit, sites_of_instructions=lambda ones: ones.astype("<i4"))
        tracemalloc.start()
        self.addCleanup(tracemalloc.stop)
        uses = lines.read(part)
        self.assertLess(tracemalloc.get_traced_memory()[1], made.nbytes)
        self.assertEqual(uses["unit"].tolist(), np.arange(256).repeat(2).tolist())
        self.assertEqual(uses["thread"].tolist(), [0, 1] * 256)
        self.assertEqual(uses["read"].tolist(), [1 << number % 64 for number in range(512)])
        self.assertEqual(uses["site"].tolist(), [1024, 1025, *range(2, 512)])  # the first of each

    def sums(self, **changed):
        """Describes the files as the recorder does."""
        path = self.folder / "process.json"
        info = json.loads(path.read_text())
        info["files"] = {one.name: {"bytes": one.stat().st_size, "crc32": zlib.crc32(one.read_bytes())}
                         for one in self.folder.iterdir() if one != path} | changed
        text = json.dumps(info)[:-1]
        path.write_text(f'{text},\n "sum": {zlib.crc32(text.encode())}\n}}\n')

    def test_files_are_compared_with_what_was_written(self):
        self.sums()
        self.damaged(count=0)
        contents = {path.name: path.read_bytes() for path in self.folder.iterdir()}
        for name in sorted(set(contents) - {"process.json"}):
            content = contents[name]
            for changed, words in ((None, "is missing"),
                                   (content[:-1], f"cut off: {len(content) - 1} of {len(content)} bytes are"),
                                   (content[:len(content) // 2], "cut off"), (b"", "cut off: 0 of"),
                                   (content[:-1] + bytes([content[-1] ^ 1]), "checksum"),
                                   (content + b"x", "has 1 bytes more")):
                (self.folder / name).unlink(missing_ok=True)
                if changed is not None:
                    (self.folder / name).write_bytes(changed)
                said = [str(one) for one in recording.open(self.top).damage if one.file == name]
                self.assertIn(f"{name} ", said[0])
                self.assertIn(words, said[0])
            (self.folder / name).write_bytes(content)
        # Of a longer file what was written is whole.
        with (self.folder / "touches.rec").open("ab") as file:
            file.write(contents["touches.rec"][32:])
        self.assertEqual(len(self.damaged("48 bytes more").processes[0].touches), 1)

    def test_replaced_programs_may_have_records_behind_what_was_summed_up(self):
        path = self.folder / "process.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "end": "exec"}))
        self.sums()
        for name, more, count in (("touches.rec", bytes(47) + b"\1", 0), ("strings.bin", b"xyz", 0),
                                  ("touches.rec", b"\1" * 47, 1)):
            file = self.folder / name
            content = file.read_bytes()
            file.write_bytes(content + more)
            process, = self.damaged(count=count).processes
            self.assertEqual(len(process.touches), 1)
            file.write_bytes(content[:-1] + b"\x7f" + more)
            self.assertIn("checksum", "\n".join(str(one) for one in recording.open(self.top).damage))
            file.write_bytes(content)

    def test_a_changed_description_is_known_by_its_sum(self):
        self.sums()
        text = (self.folder / "process.json").read_bytes()
        for key in (b'"version": ', b'"format": "', b'"forma'):  # no other version: it is damaged
            at = text.index(key) + len(key)
            (self.folder / "process.json").write_bytes(text[:at] + bytes([text[at] ^ 2]) + text[at + 1:])
            process, = self.damaged("process.json is not what was written").processes
            self.assertEqual((process.info["pid"], process.info["rank"], process.warnings), (4711, 3, []))
        (self.folder / "process.json").write_bytes(text)
        self.change("process.json", (self.folder / "process.json").read_bytes().index(b"4711"), b"4712")
        self.damaged("process.json is not what was written")

    def test_files_that_nobody_knows_count_too(self):
        self.sums(**{"more.rec": {"bytes": 3, "crc32": zlib.crc32(b"abc")}})
        self.damaged("more.rec is missing; lost: what is in it")
        (self.folder / "more.rec").write_bytes(b"abc")
        self.damaged(count=0)
        self.sums(**{"../more": {"bytes": 3, "crc32": 1}})
        self.damaged("'files'")

    def test_descriptions_that_are_wrong(self):
        path = self.folder / "process.json"
        good = json.loads(path.read_text())
        # By the records it is one of first touches.
        for text, words in (("{\"format\"", ["process.json is damaged"]), ("[]", ["doesn't describe"]),
                            ("{}", ["doesn't describe"]), ("", ["damaged"])):
            path.write_text(text)
            process, = self.damaged(*words).processes
            self.assertEqual((process.info["mode"], process.info["rank"], len(process.touches)), ("first-touch", 3, 1))
            self.assertIn("'mode' is taken to be 'first-touch', by the look of the records", process.warnings[0])
        path.write_text(json.dumps({**good, "version": 9}))
        self.refused("version 9")
        for key, value, words in (("mode", 3, ["'mode'"]),
                                  ("rank", "3", ["'rank'"]), ("lost", None, ["'lost'"]),
                                  ("lost", [{"what": "x", "why": "y"}], ["'lost'"]),
                                  ("missing", [3], ["'missing'"]), ("start_ns", [], ["'start_ns'"]),
                                  ("command", [1], ["'command'"]), ("granularity", True, ["'granularity'"]),
                                  ("page_size", 4095, ["'page_size'"]), ("files", {"x": 3}, ["'files'"])):
            path.write_text(json.dumps({**good, key: value}))
            process, = self.damaged(*words).processes
            self.assertEqual((process.info["rank"], process.info["granularity"]), (3, 4096))

    def test_of_a_cut_description_is_saved_what_is_whole(self):
        path = self.folder / "process.json"
        text = path.read_text()
        for size in range(0, len(text.rstrip()), 3):
            path.write_text(text[:size])
            process, = recording.open(self.top).processes
            self.assertEqual(len(process.damage), 1, size)
            self.assertIn(process.info.get("pid"), (4711, -1))  # never a part of a number
            self.assertIn(process.info.get("end_ns"), (9000, None))
            self.assertEqual(process.info["mode"], "first-touch")

    def test_processes_without_a_description_are_named(self):
        bare = self.top / "rank-00004"
        bare.mkdir()
        (self.top / "notes").mkdir()
        whole = self.damaged("rank-00004 is left out", "process.json is missing")
        self.assertEqual(len(whole.processes), 1)
        bare.rename(self.top / "renamed")
        self.assertEqual(recording.open(self.top).damage, [])
        (self.top / "renamed" / "counts.rec").touch()
        self.damaged("renamed is left out")
        (self.folder / "process.json").unlink()  # what it was is seen by its files
        self.damaged("renamed is left out", "rank-00003/process.json is missing", count=2)
        for path in self.folder.glob("*.rec"):
            path.unlink()
        self.refused("process.json is missing", "1 more", "stopped before")

    def test_a_description_that_is_a_pipe_does_not_hang(self):
        path = self.folder / "process.json"
        path.unlink()
        os.mkfifo(path)
        self.damaged("process.json", "no regular file")
        (self.folder / "first.rec").unlink()
        os.mkfifo(self.folder / "first.rec")
        self.damaged("first.rec is no file", count=2)

    def test_what_is_no_recording(self):
        for folder, words in ((self.top / "nothing", "does not exist"), (WRITER, "no folder"),
                              (self.temporary.name, "holds no recording")):
            with self.assertRaises(recording.Error) as caught:
                recording.open(folder)
            self.assertIn(words, str(caught.exception))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
