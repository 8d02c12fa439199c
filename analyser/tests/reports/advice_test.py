"""Which advice a report gives in full, and which in one line."""

import io
import os
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

sys.path[:0] = [sys.argv.pop(1), os.path.dirname(os.path.abspath(__file__))]

import numpy as np  # noqa: E402

import recordings as made  # noqa: E402
from warren.locality import __main__ as program, advice, analysis  # noqa: E402


class Advice(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.folder = pathlib.Path(place.name)

    def with_small_gains(self, large=3000):
        """Five pages that thread 0 has touched and thread 1 uses, each a structure, beside 2000 that thread 0 uses,
        with `large` accesses each. The first of the five has a third of all accesses."""
        base, pages = 1 << 32, 2000
        dense = np.zeros((pages + 5, 2), int)
        dense[:pages, 0] = large
        dense[pages:, 1] = [pages * large // 2] + 4 * [pages * large // 3000]
        addresses = [base] + [base + (pages + 10 * one) * 4096 for one in range(5)]
        counts = [made.counts(dense[:pages], base, 1)]
        counts += [made.counts(dense[pages + one:pages + one + 1], addresses[1 + one], 2 + one) for one in range(5)]
        first = [made.first(np.zeros(pages), base, 1)]
        first += [made.first([0], addresses[1 + one], 2 + one) for one in range(5)]
        made.write_process(
            self.folder / "process-1", counts=np.concatenate(counts), first=np.concatenate(first),
            threads=made.threads(2),
            allocations=[made.allocation(base, pages * 4096)] + [made.allocation(one, 4096) for one in addresses[1:]],
            names=[{"event": 1, "tid": 100, "address": one, "time_ns": 3, "name": b"block%d" % number}
                   for number, one in enumerate(addresses)])
        return self.folder

    def test_gains_that_do_not_matter_share_one_line(self):
        found = analysis.Analysis.of(self.with_small_gains())
        changes = advice.advise(found)
        self.assertEqual([change.kind for change in changes], ["first touch", "ranks", "minor"])
        self.assertEqual(found.structures[changes[0].structure].name, "block1")
        minor = changes[-1]
        self.assertEqual(minor.text, "4 other structures, less than 0.1 points of locality each, 0.1 points together: "
                         "block5, block4, block3 and 1 more")
        self.assertEqual((minor.units, minor.remote), (4, 8000))
        self.assertEqual(minor.locality_after, 1)
        with mock.patch("sys.stdout", io.StringIO()) as out:
            self.assertEqual(program.main(["report", str(self.folder)]), 0)
        shown = out.getvalue()
        line, = (one for one in shown.splitlines() if "other structures" in one)
        self.assertIn("less than 0.1 points of locality each, 0.1 points together: block5", line)
        for name in ("block2", "block3", "block4"):  # have no paragraph
            self.assertNotRegex(shown, rf"[0-9]\. {name}\b")

    def test_changes_beyond_the_limit_are_in_that_line_too(self):
        found = analysis.Analysis.of(self.with_small_gains())
        change, = (one for one in advice.advise(found, limit=0))
        self.assertRegex(change.text, "^5 structures, up to 33.3 points of locality each, 33.4 points together: block1")


if __name__ == "__main__":
    unittest.main()
