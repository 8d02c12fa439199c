#!/usr/bin/env python3
"""The Python module warren.memory, on described machines."""

import os
import pathlib
import re
import sys
import threading
import unittest

sys.path.insert(0, sys.argv.pop(1))
from warren.memory import Error, Memory, allocate, move, trim, where  # noqa: E402

# Two packages with a memory each, and two cores each.
PLAIN = "synthetic:package:2 [numa(memory=1GB)] core:2 pu:1"


class MemoryTest(unittest.TestCase):
    def test_local_memory_comes_first(self):
        with Memory(PLAIN) as memory:
            self.assertEqual(memory.targets(), [0, 1])
            self.assertEqual(memory.order("capacity from=core:0"), [[0], [1]])
            self.assertEqual(memory.order("capacity from=core:3"), [[1], [0]])
            self.assertEqual(memory.best("latency from=package:1"), 1)
            self.assertEqual(memory.best("from=cpus:0"), 0)

    def test_values_have_origins(self):
        with Memory(PLAIN) as memory:
            capacity = memory.value("capacity", 1)
            self.assertGreater(capacity.value, 900_000_000)
            self.assertEqual(capacity.origin, "firmware")
            near = memory.value("latency", 0, "core:0")
            far = memory.value("latency", 1, "core:0")
            self.assertEqual((near.origin, far.origin), ("guessed", "guessed"))
            self.assertLess(near.value, far.value)

    def test_initiators_are_sorted(self):
        with Memory(PLAIN) as memory:
            found = memory.initiators("bandwidth", 1)
            self.assertEqual(found[0].processors, {2, 3})
            self.assertEqual(found[1].processors, {0, 1})
            self.assertGreaterEqual(found[0].value, found[1].value)
            with self.assertRaises(Error):
                memory.initiators("capacity", 1)

    def test_registered_attributes_order_memories(self):
        with Memory(PLAIN) as memory:
            memory.register("price", higher_is_better=False)
            memory.set("price", 0, 30)
            memory.set("price", 1, 10)
            self.assertEqual(memory.value("price", 1).origin, "program")
            self.assertEqual(memory.order("price from=machine:0"), [[1], [0]])
            with self.assertRaises(Error):
                memory.register("price")
            with self.assertRaises(ValueError):
                memory.set("price", 0, -1)

    def test_mistakes_are_exceptions_with_the_reason(self):
        with self.assertRaisesRegex(Error, "nonsense"):
            Memory("nonsense:1")
        with Memory(PLAIN) as memory:
            with self.assertRaisesRegex(Error, "flavour"):
                memory.order("flavour from=core:0")
            with self.assertRaisesRegex(Error, "memory .* 7"):
                memory.value("capacity", 7)
            with self.assertRaisesRegex(Error, "here"):
                memory.order("latency")  # this computer is not that machine
            with self.assertRaisesRegex(Error, "core:4"):
                memory.order("latency from=core:4")
        with self.assertRaises(ValueError):
            memory.targets()

    def test_this_node(self):
        with Memory() as memory:
            self.assertIn(memory.best(), memory.targets())
            self.assertGreater(memory.value("available", memory.best()).value, 0)

    def test_blocks_are_where_criteria_say_until_nobody_views_them(self):
        for size in (0, 100, 3_000_000):
            block = allocate(size, "latency full=strict")
            self.assertEqual(len(block), size)
            if size == 0:
                self.assertEqual(where(block), [])
                continue
            block[0] = block[size - 1] = 7
            part = block[size - 1:]
            nodes = where(block)
            self.assertEqual(len(set(nodes)), 1)
            if size > 2**20:
                move(block, "capacity")
                self.assertEqual(block[size - 1], 7)
            else:
                self.assertRaises(ValueError, move, block, "capacity")
            del block
            self.assertEqual(part[0], 7)
        trim()
        self.assertRaises(ValueError, move, bytearray(3_000_000), "capacity")
        with self.assertRaisesRegex(MemoryError, "do not fit"):
            allocate(2**46, "latency full=strict")
        with self.assertRaisesRegex(Error, "full="):
            allocate(10, "full=perhaps")

    def test_fortran_has_all_functions(self):
        include = pathlib.Path(__file__).resolve().parents[2] / "include" / "warren"
        declared = set(re.findall(r"\b(warren_mem_\w+)\(", (include / "memory.h").read_text()))
        module = (include / "memory.f90").read_text()
        self.assertGreater(len(declared), 30)
        for name in declared:
            self.assertRegex(module, rf"\b(function|subroutine) {name}\b")

    def test_threads_use_a_machine_at_once(self):
        results = []
        with Memory(PLAIN) as memory:
            def work(core):
                for _ in range(200):
                    results.append(memory.best(f"bandwidth from=core:{core}") == core // 2)
            threads = [threading.Thread(target=work, args=(core,)) for core in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual(results, [True] * 800)


if __name__ == "__main__":
    os.environ.pop("WARREN_TOPOLOGY", None)
    unittest.main()
