"""The advection example, recorded: its structures have their names and lines, and the advice names the
one that is touched first by one thread."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, sys.argv.pop(1))
BUILD = pathlib.Path(sys.argv.pop(1))
os.environ.pop("WARREN_RANKS", None)  # the first touch of a process's first thread is looked for
SOURCE = pathlib.Path(__file__).resolve().parents[3] / "examples" / "advection"

from warren.locality import advice, analysis, symbols  # noqa: E402


def line_of(file, text):
    lines = (SOURCE / file).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


class Advection(unittest.TestCase):
    def recorded(self, version):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        folder = pathlib.Path(place.name) / "recording"
        done = subprocess.run(
            [BUILD / "bin" / "warren", "locality", "record", "-q", "-o", folder, "--",
             BUILD / "bin" / "mpiexec", "-n", "1", BUILD / "examples" / "advection",
             "--points", "128,32,64", "--steps", "2", "--version", version],
            capture_output=True, text=True, timeout=60, check=False)
        if done.returncode == 125:
            print(done.stderr, file=sys.stderr)
            sys.exit(77)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = analysis.Analysis.of(folder)
        by_name = {one.name: index for index, one in enumerate(found.structures)}
        return found, by_name

    def first_touch_shares(self, found, index):
        touches = found.first_touches()[index, :-1]
        return touches / touches.sum()

    @unittest.skipUnless(symbols.find_symbolizer()[0], "no symbolizer")
    def test_baseline(self):
        found, by_name = self.recorded("baseline")
        places = {"u_buffer": ("main.cpp", "u_buffer.resize(grid.count());"),
                  "rate": ("kernel.f90", "allocate (rate"), "increment": ("kernel.f90", "allocate (rate")}
        for name, (file, text) in places.items():
            self.assertIn(name, by_name, [one.reason for one in found.structures])
            self.assertEqual(found.structures[by_name[name]].location, f"{file}:{line_of(file, text)}")
        self.assertGreater(self.first_touch_shares(found, by_name["u_buffer"])[0], 0.99)
        self.assertLess(self.first_touch_shares(found, by_name["rate"]).max(), 0.3)
        changes = advice.advise(found)
        self.assertEqual(found.structures[changes[0].structure].name, "u_buffer")

    @unittest.skipUnless(symbols.find_symbolizer()[0], "no symbolizer")
    def test_allocator(self):
        found, by_name = self.recorded("allocator")
        self.assertLess(self.first_touch_shares(found, by_name["u_buffer"]).max(), 0.3)
        self.assertNotIn("u_buffer", [found.structures[change.structure].name
                                      for change in advice.advise(found)])


if __name__ == "__main__":
    unittest.main()
