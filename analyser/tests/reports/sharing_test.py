"""What the analysis says of lines that threads take from each other, on traces whose sharing is known."""

import os
import sys
import unittest

sys.path[:0] = [sys.argv.pop(1), os.path.dirname(os.path.abspath(__file__))]

import numpy as np  # noqa: E402

from warren.locality import advice, analysis, lines, sharing, trace as traces  # noqa: E402


class Sharing(unittest.TestCase):
    """Lines that threads take from each other."""

    def advised(self, matrix, writers, granularity=64):
        trace = traces.synthetic(matrix, np.zeros(len(matrix)), granularity)
        rows = np.repeat(np.arange(len(matrix)), np.diff(trace.starts))
        trace.writes = np.where([thread in writers[row] for row, thread in zip(rows, trace.thread)],
                                trace.accesses, 0).astype("<u8")
        found = analysis.Analysis(trace)
        return sharing.contention(trace, found.units), advice.advise(found)

    def test_lines_with_several_writers_and_with_readers(self):
        # Two write; one writes and one reads; all read; one uses it alone; another initialised it.
        found, changes = self.advised(
            [[100, 100, 0], [60, 40, 0], [50, 50, 50], [0, 90, 0], [8, 0, 900]],
            [{0, 1}, {0}, set(), {1}, {0, 2}])
        self.assertEqual(found.accesses.tolist(), [100, 40, 0, 0, 0])
        change, = changes
        self.assertEqual((change.kind, change.units, change.remote), ("sharing", 2, 140))
        self.assertIn("2 of its 5 lines of 64 B", change.cause)
        self.assertIn("1 to 2 of 2 threads", change.cause)
        self.assertIsNone(change.locality_gain)

    def test_little_contention_has_one_line(self):
        _, (change,) = self.advised([[100000, 0], [10, 10]], [{0}, {0, 1}])
        self.assertEqual((change.kind, change.units, change.remote), ("minor", 1, 10))
        self.assertIn("1 structure, less than 0.1 % of all accesses contended each, 0.0 % together", change.text)

    def test_bytes_tell_false_sharing(self):
        trace = traces.synthetic([[100, 100], [100, 100]], [0, 0], 64)
        trace.writes = trace.accesses
        trace.line_use = np.array([(0, 0, -1, 0, 0xff), (0, 1, -1, 0xf0000, 0xff00),
                                   (1, 0, -1, 0, 0xff), (1, 1, -1, 0x80, 0)], lines.USE)
        found = analysis.Analysis(trace)
        self.assertEqual([sharing.is_false(sharing.uses_of(trace, unit)) for unit in (0, 1)], [True, False])
        self.assertEqual(sharing.ranges(0b1110000001), "0, 7-9")
        change, = advice.advise(found)
        self.assertIn("1 of 2 falsely", change.cause)
        self.assertIn("T0 writes 0-7", change.cause)
        self.assertIn("T1 writes 8-15", change.cause)
        listed = sharing.listed(found)
        self.assertEqual([one["falsely"] for one in listed], [True, False])
        self.assertEqual(listed[0]["uses"][1]["read"], "16-19")
        part = traces.selected(trace, np.array([False, True]))
        self.assertEqual(part.line_use["unit"].tolist(), [0, 0])

    def test_borders_of_large_parts(self):
        matrix = np.zeros((100, 2), int)
        matrix[:50, 0] = matrix[50:, 1] = 10
        matrix[49, 1] = 10
        _, (change,) = self.advised(matrix, [{0, 1}] * 100)
        self.assertIn("where parts of threads meet", change.text)

    def test_elements_in_turn(self):
        _, (change,) = self.advised(np.full((100, 2), 10), [{0, 1}] * 100)
        self.assertIn("a block of lines instead of elements in turn", change.text)

    def test_pages_know_no_lines(self):
        found, changes = self.advised([[100, 100]], [{0, 1}], 4096)
        self.assertIsNone(found)
        self.assertEqual([one for one in changes if one.kind == "sharing"], [])


if __name__ == "__main__":
    unittest.main()
