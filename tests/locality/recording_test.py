"""Reading recordings: what the writer writes, and what is damaged, cut off or of another version.

    recording_test.py FOLDER-OF-THE-PYTHON-MODULES PROGRAM-THAT-WRITES-ONE
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, sys.argv[1])
WRITER = sys.argv[2]

from warren.locality import recording  # noqa: E402


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
        self.assertEqual(whole.warnings, [])
        process, = whole.ranks
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
                    self.assertIn("ends within a record", "\n".join(whole.warnings))
            (self.folder / name).write_bytes(content)

    def test_cut_off_within_the_header(self):
        for size in (1, 23, 31):
            self.cut("touches.rec", size)
            whole = recording.open(self.top)
            self.assertEqual(len(whole.processes[0].touches), 0)
            self.assertIn("touches.rec ends within its header", whole.warnings[0])
            subprocess.run(["rm", "-r", str(self.top)], check=True)
            subprocess.run([WRITER, str(self.top)], check=True)

    def test_stacks_that_were_not_written_are_unknown(self):
        self.cut("stacks.rec", 32)
        process = self.process()
        self.assertEqual(process.stack(process.allocations[0]["stack_id"]).tolist(), [])
        self.assertIn("not written", process.warnings[0])
        self.assertEqual(process.stack(process.touches[0]["stack_id"]).tolist(), [0x400400, 0x400300])

    def test_bytes_of_allocations_that_were_not_written_are_in_none(self):
        self.change("bytes.rec", 32 + 16, b"\3")
        process = self.process()
        self.assertEqual(process.bytes["allocation"].tolist(), [0])
        self.assertIn("bytes.rec: 1 records refer to a allocation that was not written",
                      "\n".join(process.warnings))

    def test_names_of_modules_that_were_cut_off(self):
        self.cut("strings.bin", 4)
        process = self.process()
        self.assertEqual(process.path(process.modules[0]), "")
        self.assertIn("1 modules have no name", process.warnings[0])

    def test_records_that_were_never_finished(self):
        self.change("threads.rec", 32 + 56, bytes(56))
        process = self.process()
        self.assertEqual(process.threads["thread"].tolist(), [0, 1, 2, 2, 0])
        self.assertIn("never finished", process.warnings[0])

    def test_room_for_records_to_come_is_no_loss(self):
        with (self.folder / "touches.rec").open("ab") as file:
            file.write(bytes(10 * 48))
        process = self.process()
        self.assertEqual((len(process.touches), process.warnings), (1, []))

    def test_what_the_recorder_lost_is_said(self):
        path = self.folder / "process.json"
        info = json.loads(path.read_text())
        info["lost"] = [{"what": "touches", "count": 7, "why": "the disk is full"}]
        info["end_ns"] = None
        path.write_text(json.dumps(info))
        said = "\n".join(self.process().warnings)
        self.assertIn("7 touches were lost: the disk is full", said)
        self.assertIn("no end", said)

    def test_empty_files(self):
        self.cut("touches.rec", 0)
        self.assertIn("is empty", self.process().warnings[0])

    def test_headers_that_are_wrong(self):
        for offset, data, words in (
                (0, b"X", ["no file of a locality recording"]),
                (8, b"\2", ["touches.rec", "version 2", "version 1"]),
                (12, b"XXXX", ["kind 'XXXX'", "'TOUC'"]),
                (20, b"\x31", ["records of 49 bytes"])):
            content = (self.folder / "touches.rec").read_bytes()
            self.change("touches.rec", offset, data)
            self.refused(*words)
            (self.folder / "touches.rec").write_bytes(content)
        for content in (b"no recording", bytes(31)):
            (self.folder / "touches.rec").write_bytes(content)
            self.refused("touches.rec", "no file of a locality recording")

    def test_records_that_cannot_be(self):
        for name, offset, data, words in (
                ("stacks.rec", 32 + 4, b"\1", ["stacks.rec is damaged: record 1 is called by"]),
                ("touches.rec", 32 + 21, b"\1", ["touches.rec is damaged: record 1 is of a page of more than"]),
                ("allocations.rec", 32 + 48, b"\x77", ["allocations.rec", "record 2", "unknown event"]),
                ("allocations.rec", 32 + 4, b"\x77", ["no known kind"]),
                ("touches.rec", 32 + 1, b"\x77", ["unknown flags"]),
                ("bytes.rec", 32 + 1, b"\x77", ["bytes.rec", "record 1", "unknown flags"]),
                ("modules.rec", 32 + 24, bytes(8), ["ends before it begins"])):
            content = (self.folder / name).read_bytes()
            self.change(name, offset, data)
            self.refused(*words)
            (self.folder / name).write_bytes(content)

    def test_descriptions_that_are_wrong(self):
        path = self.folder / "process.json"
        for text, words in (("{\"format\"", ["process.json is damaged"]), ("[]", ["doesn't describe"]),
                            ("{}", ["doesn't describe"])):
            path.write_text(text)
            self.refused(*words)
        subprocess.run(["rm", "-r", str(self.top)], check=True)
        subprocess.run([WRITER, str(self.top)], check=True)
        good = json.loads(path.read_text())
        for key, value, words in (("version", 9, ["version 9"]), ("mode", 3, ["'mode'"]),
                                  ("rank", "3", ["'rank'"]), ("lost", None, ["'lost'"]),
                                  ("lost", [{"what": "x", "why": "y"}], ["'lost'"]),
                                  ("missing", [3], ["'missing'"]), ("start_ns", [], ["'start_ns'"]),
                                  ("command", [1], ["'command'"]), ("granularity", True, ["'granularity'"]),
                                  ("page_size", 4095, ["no power of two"])):
            path.write_text(json.dumps({**good, key: value}))
            self.refused(*words)

    def test_processes_without_a_description_are_named(self):
        bare = self.top / "rank-00004"
        bare.mkdir()
        (self.top / "notes").mkdir()
        whole = recording.open(self.top)
        self.assertEqual(len(whole.processes), 1)
        self.assertEqual(len(whole.left_out), 1)
        self.assertIn("rank-00004 is left out", whole.warnings[0])
        self.assertIn("has no process.json", whole.warnings[0])
        bare.rename(self.top / "renamed")
        self.assertEqual(recording.open(self.top).left_out, [])
        (self.top / "renamed" / "counts.rec").touch()
        self.assertIn("renamed is left out", recording.open(self.top).left_out[0])
        (self.folder / "process.json").unlink()
        self.refused("no folder in it has a process.json", "rank-00003, renamed", "stopped before")

    def test_a_description_that_is_a_pipe_does_not_hang(self):
        path = self.folder / "process.json"
        path.unlink()
        os.mkfifo(path)
        self.refused("process.json", "no regular file")

    def test_what_is_no_recording(self):
        for folder, words in ((self.top / "nothing", "does not exist"), (WRITER, "no folder"),
                              (self.temporary.name, "holds no recording")):
            with self.assertRaises(recording.Error) as caught:
                recording.open(folder)
            self.assertIn(words, str(caught.exception))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
