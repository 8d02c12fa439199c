"""What a recording says, joined: units of memory, who touched them first, who accesses them.

    trace = load("warren-locality")
    trace.unit_address[i], trace.first_thread[i]         # of unit i
    begin, end = trace.starts[i], trace.starts[i + 1]
    trace.thread[begin:end], trace.accesses[begin:end]   # its accesses, thread by thread

A unit is a piece of `granularity` bytes (a page, usually) in one life of an allocation: memory that
is freed and used again is other units, where the recording has allocations. Threads of all processes have numbers of one row. Units of
memory that several processes share are joined when their identity is known (the file or segment and the
place in it, or the physical page), and are then of the process that touched them first. Everything is in flat arrays, so that ten million units
take half a gigabyte.
"""

import dataclasses
import os

import numpy as np

from . import damage, lines, recording, touches
from .part import Part, Site  # noqa: F401 (a site is part of a trace)

# Threads that a matrix of all pairs is made for.
MOST_COMMUNICATING = 1024


@dataclasses.dataclass
class Trace:
    mode: str = "counts"          # or "sample", "first-touch": what process.json says
    granularity: int = 4096
    processes: list = dataclasses.field(default_factory=list)  # recording.Process, or None
    process_names: list = dataclasses.field(default_factory=list)
    # A row per thread.
    thread_process: np.ndarray = None
    thread_number: np.ndarray = None
    thread_names: list = dataclasses.field(default_factory=list)
    instructions: np.ndarray = None   # 0: unknown
    cpu_ns: np.ndarray = None
    # A row per unit.
    unit_address: np.ndarray = None
    unit_process: np.ndarray = None
    unit_allocation: np.ndarray = None   # row in the allocations, -1: in none
    first_thread: np.ndarray = None      # -1: unknown
    first_site: np.ndarray = None        # index in sites, -1: unknown
    first_time: np.ndarray = None        # ns, 0: unknown
    inherited: np.ndarray = None         # whether that was in an earlier life of its memory
    node: np.ndarray = None              # NUMA node where the page really was, -1: unknown
    unit_bytes: np.ndarray = None        # None: the granularity; else huge pages are larger
    # Accesses of unit i are the rows starts[i] to starts[i + 1], a thread each, threads ascending.
    starts: np.ndarray = None
    # Of accesses, writes and bytes numbers are of 4 bytes if all fit: sums need a wider type.
    thread: np.ndarray = None
    accesses: np.ndarray = None
    writes: np.ndarray = None
    moved_bytes: np.ndarray = None
    # Of cache lines, a row per unit and thread in that order: bytes that were seen to be read and
    # written, a bit each, and where (index in sites). None: not recorded.
    line_use: np.ndarray = None
    # A row per allocation: its life [begin_ns, end_ns).
    allocation_process: np.ndarray = None
    allocation_address: np.ndarray = None
    allocation_size: np.ndarray = None
    allocation_kind: np.ndarray = None   # index in recording.KINDS
    allocation_thread: np.ndarray = None
    allocation_site: np.ndarray = None   # index in sites, -1
    allocation_begin: np.ndarray = None
    sites: list = dataclasses.field(default_factory=list)
    communication: np.ndarray = None     # bytes or events, producer × consumer; None: unknown
    bursts: int = 0                      # of mode sample
    warnings: list = dataclasses.field(default_factory=list)
    damage: list = dataclasses.field(default_factory=list)  # damage.Damage: what of it is lacking

    @property
    def units(self):
        return len(self.unit_address)

    @property
    def threads(self):
        return len(self.thread_process)

    @property
    def has_counts(self):
        return len(self.thread) > 0

    def thread_label(self, thread):
        if thread < 0:
            return "?"
        if len(self.process_names) == 1:
            return f"T{self.thread_number[thread]}"
        return f"{self.process_names[self.thread_process[thread]]}.T{self.thread_number[thread]}"


