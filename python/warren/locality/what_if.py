"""A trace on another machine: where its threads and pages would be, and what accesses would cost.

    for result in predict(trace, machine, "compact"):
        result.policy, result.traffic, result.local_share, result.mean_latency_ns

Threads go to processors *compact*ly (neighbours on neighbours: all of a node before the next),
*scatter*ed (nodes in turn) or by a *list*, of processors in the order of the working threads; more
threads than processors go round. Pages go to memories
    first touch   near the thread that touched them first, as the system does
    recorded      where they were in the recording, if it says so
    interleave    to the nodes in turn
    balanced      as near as possible, every node the same number of pages
    optimal       where their accesses cost least
each within the nodes' capacities, and each unit of the recording for itself, as where transparent huge
pages are off or only on request. Where the kernel gives them to all, who first touches any of 2 MiB
places all of it, which differs where threads' parts are not much larger. `traffic[l, n]` are the accesses from locality l to node n. The
latency cost is what all accesses would take one after the other, were no cache there; the bandwidth
cost is the time that the busiest memory needs for what is moved to and from it.
"""

import dataclasses

import numpy as np

from . import machine as machines, metrics

POLICIES = ("first touch", "interleave", "balanced", "optimal")


@dataclasses.dataclass
class Result:
    policy: str
    traffic: np.ndarray        # accesses, locality × node
    pages: np.ndarray          # on each node
    local_share: float         # of accesses that go to a node nearest to their thread
    mean_latency_ns: float
    latency_cost_s: float
    bandwidth_cost_s: float
    imbalance: float           # λ of the nodes' accesses, 0 is none


def place_threads(trace, machine, placement):
    """The locality of each thread on the machine."""
    worker = metrics.balance(trace).worker
    if not worker.any():
        worker[:] = True
    order = np.concatenate([np.flatnonzero(worker), np.flatnonzero(~worker)])
    if placement == "compact":
        processors = [one for core in machine.cores for one in core]
    elif placement == "scatter":
        # The first processor of each core, then the second ones.
        threads = max(map(len, machine.cores))
        spread = [core[turn] for turn in range(threads) for core in machine.cores if turn < len(core)]
        queues = [[one for one in spread if one in members] for members in machine.localities]
        processors = [queue[turn] for turn in range(max(map(len, queues))) for queue in queues
                      if turn < len(queue)]
    else:
        processors = machines.parse_list(placement)
        if not processors:
            raise machines.Error("a placement is compact, scatter or a list of processors")
    localities = np.array([machine.locality_of(one) for one in processors], "<i4")
    where = np.empty(trace.threads, "<i4")
    where[order] = localities[np.arange(len(order)) % len(processors)]
    return where


def _by_locality(trace, where, values, localities):
    """values per unit and locality, dense."""
    unit = np.repeat(np.arange(trace.units, dtype="<i8"), np.diff(trace.starts))
    flat = np.bincount(unit * localities + where[trace.thread], weights=values,
                       minlength=trace.units * localities)
    return flat.reshape(trace.units, localities)


def _fill(wishes, order, capacity):
    """Each unit, in order, gets the first of its wishes (nodes, best first) that has room."""
    nodes = wishes[:, 0].copy()
    if (np.bincount(nodes, minlength=len(capacity)) <= capacity).all():
        return nodes
    result = np.full(len(nodes), -1, "<i4")
    room = capacity.copy()
    pending = order
    for choice in range(wishes.shape[1]):
        wanted = wishes[pending, choice]
        taken = np.zeros(len(pending), bool)
        for node in range(len(room)):
            candidates = np.flatnonzero(wanted == node)[:max(int(room[node]), 0)]
            result[pending[candidates]] = node
            taken[candidates] = True
            room[node] -= len(candidates)
        pending = pending[~taken]
        if len(pending) == 0:
            break
    return result


