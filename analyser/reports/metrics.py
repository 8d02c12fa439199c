"""The figures: locality, first-touch correctness, exclusivity, sharing, load imbalance.

As Diener et al. define them ("Improving the memory access locality of hybrid MPI applications",
2017): *locality* is the share of accesses by the thread that touched the unit first; a first touch
is *correct* if that thread is (one of) those with the most accesses; *load imbalance* is
λ = (max / mean - 1) · 100 % of the threads' loads. *Exclusivity* is the share of the accesses of the
thread with the most, which is what locality could be; *sharing* the number of threads that access a
unit. Figures of several units are sums of accesses over sums of accesses, so that what is used much
counts much, but for correctness and sharing, which count units. Locality and correctness are those
of the units whose first thread is known; if these have less than half of all accesses, there are none,
nor is there correctness if they are less than half of the units.

    page A, touched first by thread 1, accesses 20, 5, 10: 57.1 %, correct
    page B, touched first by thread 2, accesses  0, 1, 10:  9.1 %, wrong;  together 45.7 %, 50 %
"""

import dataclasses

import numpy as np

from .trace import MOST_COMMUNICATING, ROWS, blocks

# A thread with less than this part of the largest load is a helper, which no work is meant for
# (one that only waits for the others, say), and is left out of the imbalance.
HELPER_SHARE = 0.01


@dataclasses.dataclass
class PerUnit:
    """One row per unit."""
    total: np.ndarray        # accesses of all threads
    by_first: np.ndarray     # of the thread that touched it first
    most: np.ndarray         # of the thread with the most
    best_thread: np.ndarray  # that thread (of equal ones the one of the first touch, else the first)
    sharers: np.ndarray      # threads with any access
    writers: np.ndarray
    known: np.ndarray        # who touched it first

    @property
    def used(self):
        return self.total > 0

    @property
    def correct(self):
        return self.used & self.known & (self.by_first == self.most)

    @property
    def wrong(self):
        return self.used & self.known & (self.by_first != self.most)


def per_unit(trace):
    units = trace.units
    total, most, by_first = (np.zeros(units, "<u8") for _ in range(3))
    writers, best = np.zeros(units, "<i4"), np.full(units, -1, "<i4")
    for of, rows in blocks(trace):
        sizes = np.diff(trace.starts[of.start:of.stop + 1])
        filled = np.flatnonzero(sizes)
        if len(filled) == 0:
            continue
        begins = trace.starts[of][filled] - rows.start
        accesses, thread, first = trace.accesses[rows], trace.thread[rows], trace.first_thread[of]
        total[of][filled] = np.add.reduceat(accesses, begins, dtype="<u8")
        most[of][filled] = np.maximum.reduceat(accesses, begins)
        writers[of][filled] = np.add.reduceat((trace.writes[rows] > 0).astype("<i4"), begins)
        unit_of_row = np.repeat(np.arange(len(sizes), dtype="<i4"), sizes)
        own = np.flatnonzero(thread == first[unit_of_row])
        by_first[of][unit_of_row[own]] = accesses[own]
        highest = np.flatnonzero(accesses == most[of][unit_of_row])[::-1]
        best[of][unit_of_row[highest]] = thread[highest]  # the last assignment is the first thread
        keeps = (by_first[of] == most[of]) & (total[of] > 0)
        best[of][keeps] = first[keeps]
    if total.max(initial=0) < 1 << 32:  # one after the other
        total = total.astype("<u4")
        by_first = by_first.astype("<u4")
        most = most.astype("<u4")
    return PerUnit(total, by_first, most, best, np.diff(trace.starts).astype("<i4"), writers,
                   np.asarray(trace.first_thread) >= 0)


@dataclasses.dataclass
class Summary:
    """Of a program, a structure, or any set of units. Shares are 0 to 1; None: nothing to say."""
    units: int           # all of them
    used: int            # with accesses
    bytes: int
    accesses: int
    locality: float
    correctness: float
    exclusivity: float
    sharers: float       # mean number of threads of a unit
    shared: float        # share of units that more than one thread accesses
    wrong: int           # units that another thread should have touched first
    remote: int          # accesses by others than the thread of the first touch


def _ratio(part, whole):
    return float(part) / float(whole) if whole else None


def sums(units, unit_bytes, groups, count):
    """What summaries are made of: sums over `count` groups of units, a column each. `groups` gives each
    unit's, -1 for none. Sums of several groups together are those of what they hold."""
    result = np.zeros((11, count))
    for begin in range(0, len(groups), ROWS):
        of = slice(begin, begin + ROWS)
        part = PerUnit(*(getattr(units, field.name)[of] for field in dataclasses.fields(PerUnit)))
        result += _sums(part, unit_bytes if np.isscalar(unit_bytes) else unit_bytes[of], groups[of], count)
    return result