def synthetic(accesses, first_thread, granularity=4096, instructions=None, address=None):
    """A trace of one process from a dense matrix of accesses, unit × thread: for tests and models."""
    accesses = np.asarray(accesses, "<u8")
    units, threads = accesses.shape
    row, thread = np.nonzero(accesses)
    values = accesses[row, thread]
    none = np.empty(0, "<i4")
    return Trace(
        granularity=granularity, processes=[None], process_names=["process"],
        thread_process=np.zeros(threads, "<i4"), thread_number=np.arange(threads, dtype="<i4"),
        thread_names=[""] * threads,
        instructions=np.asarray(instructions if instructions is not None else np.zeros(threads), "<u8"),
        cpu_ns=np.zeros(threads, "<u8"),
        unit_address=(np.arange(units, dtype="<u8") * np.uint64(granularity) + np.uint64(1 << 32)
                      if address is None else np.asarray(address, "<u8")),
        unit_process=np.zeros(units, "<i4"), unit_allocation=np.full(units, -1, "<i4"),
        first_thread=np.asarray(first_thread, "<i4"), first_site=np.full(units, -1, "<i4"),
        first_time=np.zeros(units, "<u8"), inherited=np.zeros(units, bool),
        node=np.full(units, -1, "<i2"),
        starts=np.concatenate([[0], np.cumsum(np.count_nonzero(accesses, axis=1))]).astype("<i8"),
        thread=thread.astype("<i4"), accesses=values, writes=np.zeros(len(values), "<u8"),
        moved_bytes=values * np.uint64(8),
        allocation_process=none, allocation_address=np.empty(0, "<u8"),
        allocation_size=np.empty(0, "<u8"), allocation_kind=none, allocation_thread=none,
        allocation_site=none, allocation_begin=np.empty(0, "<u8"))


def selected(trace, units):
    """The trace of some units (a mask) alone; threads, allocations and sites stay."""
    sizes = np.diff(trace.starts)
    rows = np.repeat(units, sizes)
    chosen = {name: getattr(trace, name)[units] for name in (
        "unit_address", "unit_process", "unit_allocation", "first_thread", "first_site",
        "first_time", "inherited", "node")}
    chosen.update({name: getattr(trace, name)[rows]
                   for name in ("thread", "accesses", "writes", "moved_bytes")})
    if trace.unit_bytes is not None:
        chosen["unit_bytes"] = trace.unit_bytes[units]
    starts = np.concatenate([[0], np.cumsum(sizes[units])]).astype("<i8")
    chosen["line_use"] = lines.moved(trace.line_use, np.where(units, np.cumsum(units) - 1, -1))
    return dataclasses.replace(trace, starts=starts, **chosen)


# Rows that are looked at at a time, where what is made of them would take more memory than they.
ROWS = 1 << 21


def blocks(trace):
    """The trace in pieces: (units, rows), slices of neighbouring units with their rows."""
    most = int(trace.starts[-1]) if trace.units else 0
    cuts = np.searchsorted(trace.starts, np.arange(ROWS, most, ROWS)).tolist()
    cuts = sorted({0, trace.units, *cuts})
    for begin, end in zip(cuts[:-1], cuts[1:]):
        yield slice(begin, end), slice(int(trace.starts[begin]), int(trace.starts[end]))


LAUNCHERS = {"mpiexec", "mpirun", "orterun", "prterun", "hydra_pmi_proxy", "srun"}


def _of_interest(processes):
    """The ranks; where there are none, all but launchers; where there is nothing else, all."""
    ranks = [one for one in processes if one.info.get("rank") is not None]
    others = [one for one in processes
              if os.path.basename(one.info.get("executable") or "") not in LAUNCHERS]
    return ranks or others or processes


def _larger_children(processes):
    """Sentences about what ranks have started and what has more records than they: the program,
    perhaps, where the rank is a script."""
    by_pid = {(one.info.get("host"), one.info["pid"]): one for one in processes}
    found = []
    for process in processes:
        rank = process
        for _ in processes:  # in a damaged recording parents may be a ring
            if rank is None or rank.info.get("rank") is not None:
                break
            rank = by_pid.get((rank.info.get("host"), rank.info.get("parent")))
        if rank is not None and rank is not process and rank.info.get("rank") is not None \
                and process.size > rank.size:
            found.append(f"{process.folder}, started by rank {rank.info['rank']}, has more records than "
                         "that and is left out (--everything shows it)")
    return found


def _ways(whole):
    """The modes and granularities. Those of a damaged description that nobody else has are no more than
    damage: what has them is left out."""
    def of(processes):
        return ({process.info["mode"] for process in processes},
                {process.info["granularity"] for process in processes})

    sound = [process for process in whole.processes
             if not any(one.file == "process.json" for one in process.damage)]
    modes, sizes = of(sound or whole.processes)
    for process in list(whole.processes):
        if sound and (process.info["mode"] not in modes or process.info["granularity"] not in sizes):
            whole.leave_out(process, f"tells of mode {process.info['mode']!r} and a granularity of "
                                     f"{process.info['granularity']}, which no other process has")
    return modes, sizes


