#!/usr/bin/env python3
"""`warren topo` says where the kernel's accounts of the machine's and of the nodes' memory differ.

    accounts.py WARREN
"""

import pathlib
import subprocess
import sys
import tempfile

GIB = 1 << 30
warren = sys.argv[1]


def put(root, path, text):
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text + "\n")


def shown(machine, nodes):
    """What it says of a machine with a processor for each node."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        put(root, "proc/meminfo", f"MemTotal: {machine >> 10} kB")
        online = ",".join(map(str, range(len(nodes))))
        for part in ("cpu/online", "cpu/possible", "node/online"):
            put(root, f"sys/devices/system/{part}", online)
        for number, size in enumerate(nodes):
            put(root, f"sys/devices/system/cpu/cpu{number}/topology/physical_package_id", str(number))
            for siblings in ("core_siblings", "thread_siblings"):
                put(root, f"sys/devices/system/cpu/cpu{number}/topology/{siblings}", f"{1 << number:x}")
            put(root, f"sys/devices/system/node/node{number}/cpumap", f"{1 << number:x}")
            put(root, f"sys/devices/system/node/node{number}/meminfo", f"Node {number} MemTotal: {size >> 10} kB")
        return subprocess.run([warren, "topo", f"folder:{folder}"], check=True, capture_output=True, text=True,
                              timeout=60).stdout


def expect(text, *parts):
    for part in parts:
        if part not in text:
            sys.exit(f"{part!r} is missing in:\n{text}")


expect(shown(24 * GIB, [6 * GIB]), "Machine 24 GiB", "24 GiB (by the node's account 6 GiB)", "Capacity 24 GiB")
expect(shown(24 * GIB, [6 * GIB, 8 * GIB]), "Machine 14 GiB and 10 GiB in no node's account", "Capacity 6 GiB")
plain = shown(24 * GIB, [24 * GIB])
expect(plain, "Capacity 24 GiB")
if "account" in plain:
    sys.exit(f"accounts that agree are told:\n{plain}")
