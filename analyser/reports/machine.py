"""A machine to place a trace on: nodes of memory, processors near them, what accesses cost.

    machine = load("epyc.json")             # from `warren topo --format json`
    machine = from_source("epyc.xml")       # any source that `warren topo` takes

Latencies are in ns and bandwidths in MB/s, from the machine's memory attributes for each pair of
processors and node: latency[l, n] from locality l, a set of processors with the same nearest nodes,
to node n. Where the machine says none, near memory counts 100 ns and 10 GB/s and far memory twice
and half of it, and `origin` says "assumed".
"""

import dataclasses
import json
import os
import shutil
import subprocess

import numpy as np


class Error(Exception):
    """A machine can't be used; the text says why."""


@dataclasses.dataclass
class Machine:
    name: str
    nodes: list              # OS indices of NUMA nodes with memory
    capacity: np.ndarray     # bytes of each
    localities: list         # sets of processors (OS indices)
    local_node: list         # the nearest node of each locality, as index into nodes
    processors: list         # OS indices, in the machine's order
    cores: list              # lists of processors
    latency: np.ndarray
    bandwidth: np.ndarray
    origin: str

    def locality_of(self, processor):
        for index, members in enumerate(self.localities):
            if processor in members:
                return index
        raise Error(f"{self.name} has no processor {processor}")


def parse_list(text):
    """The numbers of `0-3,8`."""
    numbers = []
    for part in text.split(",") if text else []:
        try:
            begin, _, end = part.strip().partition("-")
            numbers.extend(range(int(begin), int(end or begin) + 1))
        except ValueError:
            raise Error(f"'{text}' is no list of numbers like 0-3,8") from None
    return numbers


def from_source(source, warren=None):
    """By `warren topo`: a recorded machine (XML, image, folder with /sys) or "synthetic:…"."""
    if source.endswith(".json"):
        return load(source)
    program = warren or os.environ.get("WARREN_COMMAND") or shutil.which("warren")
    if not program:
        raise Error(f"reading {source} needs the `warren` command in PATH (or a .json made by it)")
    command = [program, "topo", "--format", "json"] + ([source] if source != "this" else [])
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    except (OSError, subprocess.SubprocessError) as problem:
        raise Error(f"{program}: {problem}") from None
    if done.returncode != 0:
        raise Error(f"{source}: {done.stderr.strip() or 'warren topo failed'}")
    return from_json(done.stdout, source)


def load(path):
    try:
        with open(path, encoding="utf-8") as file:
            return from_json(file.read(), path)
    except OSError as problem:
        raise Error(f"{path}: {problem.strerror}") from None


def from_json(text, name):
    try:
        described = json.loads(text)
        objects = list(_objects(described["machine"]))
        nodes = [one for one in objects if one["type"] == "NUMANode"]
        processors = [one["os_index"] for one in objects if one["type"] == "PU"]
    except (ValueError, KeyError, TypeError) as problem:
        raise Error(f"{name} is no description of a machine by `warren topo --format json`: "
                    f"{problem!r}") from None
    if not nodes or not processors:
        raise Error(f"{name} describes a machine without processors or without memory")
    cores = [parse_list(one["cpus"]) for one in objects if one["type"] == "Core"]
    initiators = [set(parse_list(one["cpus"])) for one in described.get("initiators", [])]
    initiators = _localities(initiators, nodes, processors)
    latency, bandwidth, origin = _costs(described, initiators, nodes)
    local = [_nearest(members, nodes, latency[index]) for index, members in enumerate(initiators)]
    return Machine(name, [one["os_index"] for one in nodes],
                   np.array([one.get("bytes", 0) for one in nodes], float), initiators, local,
                   processors, cores or [[one] for one in processors], latency, bandwidth, origin)


def _objects(one):
    yield one
    for kind in ("memory", "children"):
        for child in one.get(kind, []):
            yield from _objects(child)


def _localities(initiators, nodes, processors):
    """Sets of processors that do not overlap and hold all."""
    initiators = [one for one in initiators if one]
    seen, kept = set(), []
    for one in sorted(initiators, key=len):
        if not one & seen:
            kept.append(one)
            seen |= one
    if set(processors) - seen:
        kept, seen = [], set()
        for node in sorted(nodes, key=lambda one: len(parse_list(one["cpus"]))):
            members = set(parse_list(node["cpus"])) - seen
            if members:
                kept.append(members)
                seen |= members
        rest = set(processors) - seen
        if rest:
            kept.append(rest)
    return sorted(kept, key=min)


def _nearest(members, nodes, latency):
    """The smallest node that is near all of the processors, of equal ones that of least latency."""
    near = [(len(parse_list(one["cpus"])) or 1 << 30, latency[index], index)
            for index, one in enumerate(nodes) if members <= set(parse_list(one["cpus"]))]
    return min(near)[2] if near else int(np.argmin(latency))


def _costs(described, localities, nodes):
    index_of = {node["os_index"]: index for index, node in enumerate(nodes)}
    given = [set(parse_list(one["cpus"])) for one in described.get("initiators", [])]
    found = {}
    origins = set()
    for attribute in described.get("attributes", []):
        key = attribute["name"].lower()
        # Read attributes stand in for those of both, when they are alone.
        for wanted in ("latency", "bandwidth"):
            if key == wanted or (key == "read" + wanted and wanted not in found):
                matrix = np.full((len(localities), len(nodes)), np.nan)
                for value in attribute["values"]:
                    if "initiator" not in value or value["node"] not in index_of:
                        continue
                    for row, members in enumerate(localities):
                        if members & given[value["initiator"]]:
                            matrix[row, index_of[value["node"]]] = value["value"]
                            origins.add(value.get("origin", "unknown"))
                found[wanted] = matrix
    near = np.array([[members <= set(parse_list(node["cpus"])) for node in nodes]
                     for members in localities])
    latency = np.where(near, 100.0, 200.0)
    bandwidth = np.where(near, 10000.0, 5000.0)
    assumed = len(found) < 2
    for name, matrix, fallback in (("latency", found.get("latency"), latency),
                                   ("bandwidth", found.get("bandwidth"), bandwidth)):
        if matrix is not None:
            good = np.isfinite(matrix) & (matrix > 0)
            assumed = assumed or not good.all()
            fallback[good] = matrix[good]
    return latency, bandwidth, ", ".join(sorted(origins | ({"assumed"} if assumed else set())))


def invented(nodes, processors_each=4):
    """A machine of equal nodes, for tests and where nothing is known."""
    localities = [set(range(n * processors_each, (n + 1) * processors_each)) for n in range(nodes)]
    near = np.eye(nodes, dtype=bool)
    processors = list(range(nodes * processors_each))
    return Machine(f"{nodes} equal nodes", list(range(nodes)), np.full(nodes, 1e12), localities,
                   list(range(nodes)), processors, [[one] for one in processors],
                   np.where(near, 100.0, 200.0), np.where(near, 10000.0, 5000.0), "assumed")