def _sums(units, unit_bytes, groups, count):
    groups = groups.astype("<i8")
    inside = None if (groups >= 0).all() else groups >= 0
    where = groups if inside is None else groups[inside]

    def of(values):
        return np.bincount(where, weights=values if inside is None else values[inside], minlength=count)

    members = np.bincount(where, minlength=count).astype(float)
    return np.array([
        members, of(units.used), members * unit_bytes if np.isscalar(unit_bytes) else of(unit_bytes),
        of(units.total), of(units.by_first), of(units.most), of(np.where(units.known, units.total, 0)),
        of(units.used & units.known), of(units.correct), of(units.sharers), of(units.sharers > 1)])


def summary_of(column):
    members, used, size, total, by_first, most, told, told_units, correct, sharers, shared = column.tolist()
    return Summary(int(members), int(used), int(size), int(total),
                   _ratio(by_first, told) if 2 * told >= total else None,
                   _ratio(correct, told_units) if 2 * told_units >= used and 2 * told >= total else None,
                   _ratio(most, total), _ratio(sharers, used), _ratio(shared, used),
                   int(told_units - correct), int(told - by_first))


def summarise(units, unit_bytes, groups=None, count=1):
    """Summaries of `count` groups of units; `groups` gives each unit's, -1 for none."""
    if groups is None:
        groups = np.zeros(len(units.total), "<i4")
    return [summary_of(column) for column in sums(units, unit_bytes, groups, count).T]


@dataclasses.dataclass
class Balance:
    kind: str             # "instructions", "processor time" or "accesses"
    loads: np.ndarray     # of all threads
    worker: np.ndarray    # which of them count
    imbalance: float      # λ, 0 is none, 1 is 100 %; None: unknown
    variance: float       # of the population


def accesses_by_thread(trace):
    result = np.zeros(trace.threads)
    for _, rows in blocks(trace):
        result += np.bincount(trace.thread[rows], weights=trace.accesses[rows], minlength=trace.threads)
    return result


def balance(trace):
    """Of instructions where they are known, else of processor time, else of accesses."""
    if trace.instructions.any():
        kind, loads = "instructions", trace.instructions
    elif trace.cpu_ns.any():
        kind, loads = "processor time", trace.cpu_ns
    else:
        kind = "accesses"
        loads = accesses_by_thread(trace)
    loads = np.asarray(loads, float)
    worker = loads > loads.max(initial=0) * HELPER_SHARE
    if not worker.any():
        return Balance(kind, loads, worker, None, None)
    own = loads[worker]
    return Balance(kind, loads, worker, float(own.max() / own.mean() - 1), float(own.var()))


def communication(trace):
    """Bytes or accesses that threads have in common: what was recorded, else estimated from units
    that two threads access, of which the smaller number of accesses counts."""
    if trace.communication is not None:
        return trace.communication
    if trace.threads > MOST_COMMUNICATING:
        return None
    matrix = np.zeros((trace.threads, trace.threads))
    for of, rows in blocks(trace):
        sizes = np.diff(trace.starts[of.start:of.stop + 1])
        thread, accesses = trace.thread[rows], trace.accesses[rows]
        # Rows of a unit are neighbours: compare each with the one `distance` after it.
        unit_of_row = np.repeat(np.arange(len(sizes), dtype="<i4"), sizes)
        for distance in range(1, min(int(sizes.max(initial=0)), 64)):
            same = np.flatnonzero(unit_of_row[distance:] == unit_of_row[:-distance])
            if len(same) == 0:
                break
            common = np.minimum(accesses[same], accesses[same + distance])
            matrix += np.bincount(
                thread[same].astype("<i8") * trace.threads + thread[same + distance], weights=common,
                minlength=trace.threads ** 2).reshape(matrix.shape)
    return matrix + matrix.T


def with_first_threads(trace, units, first_thread):
    """The per-unit figures if other threads had touched first: all else stays."""
    by_first = np.zeros(trace.units, "<u8")
    for of, rows in blocks(trace):
        sizes = np.diff(trace.starts[of.start:of.stop + 1])
        unit_of_row = np.repeat(np.arange(len(sizes), dtype="<i4"), sizes)
        own = np.flatnonzero(trace.thread[rows] == first_thread[of][unit_of_row])
        by_first[of][unit_of_row[own]] = trace.accesses[rows][own]
    return dataclasses.replace(units, by_first=by_first, known=np.asarray(first_thread) >= 0)
