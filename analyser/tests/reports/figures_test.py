"""The figures of the locality analysis, on traces whose figures are known."""

import os
import sys
import unittest

sys.path[:0] = [sys.argv.pop(1), os.path.dirname(os.path.abspath(__file__))]

import numpy as np  # noqa: E402

from warren.locality import (__main__ as program, analysis, metrics, symbols, tables,  # noqa: E402
                             trace as traces)


def figures(trace):
    return metrics.summarise(metrics.per_unit(trace), trace.granularity)[0]


class Figures(unittest.TestCase):
    def test_the_papers_example(self):
        trace = traces.synthetic([[20, 5, 10], [0, 1, 10]], [0, 1])
        units = metrics.per_unit(trace)
        pages = metrics.summarise(units, 4096, np.array([0, 1]), 2)
        self.assertEqual([f"{100 * page.locality:.1f}" for page in pages], ["57.1", "9.1"])
        self.assertEqual(units.correct.tolist(), [True, False])
        whole = figures(trace)
        self.assertEqual(f"{100 * whole.locality:.1f}", "45.7")
        self.assertEqual(whole.correctness, 0.5)
        self.assertEqual((whole.accesses, whole.remote, whole.wrong), (46, 25, 1))
        self.assertEqual(whole.exclusivity, 30 / 46)
        self.assertEqual(whole.sharers, 2.5)

    def test_equal_use_makes_either_first_touch_correct(self):
        units = metrics.per_unit(traces.synthetic([[4, 4], [4, 4]], [0, 1]))
        self.assertEqual(units.correct.tolist(), [True, True])
        self.assertEqual(units.best_thread.tolist(), [0, 1])

    def test_units_without_accesses_and_unknown_first_touches(self):
        trace = traces.synthetic([[0, 0], [3, 1]], [0, -1])
        whole = figures(trace)
        self.assertEqual((whole.units, whole.used, whole.wrong, whole.remote), (2, 1, 0, 0))
        self.assertEqual((whole.locality, whole.correctness), (None, None))

    def test_unknown_first_touches_are_neither_right_nor_wrong(self):
        trace = traces.synthetic([[3, 1], [2, 6], [7, 0]], [0, 0, -1])
        whole = figures(trace)
        self.assertEqual((whole.correctness, whole.wrong, whole.remote), (0.5, 1, 7))
        self.assertEqual(whole.locality, 5 / 12)
        self.assertEqual(metrics.per_unit(trace).wrong.tolist(), [False, True, False])
        trace = traces.synthetic([[3, 1], [2, 6], [7, 0], [7, 0], [20, 0]], [0, 0, -1, -1, -1])
        self.assertEqual((figures(trace).correctness, figures(trace).locality), (None, None))

    def test_correctness_of_few_accesses_is_not_told(self):
        trace = traces.synthetic([[1, 0], [1, 0], [0, 98]], [0, 0, -1])
        found = figures(trace)
        self.assertEqual((found.locality, found.correctness), (None, None))

    def test_first_touches_in_a_library_template_have_its_line(self):
        found = analysis.Analysis(traces.synthetic([[1]], [0]))
        own, other = symbols.Code("/srv/program", 0x10), symbols.Code("/usr/lib/libc.so.6", 0x20)
        fill = symbols.Frame("fill_n", "/usr/include/c++/12/bits/stl_algobase.h", 922, 1)
        append = symbols.Frame("_M_default_append", "/usr/include/c++/12/bits/vector.tcc", 655, 1)
        found.symbolizer._frames = {own: [fill, append], other: [fill]}
        places = {}
        for site, codes in enumerate(([None, own], [other], [])):
            found.symbolizer.codes = lambda _, codes=codes: codes
            places[site] = found.first_place(site)
        self.assertEqual(places[0], ("vector.tcc:655", "fill_n", "", 0))
        self.assertEqual(places[1][0], "libc.so.6+0x20")
        self.assertEqual(places[2][0], "unknown")

    def test_a_full_disk_is_told_with_the_file(self):
        found = analysis.Analysis(traces.synthetic([[1]], [0]))
        with self.assertRaises(OSError) as raised:
            tables.write_csv(found, "/dev/full")
        self.assertEqual((raised.exception.filename, raised.exception.strerror),
                         ("/dev/full", "No space left on device"))

    def test_nothing_at_all(self):
        whole = figures(traces.synthetic(np.zeros((0, 2)), []))
        self.assertIsNone(whole.locality)
        self.assertIsNone(whole.correctness)

    def test_imbalance_is_of_the_threads_that_work(self):
        trace = traces.synthetic([[1, 1, 1, 1]], [0], instructions=[100, 80, 60, 0])
        balance = metrics.balance(trace)
        self.assertEqual(balance.kind, "instructions")
        self.assertAlmostEqual(balance.imbalance, 100 / 80 - 1)
        self.assertAlmostEqual(balance.variance, 800 / 3)
        self.assertEqual(balance.worker.tolist(), [True, True, True, False])

    def test_figures_agree_with_plain_loops(self):
        random = np.random.default_rng(7)
        dense = random.integers(0, 50, (300, 6)) * (random.random((300, 6)) < 0.4)
        touched = random.integers(0, 6, 300)
        units = metrics.per_unit(traces.synthetic(dense, touched))
        for row in range(300):
            self.assertEqual(units.total[row], dense[row].sum())
            self.assertEqual(units.by_first[row], dense[row, touched[row]])
            self.assertEqual(units.most[row], dense[row].max())
            self.assertEqual(units.sharers[row], np.count_nonzero(dense[row]))
            if dense[row].any():
                self.assertEqual(dense[row, units.best_thread[row]], dense[row].max())
        matrix = metrics.communication(traces.synthetic(dense, touched))
        expected = np.minimum(dense[:, 1], dense[:, 4]).sum()
        self.assertEqual((matrix[1, 4], matrix[4, 1]), (expected, expected))


if __name__ == "__main__":
    unittest.main()