def _parts(trace, whole, intervals):
    """The parts of all processes. What is damaged in a way that nothing before has seen is left out."""
    parts = []
    for process in list(whole.processes):
        sites = len(trace.sites)
        try:
            parts.append(Part(trace, len(parts), process, intervals))
        except (ArithmeticError, LookupError, ValueError) as problem:
            if not process.damage:
                raise
            del trace.sites[sites:]
            whole.leave_out(process, f"can't be put together: {problem!r}")
    if not parts:
        raise recording.Error(f"{whole.folder} is damaged: {whole.damage[0]}")
    return parts


def load(folder, intervals=None, everything=False):
    """The trace of a recording. `intervals` are numbers of the intervals whose accesses count, or such
    sets by the names of processes. Of a job its ranks are what is looked at, unless `everything` is."""
    whole = recording.open(folder)
    found, notes = whole.damage, []
    if not everything:
        whole.leave_out_replaced()
        notes = _larger_children(whole.processes)
        whole.processes = _of_interest(whole.processes)
    modes, sizes = _ways(whole)
    if len(modes) > 1 or len(sizes) > 1:
        raise recording.Error(f"{folder}: its processes were recorded in different ways: modes "
                              f"{sorted(modes)}, granularities {sorted(sizes)}")
    trace = Trace(mode=modes.pop(), granularity=sizes.pop())
    parts = _parts(trace, whole, intervals)
    trace.processes = [part.process for part in parts]
    trace.warnings = damage.once(notes + whole.warnings + trace.warnings)
    trace.damage = damage.once(found + whole.damage)
    if trace.mode in ("counts", "sample") and any(len(part.thread) and not len(part.address)
                                                      for part in parts):
        trace.warnings.insert(0, "there are no allocations: of memory that was freed and used again all "
                              "lives are added up")
    if trace.mode == "sample" and any(len(part.thread) for part in parts):
        bursts = sum(process.info.get("bursts") or 0 for process in trace.processes)
        trace.bursts = bursts
        if bursts > 0:  # the description that tells them may be lost
            trace.warnings.insert(0, f"accesses are estimates from {bursts:,} bursts: the standard error of a "
                                  "share s of them is about the root of s (1 - s) / "
                                  f"{bursts:,}, {100 * (0.25 / bursts) ** 0.5:.1f} points at 50 %; "
                                  "those of a single page are rougher")
    _put_together(trace, parts)
    identity = parts[0].identity if len(parts) == 1 else np.concatenate([part.identity for part in parts])
    del parts  # what they have more takes memory
    _join_shared(trace, identity)
    return trace


