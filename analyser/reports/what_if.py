"""A trace on another machine: where its threads and pages would be, and what accesses would cost.

    for result in predict(trace, machine, "compact"):
        result.policy, result.traffic, result.local_share, result.mean_latency_ns

Threads go to processors *compact*ly (neighbours on neighbours: all of a node before the next),
*scatter*ed (nodes in turn) or by a *list*, of processors in the order of the working threads; more
threads than processors go round. Pages go to memories
    first touch   near the thread that touched them first, as the system does
    huge pages    the same where the system gives transparent huge pages to all: who first touches any
                  of 2 MiB that lie in memory without a file places all of it
    recorded      where they were in the recording, if it says so
    interleave    to the nodes in turn
    balanced      as near as possible, every node the same number of pages
    optimal       where their accesses cost least
each within the nodes' capacities but for huge pages, and each unit of the recording for itself, as
where transparent huge pages are off or only on request. Of several threads that touch a huge page at
the same place of the program, as the parts of a parallel loop do, it is chance who comes first: those
that begin there share its accesses out equally, which is what is to be expected of many. That takes
the recorded addresses, whose places in 2 MiB another kernel may choose otherwise. `traffic[l, n]` are the accesses from locality l to node n. The
latency cost is what all accesses would take one after the other, were no cache there; the bandwidth
cost is the time that the busiest memory needs for what is moved to and from it.
"""

import dataclasses

import numpy as np

from . import machine as machines, metrics, recording, text, trace as traces

POLICIES = ("first touch", "huge pages", "interleave", "balanced", "optimal")
HUGE_BYTES = 2 << 20
PAGE_BYTES = 4096
# Whole numbers up to this are exact in 4 bytes.
MOST_NARROW = 1 << 24
# Units by which threads that begin in a huge page may differ in what they have touched before: the
# other arrays of the same loop.
TOGETHER_UNITS = 8


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
    """Per unit and locality, dense, the sums of values(rows), a function of a slice of the accesses."""
    result = np.empty((trace.units, localities), "<f4")
    for of, rows in traces.blocks(trace):
        count = of.stop - of.start
        cell = np.repeat(np.arange(count), np.diff(trace.starts[of.start:of.stop + 1])) * localities
        cell += where[trace.thread[rows]]
        part = np.bincount(cell, weights=values(rows), minlength=count * localities)
        if part.max(initial=0) > MOST_NARROW and result.dtype != "<f8":
            result = result.astype("<f8")
        result[of] = part.reshape(count, localities)
    return result


def _at_nodes(values, node, nodes):
    """The sums of values, unit × locality, by locality and the node of the unit."""
    result = np.zeros((values.shape[1], nodes))
    for begin in range(0, len(values), traces.ROWS):
        of = slice(begin, begin + traces.ROWS)
        for locality in range(values.shape[1]):
            result[locality] += np.bincount(node[of], weights=values[of, locality], minlength=nodes)
    return result


