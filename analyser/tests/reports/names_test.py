"""Names and places of structures, from programs compiled here with each optimisation."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path[:0] = [sys.argv.pop(1), os.path.dirname(os.path.abspath(__file__))]

import numpy as np  # noqa: E402

import recordings as made  # noqa: E402
from warren.locality import analysis, declarators, elf, recording, symbols  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent / "names"


def recorded(log, folder):
    """A recording of the log of names/log_allocations.c: every block touched by thread 0."""
    stacks, allocations, paths, modules, variables = [], [], [], [], []
    text = 0
    for line in log.read_text().splitlines():
        words = line.split()
        if words[0] == "block":
            caller = 0
            for address in reversed(words[3:]):
                stacks.append({"place": recording.PLACE_RETURN_ADDRESS, "caller": caller,
                               "address": int(address, 16)})
                caller = len(stacks)
            allocations.append(made.allocation(int(words[1], 16), int(words[2]), stack=caller,
                                               time=len(allocations) + 1))
            continue
        begin, end = (int(part, 16) for part in words[1].split("-"))
        if len(words) == 6 and modules and begin == modules[-1]["end"]:
            variables.append((begin, end))  # without a value in the file
        elif len(words) == 7 and words[6].startswith("/"):
            variables.append((begin, end))
            modules.append({"event": recording.MODULE_LOADED, "begin": begin, "end": end,
                            "file_offset": int(words[3], 16), "path_offset": text,
                            "path_bytes": len(words[6])})
            paths.append(words[6])
            text += len(words[6])
    first = [made.first([0], (one["address"] + 4095) & ~4095, index + 1)
             for index, one in enumerate(allocations)]
    counts = [made.counts([[1]], (one["address"] + 4095) & ~4095, index + 1)
              for index, one in enumerate(allocations)]
    counts += [made.counts([[1]] * ((end - begin) // 4096), begin) for begin, end in variables]
    made.write_process(folder / "process-1", stacks=stacks, allocations=allocations, paths=paths,
                       modules=modules, counts=np.concatenate(counts), first=np.concatenate(first),
                       threads=made.threads(1))


class Measured(unittest.TestCase):
    def test_where_there_are_no_large_blocks_that_is_said(self):
        program = HERE.parents[3] / "bench" / "locality_names"
        with tempfile.TemporaryDirectory() as place:
            made.write_process(pathlib.Path(place, "process-1"), counts=made.counts([[1]]), first=made.first([0]),
                               threads=made.threads(1), allocations=[made.allocation(1 << 32, 4096)])
            for least, status, told in (("1048576", 0, "no heap block of at least 1,048,576 bytes"),
                                        ("1000", 1, "0 of 1 blocks named (0.0 %)")):
                done = subprocess.run([sys.executable, program, "--bytes", least, place], capture_output=True,
                                      text=True, timeout=60, check=False)
                self.assertEqual((done.returncode, done.stderr), (status, ""), done.stdout)
                self.assertIn(told, done.stdout)
                self.assertEqual("%" in done.stdout, status == 1, done.stdout)


class Names(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.place.name)
        cls.library = cls.folder / "log.so"
        subprocess.run(["gcc", "-shared", "-fPIC", "-O1", HERE / "log_allocations.c", "-o", cls.library],
                       check=True)

    @classmethod
    def tearDownClass(cls):
        cls.place.cleanup()

    def analysed(self, compiler, source, *options):
        name = f"{source.stem}{source.suffix[1:]}{''.join(options)}"
        program, log = self.folder / name, self.folder / f"{name}.log"
        subprocess.run([compiler, "-w", *options, source, "-o", program], check=True, cwd=self.folder)
        subprocess.run([program], check=True, stdout=subprocess.DEVNULL,
                       env=dict(os.environ, LD_PRELOAD=str(self.library), ALLOCATION_LOG=str(log)))
        recorded(log, self.folder / f"{name}.recording")
        return analysis.Analysis.of(self.folder / f"{name}.recording")

    def expect_names(self, found, source):
        expected = {(name, line) for line, text in enumerate(source.read_text().splitlines(), 1)
                    if "names " in text and line > 2
                    for name in re.split(r"names ", text)[1].split()}
        heap = {(one.name, one.line) for one in found.structures
                if one.kind == "heap" and one.file == str(source)}
        self.assertEqual(heap, expected)

    @unittest.skipUnless(symbols.find_symbolizer()[0], "no symbolizer")
    def test_cpp(self):
        for level in ("-O0", "-O2"):
            with self.subTest(level):
                source = HERE / "structures.cpp"
                found = self.analysed("g++", source, "-g", level)
                self.expect_names(found, source)
                statics = {one.name for one in found.structures if one.kind == "static"}
                self.assertLessEqual({"static_table", "hidden_table"}, statics)

    @unittest.skipUnless(symbols.find_symbolizer()[0] and shutil.which("gfortran"), "no Fortran")
    def test_fortran(self):
        for level in ("-O0", "-O2"):
            with self.subTest(level):
                source = HERE / "structures.f90"
                found = self.analysed("gfortran", source, "-g", level)
                self.expect_names(found, source)
                self.assertIn("work::table", {one.name for one in found.structures})

    def test_without_debug_information_the_reason_is_said(self):
        found = self.analysed("g++", HERE / "structures.cpp", "-O1")
        heap = [one for one in found.structures if one.kind == "heap"]
        own = [one for one in heap if re.match(r"structurescpp-O1\+0x", one.location)]
        self.assertGreater(len(own), 10)
        for one in heap:  # one is the C++ library's
            self.assertFalse(one.named)
            self.assertIn("compile with -g", one.reason)

    def test_a_program_that_was_rebuilt_is_not_asked(self):
        found = self.analysed("g++", HERE / "structures.cpp", "-g")
        path = found.trace.processes[0].path(found.trace.processes[0].modules[0])
        self.assertIsNone(found.symbolizer.file(path, "00" * 20))
        self.assertIn("has changed", found.symbolizer.missing[-1])

    def test_damaged_files_are_no_crash(self):
        program = pathlib.Path(sys.executable).resolve().read_bytes()
        for size in (0, 3, 64, 1000):
            cut = self.folder / "cut"
            cut.write_bytes(program[:size])
            with self.assertRaises(elf.Error):
                elf.File(str(cut)).build_id()
                _ = elf.File(str(cut)).variables

    def test_a_page_of_the_file_in_two_segments_is_told_apart(self):
        class File:  # code at 0, constants at 0x2000, and variables from the same page of the file
            def addresses_of_offset(self, offset):
                return {0: [0], 0x2000: [0x2000, 0x3000]}[offset]

        records = np.zeros(4, np.dtype(recording.FILES["modules"][1]))
        records["event"] = recording.MODULE_LOADED
        for loaded, base in ((0, 0x10000), (2, 0x50000)):  # twice, the first without its constants
            records["begin"][loaded:loaded + 2] = base, base + (0x3000 if loaded == 0 else 0x2000)
            records["end"][loaded:loaded + 2] = base + 0x2000, base + 0x4000
            records["file_offset"][loaded + 1] = 0x2000

        class Process:
            modules = records

            def path(self, record):
                return "/program"

        modules = symbols.Modules(Process())
        self.assertEqual([modules.address_in_file(record, File()) for record in modules.records],
                         [0, 0x3000, 0, 0x2000])

    def test_pipes_devices_and_huge_files_are_not_read(self):
        pipe, huge = self.folder / "pipe.cpp", self.folder / "huge.cpp"
        os.mkfifo(pipe)
        with huge.open("wb") as file:
            file.truncate(1 << 40)
        for path in (str(pipe), "/dev/zero", str(huge), "a\0b", str(self.folder)):
            self.assertIsNone(declarators.name_at(path, 1, 1))
            with self.assertRaises(elf.Error):
                elf.File(path)

    def test_places_outside_of_the_source(self):
        source = str(HERE / "structures.cpp")
        for place in ((source, 0, 0), (source, 100000, 1), (source, 1, 500), ("nowhere.cpp", 1, 1)):
            self.assertIsNone(declarators.name_at(*place))


if __name__ == "__main__":
    unittest.main()
