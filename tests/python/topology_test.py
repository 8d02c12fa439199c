#!/usr/bin/env python3
"""The Python module warren.topology says what `warren topo --format json` says, of described machines.

    topology_test.py PYTHON_FOLDER WARREN [FOLDER]    FOLDER: recorded machines (FILE.xml), which are
                                                      looked at too
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import unittest

import two_packages

sys.path.insert(0, sys.argv.pop(1))
WARREN = sys.argv.pop(1)
RECORDED = sys.argv.pop(1) if len(sys.argv) > 1 and os.path.isdir(sys.argv[1]) else None
from warren.topology import CHILD_KINDS, DEVICE_KINDS, DISTANCE_KINDS  # noqa: E402
from warren.topology import Error, Topology, types  # noqa: E402

PLAIN = "synthetic:package:2 [numa(memory=1GB)] core:2 pu:1"


def numbers(text):
    """"0-2,5" as a set."""
    ranges = (part.split("-") for part in text.split(",") if part)
    return {number for one in ranges for number in range(int(one[0]), int(one[-1]) + 1)}


class TopologyTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.file = os.path.join(cls.folder.name, "node.xml")
        pathlib.Path(cls.file).write_text(two_packages.xml())
        cls.source = "xml:" + cls.file

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def expect_agreement(self, source):
        said = json.loads(subprocess.run([WARREN, "topo", "--format", "json", source], check=True,
                                         capture_output=True, timeout=60).stdout)
        with Topology(source) as node:
            self.assertEqual(len(node), said["objects"])
            self.assertEqual(without_program(node.infos), without_program(said.get("infos", [])))
            seen = []
            self.expect_object(node.machine, None, said["machine"], seen)
            self.assertEqual(sorted(seen), list(range(len(node))))
            self.assertEqual([one.number for one in node], list(range(len(node))))
            for name in types():
                found = list(node.objects(name))
                self.assertEqual(len(found), node.count(name))
                self.assertEqual(found, [one for one in node if one.type == name])
                self.assertEqual(found, [node.object(name, place) for place in range(len(found))])
            self.expect_values(node, said)
            for matrix, expected in zip(node.distances(), said["distances"], strict=True):
                self.assertEqual(matrix.name or "", expected["name"])
                self.assertEqual(sum(bit for bit, word in DISTANCE_KINDS.items()
                                     if word in matrix.kinds), expected["kind"])
                self.assertEqual([one.number for one in matrix.objects], expected["objects"])
                self.assertEqual(sum(matrix.values, []), expected["values"])

    def expect_object(self, one, parent, said, seen):
        seen.append(one.number)
        self.assertEqual((one.type, one.number, one.logical_index, one.os_index, one.name,
                          one.subtype),
                         (said["type"], said["object"], said["logical_index"], said.get("os_index"),
                          said.get("name"), said.get("subtype")))
        self.assertEqual(one.parent, parent)
        if "cpus" in said:
            self.assertEqual(one.cpus, numbers(said["cpus"]))
            self.assertEqual(one.nodes, numbers(said["nodes"]))
        if one.cache:
            self.assertEqual((one.cache.bytes, one.cache.line_bytes),
                             (said["bytes"], said["line_bytes"]))
        elif one.type == "NUMANode":
            self.assertEqual(one.memory_bytes, said["bytes"])
        if one.pci_device:
            self.assertEqual((one.pci_device.vendor_id, one.pci_device.device_id),
                             (said["vendor"], said["device"]))
        self.assertEqual(one.device_kind, DEVICE_KINDS[said["kind"]] if "kind" in said else None)
        self.assertEqual(without_program(one.infos), without_program(said.get("infos", [])))
        for kind, key in zip(CHILD_KINDS, ("children", "memory", "io", "misc"), strict=True):
            for child, expected in zip(one.children(kind), said.get(key, []), strict=True):
                self.expect_object(child, one, expected, seen)

    def expect_values(self, node, said):
        for found, expected in zip(node.initiators(), said["initiators"], strict=True):
            self.assertEqual(found.cpus, numbers(expected["cpus"]))
            self.assertEqual(found.device and found.device.number, expected.get("object"))
        self.assertEqual(node.attributes(), [one["name"] for one in said["attributes"]])
        for attribute in said["attributes"]:
            expected = {(one.get("initiator"), one["node"]): (one["value"], one["origin"])
                        for one in attribute["values"]}
            seen_from = (node.initiators() if node.needs_initiator(attribute["name"]) else [None])
            found = {}
            for initiator in seen_from:
                for memory in node.objects("NUMANode"):
                    value = node.value(attribute["name"], memory, initiator)
                    if value is not None:
                        found[initiator and initiator.number, memory.os_index] = tuple(value)
            self.assertEqual(found, expected)

    def test_all_is_as_the_command_says(self):
        for source in (self.source, PLAIN, "synthetic:package:2 numa:2 l3:1 core:40 pu:2",
                       "synthetic:pu:1"):
            with self.subTest(source):
                self.expect_agreement(source)

    def test_recorded_machines_are_as_the_command_says(self):
        if RECORDED is None:
            self.skipTest("no folder of recorded machines")
        for path in sorted(pathlib.Path(RECORDED).glob("*.xml")):
            with self.subTest(path.name):
                self.expect_agreement(f"xml:{path}")

    def test_what_is_above_and_near(self):
        with Topology(self.source) as node:
            pu = node.by_os_index("pu", 3)
            self.assertEqual((pu.logical_index, pu.depth, node.object("PU", 1).os_index), (3, 4, 2))
            self.assertEqual(repr(pu.ancestor("package")), "Package 1")
            self.assertIsNone(pu.ancestor("die"))
            self.assertIsNone(node.machine.parent)
            self.assertIsNone(node.by_os_index("PU", 4))
            other = node.by_os_index("PU", 1)
            self.assertEqual(pu.common_ancestor(other).type, "L2Cache")
            self.assertEqual(pu.common_ancestor(node.by_os_index("PU", 0)), node.machine)
            self.assertTrue(pu.is_below(node.object("Package", 1)))
            self.assertFalse(pu.is_below(node.object("Package", 0)))
            self.assertEqual(node.covering({1, 3}).type, "L2Cache")
            self.assertEqual(node.covering([2]).type, "PU")
            self.assertEqual(node.covering({0, 1}), node.machine)
            self.assertIsNone(node.covering({0, 77}))
            self.assertIsNone(node.covering([]))
            self.assertEqual([one.os_index for one in node.inside({0, 1, 3}, "core")], [0, 1, 3])
            self.assertEqual([one.type for one in (level[0] for level in node.levels())],
                             ["Machine", "Package", "L2Cache", "Core", "PU"])
            self.assertEqual([len(level) for level in node.levels()], [1, 2, 2, 4, 4])
            self.assertEqual(pu.nearest_memory().os_index, 2)
            self.assertEqual(node.nearest_memory_of_cpu(2).os_index, 0)
            self.assertEqual(pu.nearest_device("network").name, "eth0")
            self.assertEqual(pu.nearest_device("network", 1).name, "eth1")
            self.assertIsNone(pu.nearest_device("network", 2))
            self.assertIsNone(pu.nearest_device("gpu"))
            self.assertEqual(len({pu, node.by_os_index("PU", 3), other}), 2)

    def test_sets_are_longer_than_a_word(self):
        with Topology("synthetic:package:2 core:80 pu:2") as node:
            core = node.object("Core", 91)
            self.assertEqual(core.cpus, {182, 183})
            self.assertEqual(node.covering(core.cpus), core)
            self.assertEqual(list(node.inside({63, 64, 65, 182, 183}, "Core")),
                             [node.object("Core", 32), core])

    def test_details(self):
        with Topology(self.source) as node:
            device = node.object("OSDev", 0)
            self.assertEqual((device.device_kind, device.subtype, device.cpus, device.depth),
                             ("network", "Ethernet", {1, 3}, None))
            card = device.parent.pci_device
            self.assertEqual((card.bus, card.class_id, card.vendor_id, card.device_id,
                              card.revision, card.link_gigabytes_per_second),
                             (1, 0x200, 0x8086, 0x1521, 3, 7.875))
            bridge = device.parent.parent
            self.assertEqual((bridge.bridge.is_host, bridge.bridge.subordinate_bus), (True, 2))
            self.assertIsNone(bridge.pci_device)
            self.assertEqual(node.object("L2Cache", 0).cache, (2**20, 64, 16, 2, "unified"))
            self.assertIsNone(node.machine.cache)
            memory = node.object("NUMANode", 1)
            self.assertEqual((memory.memory_bytes, memory.page_sizes), (2**32, [(4096, 2**20)]))
            self.assertEqual(node.machine.memory_bytes, 2**33)
            self.assertEqual(node.machine.info("DMIProductName"), 'Invented "one"')
            self.assertIsNone(node.machine.info("Colour"))
            self.assertEqual(node.machine.complete_cpus, {0, 1, 2, 3, 4})
            self.assertEqual(node.machine.complete_nodes, {0, 2})
            self.assertTrue(node.object("Package", 0).is_symmetric)
            self.assertEqual([(kind.cpus, kind.infos) for kind in node.cpu_kinds()],
                             [({0, 2}, [("CoreType", "Small")]), ({1, 3}, [("CoreType", "Big")])])
            self.assertLess(node.cpu_kinds()[0].efficiency, node.cpu_kinds()[1].efficiency)
            matrix, = node.distances()
            self.assertEqual(matrix.kinds, {"from_os", "latency"})
            self.assertEqual(matrix.values, [[10, 21], [22, 10]])
        with Topology("synthetic:group:2 core:2 pu:1") as node:
            self.assertEqual(node.object("Group", 1).group.depth, 0)

    def test_memory_is_seen_from_somewhere(self):
        with Topology(self.source) as node:
            core = node.by_os_index("Core", 1)
            for initiator in (core, 1, {1, 3}, node.initiator_of(1)):
                near = node.value("latency", 2, initiator)
                self.assertLess(near.value, node.value("latency", 0, initiator).value)
                self.assertEqual(near.origin, "guessed")
                self.assertEqual(node.best_targets("Locality", initiator), [2, 0])
            self.assertEqual(node.value("Capacity", node.object("NUMANode", 0)),
                             (2**32, "firmware"))
            self.assertEqual(node.initiator_of(core).cpus, {1, 3})
            self.assertIsNone(node.initiator_of({0, 1}))
            self.assertTrue(node.higher_is_better("Bandwidth"))
            self.assertFalse(node.higher_is_better("Latency"))
            self.assertFalse(node.needs_initiator("Capacity"))

    def test_filters_show_what_may_be_used(self):
        with Topology(PLAIN) as node:
            everything = node.filter()
            self.assertEqual(everything.count("PU"), 4)
            node.restrict(cpus={1, 2, 70}, nodes=[0])
            self.assertEqual((node.available_cpus, node.available_nodes), ({1, 2}, {0}))
            part = node.filter(["package", "core"], structure_types=["core"])
            self.assertEqual([one.os_index for one in part.objects("PU")], [1, 2])
            self.assertEqual(part.count("Core"), 0)  # each is one processor
            pu = node.by_os_index("PU", 2)
            self.assertEqual(part.parent(pu), node.object("Package", 1))
            self.assertEqual(list(part.children(node.object("Package", 1))), [pu])
            self.assertFalse(part.shows(node.by_os_index("PU", 3)))
            self.assertEqual(everything.count("PU"), 4)  # as it was made
            self.assertEqual(list(everything.children(node.object("Package", 1), "memory")),
                             [node.object("NUMANode", 1)])

    def test_an_image_file_is_the_same_machine(self):
        path = os.path.join(self.folder.name, "node.image")
        with Topology(self.source) as node, open(path, "wb") as file:
            file.write(node.image())
            node.save(path + "2")
            self.assertEqual((node.way, node.note), ("xml", ""))
        self.assertEqual(pathlib.Path(path).read_bytes(), pathlib.Path(path + "2").read_bytes())
        with Topology(f"image:{path}") as node:
            self.assertEqual((node.way, node.count("PU")), ("file", 4))
        pathlib.Path(path).write_bytes(b"nonsense" * 100)
        with self.assertRaises(Error) as caught:
            Topology(f"image:{path}")
        self.assertEqual(caught.exception.code, 3)

    def test_mistakes_are_exceptions_with_the_reason(self):
        with self.assertRaisesRegex(Error, "nonsense"):
            Topology("nonsense:1")
        with self.assertRaises(Error) as caught:
            Topology("xml:" + self.file + ".not")
        self.assertEqual(caught.exception.code, 2)
        with self.assertRaisesRegex(ValueError, "null"):
            Topology("synthetic:pu:1\0pu:2")
        with Topology(PLAIN) as node, Topology(PLAIN) as other:
            core = node.object("core", 1)
            for wrong, reason in (
                    (lambda: node.count("flavour"), "flavour.*Machine"),
                    (lambda: core.children("wooden"), "wooden.*misc"),
                    (lambda: core.nearest_device("radio"), "radio.*network"),
                    (lambda: core.common_ancestor(other.machine), "of this topology"),
                    (lambda: core.is_below(None), "of this topology"),
                    (lambda: node.covering({-1}), "-1"),
                    (lambda: node.covering({2**20}), "1048576"),
                    (lambda: node.by_os_index("PU", 2**32), "4294967296"),  # not 0
                    (lambda: node.by_os_index("PU", -1), "-1"),
                    (lambda: node.value("taste", 0), "taste.*Capacity"),
                    (lambda: node.value("Capacity", core), "NUMANode"),
                    (lambda: node.best_targets("Latency", 9), "9"),
                    (lambda: node.filter(["flavour"]), "flavour")):
                with self.assertRaisesRegex(ValueError, reason):
                    wrong()
            for wrong in (lambda: node.object("core", 4), lambda: node.object("core", -1),
                          lambda: node[len(node)], lambda: node[-1]):
                self.assertRaises(IndexError, wrong)
            for wrong in (lambda: node[1.0], lambda: node.object("core", 1.0),
                          lambda: node.by_os_index("PU", 1.0), lambda: node.covering({1.0}),
                          lambda: node.covering("0"), lambda: node.value("Capacity", 0.0)):
                self.assertRaises(TypeError, wrong)
            with self.assertRaisesRegex(Error, "memory 7"):
                node.value("Capacity", 7)
            with self.assertRaisesRegex(Error, "Latency"):
                node.value("Latency", 0)
            with self.assertRaises(Error):
                node.save(self.folder.name + "/not/there")
            walk = node.objects("core")
            next(walk)
        for late in (lambda: core.type, lambda: len(node), lambda: next(walk)):
            self.assertRaisesRegex(ValueError, "closed", late)
        self.assertRegex(repr([core]), "object 4 of a closed topology")

    def test_objects_keep_their_topology(self):
        core = Topology(PLAIN).object("Core", 3)
        self.assertEqual((core.cpus, core.parent.logical_index), ({3}, 1))

    def test_this_node(self):
        with Topology() as node:
            self.assertIn(node.way, ("node", "native"))
            self.assertTrue(node.available_cpus <= node.machine.cpus)
            self.assertTrue(node.available_cpus)
            cpu = min(node.available_cpus)
            self.assertEqual(node.by_os_index("PU", cpu).cpus, {cpu})
            self.assertIn(node.nearest_memory_of_cpu(cpu), list(node.objects("NUMANode")))

    def test_all_functions_are_called(self):
        top = pathlib.Path(__file__).resolve().parents[2]
        header = "".join((top / "include" / "warren" / file).read_text()
                         for file in ("topology.h", "topology_tables.h"))
        header = re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL)
        inline = set(re.findall(r"static inline [\w *]+?\b(warren_\w+)\(", header))
        declared = set(re.findall(r"\b(warren_\w+)\(", header)) - inline
        self.assertGreater(len(declared), 70)
        # Sets, which are Python's; look-ups, of which there are calls too (warren_topology_find_…).
        self.assertEqual(len(inline), 13)
        text = "".join((top / "python" / "warren" / file).read_text()
                       for file in ("topology.py", "_topology_abi.py", "_library.py"))
        for name in declared:
            self.assertGreaterEqual(len(re.findall(rf"\b{name}\b", text)), 2, name)

    def test_fortran_has_all_functions_and_constants(self):
        include = pathlib.Path(__file__).resolve().parents[2] / "include" / "warren"
        header = "".join((include / file).read_text() for file in ("topology.h", "topology_tables.h"))
        header = re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL)
        module = (include / "topology.f90").read_text()
        code = re.sub(r"!.*", "", module)
        # Without those that look-ups which are there too are made of.
        declared = (set(re.findall(r"\b(warren_\w+)\(", header))
                    - {"warren_topology_join", "warren_topology_tables"})
        self.assertGreater(len(declared), 75)
        for name in declared:
            self.assertRegex(code, rf'\b(function|subroutine) {name}\b|name="{name}"')
        here = dict(re.findall(r"\b(WARREN_\w+) = (-?\d+)", code))
        constants = 0
        for block in re.findall(r"enum \{(.*?)\}", header, flags=re.DOTALL):
            value = -1
            for name, given in re.findall(r"(WARREN_\w+)(?:\s*=\s*(\d+))?", block):
                value = int(given) if given else value + 1
                self.assertEqual(int(here[name]), value, name)
                constants += 1
        self.assertGreater(constants, 65)

    def test_threads_use_a_topology_at_once(self):
        results = []
        with Topology(PLAIN) as node:
            def work(core):
                for _ in range(200):
                    found = node.object("Core", core)
                    results.append(node.covering(found.cpus).ancestor("Package").number ==
                                   found.nearest_memory().parent.number)
            threads = [threading.Thread(target=work, args=(core,)) for core in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual(results, [True] * 800)


def without_program(infos):
    """Infos but the one that says which program has asked hwloc."""
    return [tuple(pair) for pair in infos if pair[0] not in ("ProcessName", "hwlocVersion")]


if __name__ == "__main__":
    os.environ.pop("WARREN_TOPOLOGY", None)
    os.environ.pop("WARREN_TOPOLOGY_WAY", None)
    unittest.main()