def predict(trace, machine, placement="compact", policies=POLICIES):
    if not trace.has_counts:
        raise machines.Error("this recording has first touches only; what accesses would cost needs "
                             "one with --mode counts")
    where = place_threads(trace, machine, placement)
    localities, nodes = len(machine.localities), len(machine.nodes)
    accesses = _by_locality(trace, where, trace.accesses, localities)
    moved = trace.moved_bytes if trace.moved_bytes.any() else trace.accesses * np.uint64(8)
    page_bytes = trace.granularity
    capacity = np.where(machine.capacity > 0, machine.capacity // page_bytes, trace.units)
    if capacity.sum() < trace.units:
        raise machines.Error(f"{machine.name} has less memory than the {trace.units} pages of the "
                             "recording")
    cost = accesses @ machine.latency
    bytes_by_locality = None
    results = []
    for policy in policies:
        node = _place(policy, trace, machine, where, cost, capacity)
        if bytes_by_locality is None:
            bytes_by_locality = _by_locality(trace, where, moved, localities)
        traffic = np.zeros((localities, nodes))
        volume = np.zeros((localities, nodes))
        for one in range(nodes):
            own = node == one
            traffic[:, one] = accesses[own].sum(axis=0)
            volume[:, one] = bytes_by_locality[own].sum(axis=0)
        results.append(_result(policy, machine, traffic, volume,
                               np.bincount(node, minlength=nodes)))
    return results


def _place(policy, trace, machine, where, cost, capacity):
    nodes = len(machine.nodes)
    toucher = np.where(trace.first_thread >= 0, where[trace.first_thread], 0)
    order = np.arange(trace.units)
    if policy == "first touch":
        # The system falls back from a full node to the next nearest.
        nearest = np.argsort(machine.latency, axis=1, kind="stable")
        wishes = np.empty((len(machine.localities), nodes), "<i4")
        for locality, local in enumerate(machine.local_node):
            rest = [one for one in nearest[locality] if one != local]
            wishes[locality] = [local] + rest
        return _fill(wishes[toucher], order, capacity)
    if policy == "recorded":
        index_of = {node: index for index, node in enumerate(machine.nodes)}
        known = np.array([index_of.get(int(node), -1) for node in np.unique(trace.node)])
        placed = known[np.searchsorted(np.unique(trace.node), trace.node)]
        if (placed < 0).any():
            raise machines.Error("the recording does not know where its pages were, or on nodes that "
                                 "this machine has not")
        return placed
    if policy == "interleave":
        page = (trace.unit_address // np.uint64(max(trace.granularity, 4096))) % np.uint64(nodes)
        wishes = (page[:, None].astype("<i4") + np.arange(nodes)) % nodes
        return _fill(wishes, order, capacity)
    wishes = np.argsort(cost, axis=1, kind="stable").astype("<i4")
    if nodes > 1:  # those who lose most by their second choice choose first
        ranked = np.sort(cost, axis=1)
        order = np.argsort(ranked[:, 0] - ranked[:, 1], kind="stable")
    if policy == "balanced":
        capacity = np.minimum(capacity, -(-trace.units // nodes))
        if capacity.sum() < trace.units:
            capacity = machine.capacity // trace.granularity
    elif policy != "optimal":
        raise machines.Error(f"no policy {policy!r}; there are {', '.join(POLICIES)}, recorded")
    return _fill(wishes, order, capacity)


def _result(policy, machine, traffic, volume, pages):
    total = traffic.sum()
    near = np.zeros(traffic.shape, bool)
    near[np.arange(len(machine.local_node)), machine.local_node] = True
    cost_ns = (traffic * machine.latency).sum()
    busy = (volume / (machine.bandwidth * 1e6)).sum(axis=0)
    load = traffic.sum(axis=0)
    return Result(policy, traffic, pages, float(traffic[near].sum() / total) if total else 0.0,
                  float(cost_ns / total) if total else 0.0, float(cost_ns / 1e9), float(busy.max()),
                  float(load.max() / load.mean() - 1) if total else 0.0)
