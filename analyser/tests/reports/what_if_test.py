"""What other machines, placements and policies would make of traces whose answers are known."""

import json
import os
import sys
import tracemalloc
import unittest
from unittest import mock

sys.path[:0] = [sys.argv.pop(1), os.path.dirname(os.path.abspath(__file__))]

import numpy as np  # noqa: E402

from warren.locality import machine, what_if, trace as traces  # noqa: E402


class WhatIf(unittest.TestCase):
    def setUp(self):
        owner = np.repeat(np.arange(8), 4)
        dense = np.zeros((32, 8), int)
        dense[np.arange(32), owner] = 100
        self.baseline = traces.synthetic(dense, np.zeros(32))
        self.machine = machine.invented(4, 2)

    def predicted(self, trace, placement, policy):
        return what_if.predict(trace, self.machine, placement, [policy])[0]

    def test_first_touch_puts_all_on_the_node_of_thread_0(self):
        result = self.predicted(self.baseline, "compact", "first touch")
        self.assertEqual(result.traffic.tolist(), [[800, 0, 0, 0]] * 4)
        self.assertEqual((result.local_share, result.mean_latency_ns), (0.25, 175))
        self.assertAlmostEqual(result.imbalance, 3)
        # 3200 accesses of 8 bytes: a fourth at 10 GB/s, the rest at 5.
        self.assertAlmostEqual(result.bandwidth_cost_s, 6400 / 1e10 + 19200 / 5e9)

    def huge(self, first_thread, times, addresses=None, begins=(1,), sites=None):
        """Traffic of 1,024 pages from 2 MiB on, two huge pages, that threads 0 to 7 use in turn."""
        pages = 1024
        dense = np.zeros((pages, 8), int)
        dense[np.arange(pages), np.arange(pages) // 128] = 1
        trace = traces.synthetic(dense, first_thread, address=np.arange(pages, dtype="<u8") * 4096 + (2 << 20))
        trace.first_time = np.asarray(times, "<u8")
        trace.sites = [traces.Site(0, (place,), (False,)) for place in (0x1000, 0x9000)]
        trace.first_site = np.zeros(pages, "<i4") if sites is None else np.asarray(sites, "<i4")
        count = len(begins)
        trace.allocation_process = np.zeros(count, "<i4")
        trace.allocation_kind = np.ones(count, "<i4")
        trace.allocation_address = np.uint64(2 << 20) + np.arange(count, dtype="<u8") * np.uint64((4 << 20) // count)
        trace.allocation_size = np.full(count, (4 << 20) // count, "<u8")
        trace.allocation_begin = np.asarray(begins, "<u8")
        return self.predicted(trace, "compact", "huge pages").traffic

    def test_who_comes_first_places_a_huge_page(self):
        owner, turn = np.arange(1024) // 128, np.arange(1024)
        # Thread 0 first, elsewhere in the program: both are its.
        first, sites = owner.copy(), np.ones(1024)
        first[[0, 512]], sites[[0, 512]] = 0, 0
        times = turn + 10
        times[[0, 512]] = 1
        self.assertEqual(self.huge(first, times, sites=sites).tolist(), [[256, 0, 0, 0]] * 4)
        # Four threads begin in each, at one place: two of each node.
        self.assertEqual(self.huge(owner, turn + 10).tolist(),
                         [[128, 128, 0, 0]] * 2 + [[0, 0, 128, 128]] * 2)

    def test_pages_are_small_where_not_all_was_mapped(self):
        owner, turn = np.arange(1024) // 128, np.arange(1024) + 10
        # The second and the fourth MiB are mapped after the first was touched.
        self.assertEqual(self.huge(owner, turn, begins=(1, 20, 1, 1)).tolist(),
                         [[256, 0, 0, 0], [0, 256, 0, 0], [0, 0, 128, 128], [0, 0, 128, 128]])

    def test_optimal_and_balanced_are_local(self):
        for policy in ("optimal", "balanced"):
            result = self.predicted(self.baseline, "compact", policy)
            self.assertEqual(result.local_share, 1.0)
            self.assertEqual(result.pages.tolist(), [8, 8, 8, 8])

    def test_interleave_spreads(self):
        self.assertEqual(self.predicted(self.baseline, "compact", "interleave").pages.tolist(), [8] * 4)

    def test_scatter_and_lists_place_threads(self):
        self.assertEqual(what_if.place_threads(self.baseline, self.machine, "scatter").tolist(),
                         [0, 1, 2, 3, 0, 1, 2, 3])
        self.assertEqual(what_if.place_threads(self.baseline, self.machine, "7,0-1").tolist(),
                         [3, 0, 0, 3, 0, 0, 3, 0])
        with self.assertRaisesRegex(machine.Error, "no processor 99"):
            what_if.place_threads(self.baseline, self.machine, "99")

    def test_some_units_alone(self):
        trace = traces.synthetic([[1, 2], [0, 4], [8, 0]], [0, 1, 0])
        part = traces.selected(trace, np.array([True, False, True]))
        self.assertEqual((part.starts.tolist(), part.accesses.tolist()), ([0, 2, 3], [1, 2, 8]))
        self.assertEqual((part.thread.tolist(), part.first_thread.tolist()), ([0, 1, 0], [0, 0]))
        self.assertEqual(self.predicted(part, "compact", "first touch").pages.sum(), 2)

    def test_what_does_not_fit_goes_to_the_next_node(self):
        self.machine.capacity[:] = [10 * 4096, 10 * 4096, 10 * 4096, 10 * 4096]
        result = self.predicted(self.baseline, "compact", "first touch")
        self.assertEqual(result.pages.tolist(), [10, 10, 10, 2])
        self.machine.capacity[:] = 4096
        with self.assertRaisesRegex(machine.Error, "less memory, 16.0 KiB, than the recording: 128 KiB in 32 units"), \
                mock.patch.object(what_if, "place_threads", side_effect=AssertionError("nothing is made before")):
            self.predicted(self.baseline, "compact", "optimal")

    def test_memory_is_that_of_units_and_not_of_accesses(self):
        units, threads = 1 << 17, 16
        trace = traces.synthetic(np.ones((units, threads), "<u4"), np.zeros(units))
        with mock.patch.object(traces, "ROWS", 1 << 14):
            what_if.predict(trace, self.machine, "compact")  # (what is made once, as the modules of numpy)
            tracemalloc.start()
            try:
                what_if.predict(trace, self.machine, "compact", ["first touch", "interleave", "optimal"])
                peak = tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()
        # Two narrow numbers for each unit and locality, a few for each unit, and what blocks take.
        self.assertLess(peak, (2 * 4 * 4 + 40) * units + (4 << 20))

    def test_numbers_that_are_not_exact_in_four_bytes_are_wide(self):
        found = what_if.predict(traces.synthetic([[(1 << 24) + 1], [1]], [0, 0]), machine.invented(2), "compact")
        self.assertEqual({result.traffic.sum() for result in found}, {(1 << 24) + 2})

    def test_a_machine_from_json(self):
        pus = [{"type": "PU", "os_index": i, "cpus": str(i)} for i in range(4)]
        nodes = [{"type": "NUMANode", "os_index": n, "cpus": cpus, "bytes": 1 << 30}
                 for n, cpus in ((0, "0-1"), (2, "2-3"))]
        described = {"machine": {"type": "Machine", "children": pus, "memory": nodes},
                     "initiators": [{"cpus": "0-1"}, {"cpus": "2-3"}],
                     "attributes": [{"name": "Latency", "values": [
                         {"initiator": i, "node": n, "value": 80 if (i, n) in ((0, 0), (1, 2)) else 140,
                          "origin": "measured"} for i in (0, 1) for n in (0, 2)]}]}
        found = machine.from_json(json.dumps(described), "this.json")
        self.assertEqual(found.latency.tolist(), [[80, 140], [140, 80]])
        self.assertEqual((found.local_node, found.nodes), ([0, 1], [0, 2]))
        self.assertEqual(found.origin, "assumed, measured")
        for wrong in ("{", "[]", '{"machine": {"type": "Machine"}}'):
            with self.assertRaises(machine.Error):
                machine.from_json(wrong, "wrong.json")


if __name__ == "__main__":
    unittest.main()