def _put_together(trace, parts):
    threads = np.cumsum([0] + [part.threads for part in parts])
    allocations = np.cumsum([0] + [len(part.address) for part in parts])
    rows = np.cumsum([0] + [len(part.thread) for part in parts])
    shift = np.uint64(trace.granularity.bit_length() - 1)

    def joined(name, values, dtype=None):
        """With no type the values', which may be narrow (part.narrow)."""
        values = list(values)
        one = values[0] if len(values) == 1 else np.concatenate(values)
        setattr(trace, name, one if dtype is None else one.astype(dtype, copy=False))

    def moved(values, by):
        return np.where(values >= 0, values + by, -1) if by else values

    trace.process_names = [recording.shown(part.process.name) for part in parts]
    for index, part in enumerate(parts):
        if part.process.info.get("rank") is not None:
            trace.process_names[index] = f"rank {part.process.info['rank']}"
    joined("thread_process", (np.full(part.threads, part.index) for part in parts), "<i4")
    joined("thread_number", (np.arange(part.threads) for part in parts), "<i4")
    trace.thread_names = [name for part in parts for name in part.names]
    joined("instructions", (part.instructions for part in parts), "<u8")
    joined("cpu_ns", (part.cpu_ns for part in parts), "<u8")
    joined("unit_address", ((part.keys >> np.uint64(part.bits)) << shift for part in parts), "<u8")
    joined("unit_process", (np.full(len(part.keys), part.index, "<i4") for part in parts), "<i4")
    joined("unit_allocation",
           (moved((part.keys & np.uint64((1 << part.bits) - 1)).astype("<i8") - 1, by)
            for part, by in zip(parts, allocations)), "<i4")
    joined("first_thread", (moved(part.first_thread, by) for part, by in zip(parts, threads)), "<i4")
    joined("first_site", (part.first_site for part in parts), "<i4")
    joined("first_time", (part.first_time for part in parts), "<u8")
    joined("inherited", (part.inherited for part in parts), bool)
    joined("node", (part.node for part in parts), "<i2")
    if any(part.unit_bytes is not None for part in parts):
        joined("unit_bytes", (np.full(len(part.keys), trace.granularity) if part.unit_bytes is None
                              else part.unit_bytes for part in parts), "<u8")
    joined("starts", [parts[0].starts] + [part.starts[1:] + by for part, by in zip(parts[1:], rows[1:])],
           "<i8")
    joined("thread", (part.thread + by if by else part.thread for part, by in zip(parts, threads)), "<i4")
    trace.line_use = lines.joined(parts, threads)
    joined("accesses", (part.accesses for part in parts))
    joined("writes", (part.writes for part in parts))
    joined("moved_bytes", (part.moved for part in parts))
    joined("allocation_process", (np.full(len(part.address), part.index) for part in parts), "<i4")
    joined("allocation_address", (part.address for part in parts), "<u8")
    joined("allocation_size", (part.size for part in parts), "<u8")
    joined("allocation_kind", (part.kind for part in parts), "<i4")
    joined("allocation_thread",
           (moved(part.thread_of_allocation, by) for part, by in zip(parts, threads)), "<i4")
    joined("allocation_site", (part.site for part in parts), "<i4")
    joined("allocation_begin", (part.begin for part in parts), "<u8")
    recorded = any(len(part.process.communication) for part in parts)
    if trace.threads > MOST_COMMUNICATING and (recorded or trace.has_counts):
        trace.warnings.append(f"of {trace.threads:,} threads it isn't shown which communicate: there may be "
                              f"at most {MOST_COMMUNICATING:,}")
    elif recorded:
        trace.communication = np.zeros((trace.threads, trace.threads))
        for part, by in zip(parts, threads):
            records = part.communication
            good = (records["producer"] < part.threads) & (records["consumer"] < part.threads)
            np.add.at(trace.communication, (records["producer"][good] + by,
                                            records["consumer"][good] + by), records["bytes"][good])


def _join_shared(trace, identity):
    """Makes one unit of those that are the same page in several processes."""
    kinds = np.append(trace.allocation_kind, 0)[trace.unit_allocation]
    shared = np.isin(kinds, touches.SHARED)
    candidates = np.flatnonzero(shared & (identity != 0))
    if len(candidates) == 0:
        return
    # Of each page the unit that was touched first stays.
    time = trace.first_time[candidates]
    candidates = candidates[np.lexsort((candidates, np.where(time, time, np.iinfo("<u8").max)))]
    hosts = [process.info.get("host") or "" for process in trace.processes]
    host = np.unique(hosts, return_inverse=True)[1][trace.unit_process[candidates]]
    pages = np.stack([identity[candidates], host.astype("<u8")], axis=1)
    _, first, inverse, sizes = np.unique(pages, axis=0, return_index=True, return_inverse=True,
                                         return_counts=True)
    if (sizes == 1).all():
        return
    target = np.arange(trace.units)
    target[candidates] = candidates[first][np.ravel(inverse)]
    unit_of_row = target[np.repeat(np.arange(trace.units), np.diff(trace.starts))]
    kept = np.flatnonzero(target == np.arange(trace.units))
    # One row of each thread: a process that has mapped the page twice has had two.
    order = np.lexsort((trace.thread, unit_of_row))
    unit_of_row, thread = unit_of_row[order], trace.thread[order]
    fresh = np.ones(len(order), bool)
    fresh[1:] = (unit_of_row[1:] != unit_of_row[:-1]) | (thread[1:] != thread[:-1])
    rows = np.flatnonzero(fresh)
    unit_of_row, trace.thread = unit_of_row[rows], thread[rows]
    for name in ("accesses", "writes", "moved_bytes"):
        values = getattr(trace, name)[order]
        setattr(trace, name, np.add.reduceat(values, rows, dtype="<u8") if len(rows) else values)
    sizes = np.bincount(unit_of_row, minlength=trace.units)[kept]
    trace.starts = np.concatenate([[0], np.cumsum(sizes)]).astype("<i8")
    number_of = np.empty(trace.units, "<i8")
    number_of[kept] = np.arange(len(kept))
    trace.line_use = lines.moved(trace.line_use, number_of[target])
    for name in ("unit_address", "unit_process", "unit_allocation", "first_thread", "first_site",
                 "first_time", "inherited", "node", "unit_bytes"):
        values = getattr(trace, name)
        if values is not None:
            setattr(trace, name, values[kept])