def _capacity(trace, machine):
    """Units that each node has room for."""
    capacity = np.where(machine.capacity > 0, machine.capacity // trace.granularity, trace.units)
    if capacity.sum() < trace.units:
        raise machines.Error(f"{machine.name} has less memory, {text.size(machine.capacity.sum())}, than the "
                             f"recording: {text.size(trace.units * trace.granularity)} in {trace.units:,} units of "
                             f"{text.size(trace.granularity)}")
    return capacity


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
    capacity = _capacity(trace, machine)
    where = place_threads(trace, machine, placement)
    localities, nodes = len(machine.localities), len(machine.nodes)
    accesses = _by_locality(trace, where, lambda rows: trace.accesses[rows], localities)
    is_moved = trace.moved_bytes.any()
    bytes_by_locality = _by_locality(
        trace, where, lambda rows: trace.moved_bytes[rows] if is_moved else trace.accesses[rows] * 8.0, localities)
    results = []
    for policy in policies:
        if policy == "huge pages":
            results.append(_huge(trace, machine, where, accesses, bytes_by_locality))
            continue
        node = _place(policy, trace, machine, where, accesses, capacity)
        results.append(_result(policy, machine, _at_nodes(accesses, node, nodes),
                               _at_nodes(bytes_by_locality, node, nodes), np.bincount(node, minlength=nodes)))
        del node
    return results


def _anonymous(trace):
    """(process, begin, end, since when) of the pieces of memory without a file, and the stretches
    (process, begin, end) that they make together, ascending."""
    kinds = [recording.KINDS.index(name) for name in ("heap", "mapping", "program_break")]
    rows = np.flatnonzero(np.isin(trace.allocation_kind, kinds))
    begin = trace.allocation_address[rows].astype("<i8") // PAGE_BYTES * PAGE_BYTES
    end = trace.allocation_address[rows].astype("<i8") + trace.allocation_size[rows].astype("<i8")
    end = -(-end // PAGE_BYTES) * PAGE_BYTES
    order = np.lexsort((trace.allocation_begin[rows], end, begin, trace.allocation_process[rows]))
    pieces = list(zip(*(column[order].tolist() for column in (
        trace.allocation_process[rows], begin, end, trace.allocation_begin[rows]))))
    stretches = []
    for process, low, high, _ in pieces:
        # (What the allocator keeps between two blocks is of the same mapping.)
        if stretches and stretches[-1][0] == process and low <= stretches[-1][2] + PAGE_BYTES:
            stretches[-1][2] = max(stretches[-1][2], high)
        else:
            stretches.append([process, low, high])
    return pieces, stretches


def _huge_pages(trace):
    """The huge page that each unit lies in, as a number from 0, -1 for none; and how many.

    The kernel makes one when the first of its 2 MiB is touched and all of them are mapped by then: at
    the ends of mappings, and where a neighbour is mapped later, pages are small."""
    block = (trace.unit_address // np.uint64(HUGE_BYTES)).astype("<i8")
    inside = np.zeros(trace.units, bool)
    order = np.lexsort((trace.unit_address, trace.unit_process))
    if (order[1:] > order[:-1]).all():  # as they mostly are
        process, address = trace.unit_process, trace.unit_address
    else:
        process, address = trace.unit_process[order], trace.unit_address[order]
    pieces, stretches = _anonymous(trace)
    for number, low, high in stretches:
        low, high = -(-low // HUGE_BYTES) * HUGE_BYTES, high // HUGE_BYTES * HUGE_BYTES
        if low < high:
            first, last = np.searchsorted(process, number), np.searchsorted(process, number, "right")
            part = address[first:last]
            inside[order[first + np.searchsorted(part, np.uint64(low)):
                         first + np.searchsorted(part, np.uint64(high))]] = True
    del process, address
    inside &= trace.first_thread >= 0
    # (Of pairs, or of what it sorts itself, np.unique takes several times as much time and memory.)
    order = order[inside[order]]
    number, block = trace.unit_process[order], block[order]
    begins = np.ones(len(order), bool)
    begins[1:] = (number[1:] != number[:-1]) | (block[1:] != block[:-1])
    found = list(zip(number[begins].tolist(), block[begins].tolist()))
    del number, block
    inverse = np.empty(trace.units, "<i4")
    inverse[order] = np.cumsum(begins, dtype="<i4") - 1
    del order, begins
    inverse = inverse[inside]
    touched = np.full(len(found), np.iinfo("<i8").max)
    np.minimum.at(touched, inverse, trace.first_time[inside].astype("<i8"))
    number_of = {one: number for number, one in enumerate(found)}
    mapped = np.zeros(len(found), "<i8")
    known = set()  # what is mapped again where it was counts once
    for number, low, high, since in sorted(pieces, key=lambda piece: piece[3]):
        for one in range(low // HUGE_BYTES, -(-high // HUGE_BYTES)):
            at = number_of.get((number, one))
            if at is not None and (number, low, one) not in known:
                known.add((number, low, one))
                mapped[at] = max(mapped[at], since)
    whole = touched >= mapped
    result = np.full(trace.units, -1, "<i4")
    result[inside] = np.where(whole, np.cumsum(whole) - 1, -1)[inverse]
    return result, int(whole.sum())


def _huge(trace, machine, where, accesses, moved):
    """The policy `huge pages`: each one's accesses, shared out between the nodes that it may be on."""
    nodes = len(machine.nodes)
    local = np.asarray(machine.local_node)
    huge, count = _huge_pages(trace)
    weight = np.zeros((count, nodes))
    rows = np.flatnonzero(huge >= 0).astype("<i4" if trace.units < 1 << 31 else "<i8")
    thread = trace.first_thread[rows].astype("<i2" if trace.threads < 1 << 15 else "<i4")
    time = trace.first_time[rows]
    place = np.array([site.addresses[0] if site.addresses else 0 for site in trace.sites] + [0],
                     "<u8") // np.uint64(PAGE_BYTES)  # about a function
    place = np.unique(place, return_inverse=True)[1].astype("<i2" if len(place) < 1 << 15 else "<i4")
    place = place[trace.first_site[rows]]
    # How many units each thread had touched there before.
    order = np.lexsort((time, place, thread))
    fresh = np.ones(len(rows), bool)
    fresh[1:] = (np.diff(thread[order]) != 0) | (np.diff(place[order]) != 0)
    at = np.arange(len(rows), dtype="<i4")
    before = np.empty(len(rows), "<i4")
    before[order] = at - np.maximum.accumulate(np.where(fresh, at, np.int32(0)))
    del order, at, fresh
    # Each thread's first unit of each huge page; the first of all of them tells the place.
    page = huge[rows]
    order = np.lexsort((time, thread, page))
    once = np.ones(len(rows), bool)
    once[1:] = (np.diff(page[order]) != 0) | (np.diff(thread[order]) != 0)
    one = order[once]
    del order, once
    one = one[np.lexsort((time[one], page[one]))]
    page = page[one]
    begins = np.flatnonzero(np.diff(page, prepend=-1)) if len(page) else np.empty(0, "<i8")
    here = place[one] == place[one][begins][page]
    least = np.full(count, np.iinfo("<i8").max)
    np.minimum.at(least, page[here], before[one][here])
    here &= before[one] <= least[page] + TOGETHER_UNITS
    np.add.at(weight, (page[here], local[where[thread[one][here]]]), 1)
    weight /= weight.sum(axis=1, keepdims=True)
    small = huge < 0
    toucher = np.where(trace.first_thread >= 0, where[trace.first_thread], 0)
    traffic, volume = np.zeros((2, accesses.shape[1], nodes))
    pages = np.bincount(local[toucher[small]], minlength=nodes).astype(float)
    pages += np.bincount(huge[rows], minlength=count) @ weight
    for values, result in ((accesses, traffic), (moved, volume)):
        for locality in range(values.shape[1]):
            result[locality] = np.bincount(local[toucher[small]], weights=values[small, locality],
                                           minlength=nodes)
            result[locality] += np.bincount(huge[rows], weights=values[rows, locality],
                                            minlength=count) @ weight
    return _result("huge pages", machine, traffic, volume, pages)


def _place(policy, trace, machine, where, accesses, capacity):
    nodes = len(machine.nodes)
    narrow = "<i1" if nodes < 128 else "<i4"
    order = np.arange(trace.units, dtype="<i4" if trace.units < 1 << 31 else "<i8")
    if policy == "first touch":
        toucher = np.where(trace.first_thread >= 0, where[trace.first_thread], 0)
        # The system falls back from a full node to the next nearest.
        nearest = np.argsort(machine.latency, axis=1, kind="stable")
        wishes = np.empty((len(machine.localities), nodes), narrow)
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
        wishes = np.empty((trace.units, nodes), narrow)
        for choice in range(nodes):
            wishes[:, choice] = (page + np.uint64(choice)) % np.uint64(nodes)
        del page
        return _fill(wishes, order, capacity)
    wishes, loss = np.empty((trace.units, nodes), narrow), np.empty(trace.units)
    for begin in range(0, trace.units, traces.ROWS):
        of = slice(begin, begin + traces.ROWS)
        cost = accesses[of] @ machine.latency
        wishes[of] = np.argsort(cost, axis=1, kind="stable")
        cost.sort(axis=1)
        loss[of] = cost[:, 0] - cost[:, 1] if nodes > 1 else 0
    if nodes > 1:  # those who lose most by their second choice choose first
        order = np.argsort(loss, kind="stable")
    del loss
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
