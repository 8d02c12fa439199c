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

from . import lines, recording, touches

# Threads that a matrix of all pairs is made for.
MOST_COMMUNICATING = 1024
HEAP = recording.KINDS.index("heap")


@dataclasses.dataclass
class Site:
    """A place in a program's code: addresses, innermost first, and whether each is a return address."""
    process: int
    addresses: tuple
    returns: tuple


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


def load(folder, intervals=None, everything=False):
    """The trace of a recording. `intervals` are numbers of the intervals whose accesses count, or such
    sets by the names of processes. Of a job its ranks are what is looked at, unless `everything` is."""
    whole = recording.open(folder)
    notes = []
    if not everything:
        whole.leave_out_replaced()
        notes = _larger_children(whole.processes)
        whole.processes = _of_interest(whole.processes)
    modes = {process.info["mode"] for process in whole.processes}
    sizes = {process.info["granularity"] for process in whole.processes}
    if len(modes) > 1 or len(sizes) > 1:
        raise recording.Error(f"{folder}: its processes were recorded in different ways: modes "
                              f"{sorted(modes)}, granularities {sorted(sizes)}")
    trace = Trace(mode=modes.pop(), granularity=sizes.pop(), processes=whole.processes,
                  warnings=notes + whole.left_out + [text for process in whole.processes for text in process.warnings])
    if trace.mode in ("counts", "sample") and any(len(process.counts) and not len(process.allocations)
                                      for process in whole.processes):
        trace.warnings.insert(0, "there are no allocations: of memory that was freed and used again all "
                              "lives are added up")
    if trace.mode == "sample":
        bursts = sum(process.info.get("bursts") or 0 for process in whole.processes)
        trace.bursts = bursts
        trace.warnings.insert(0, f"accesses are estimates from {bursts:,} bursts: the standard error of a "
                              "share s of them is about the root of s (1 - s) / "
                              f"{bursts:,}, {100 * (0.25 / max(bursts, 1)) ** 0.5:.1f} points at 50 %; "
                              "those of a single page are rougher")
    parts = [_Part(trace, index, process, intervals) for index, process in enumerate(whole.processes)]
    _put_together(trace, parts)
    _join_shared(trace, np.concatenate([part.identity for part in parts]))
    return trace


class _Part:
    """One process's part of the trace, with its own numbers of threads and allocations."""

    def __init__(self, trace, index, process, intervals):
        self.index, self.process, self.trace = index, process, trace
        self._sites = {}
        self._read_allocations()
        self._read_counts(intervals)
        if process.info["mode"] == "sample":
            touches.read_sampled(self)
        elif len(process.first):
            self.read_first()
        elif len(process.touches):
            self._read_touches()
        self._identify_shared()
        self._read_threads()
        # What has been read takes memory that the analysis needs.
        for name in ("counts", "first", "touches"):
            setattr(process, name, getattr(process, name)[:0].copy())

    def _site_of_stack(self, number):
        number = int(number)
        if number == 0:
            return -1
        if number not in self._sites:
            places = self.process.places[self.process.stack_numbers(number)]
            self._sites[number] = len(self.trace.sites)
            self.trace.sites.append(Site(self.index, tuple(int(a) for a in places["address"]),
                                         tuple(p != recording.PLACE_INSTRUCTION
                                               for p in places["place"])))
        return self._sites[number]

    def _sites_of_stacks(self, numbers):
        # (Of millions np.unique takes seconds.)
        seen = np.zeros(len(self.process.places) + 1, bool)
        seen[numbers] = True
        sites = np.full(len(seen), -1, "<i4")
        for number in np.flatnonzero(seen).tolist():
            sites[number] = self._site_of_stack(number)
        return sites[numbers]

    def _read_allocations(self):
        records = self.process.allocations
        begins = np.flatnonzero(records["event"] == recording.ALLOCATION_BEGAN)
        chosen = records[begins]
        # From the numbers of records (from 1) to rows.
        self.row_of = np.full(len(records) + 1, -1, "<i4")
        self.row_of[begins + 1] = np.arange(len(begins), dtype="<i4")
        self.address, self.size = chosen["address"].astype("<u8"), chosen["size"].astype("<u8")
        self.kind = chosen["what"].astype("<i4")
        self.thread_of_allocation = chosen["thread"].astype("<i4")
        self.site = self._sites_of_stacks(chosen["stack_id"])
        self.begin = chosen["time_ns"].astype("<u8")
        shared = np.isin(self.kind, touches.SHARED)
        self.previous = np.where(shared, 0, chosen["previous"]).astype("<u8")
        self.shared_at = np.where(shared, chosen["previous"], 0).astype("<u8")
        self.end = _ends_of_life(records, begins)

    def _read_counts(self, intervals):
        counts = self.process.counts
        shift = np.uint64(self.trace.granularity.bit_length() - 1)
        self.bits = max(int(len(self.address) + 1).bit_length(), 1)
        if isinstance(intervals, dict):
            intervals = intervals.get(self.process.name, ())
        wanted = None if intervals is None else np.asarray(sorted(intervals), "<u4")
        self.communication = self.process.communication
        if wanted is not None:
            self.communication = self.communication[np.isin(self.communication["interval"], wanted)]

        def chosen(piece):
            return np.isin(piece["interval"], wanted)

        count = len(counts)
        if wanted is not None:
            count = sum(np.count_nonzero(chosen(piece)) for piece in recording.pieces(counts))
        key, thread, accesses, writes, moved = recording.columns(
            counts, count, None if wanted is None else chosen,
            key=("<u8", lambda piece: self.key_of(piece["address"] >> shift, piece["allocation"])),
            thread=("<i4", lambda piece: touches.signed(piece["thread"])),
            accesses=("<u8", lambda piece: piece["reads"] + piece["writes"]),
            writes=("<u8", lambda piece: piece["writes"]),
            moved=("<u8", lambda piece: piece["bytes_read"] + piece["bytes_written"]))
        order = _order_of(key, thread)
        if order is not None:
            key, thread = key[order], thread[order]
        fresh = np.empty(len(key), bool)
        fresh[:1] = True
        np.not_equal(key[1:], key[:-1], out=fresh[1:])
        new_unit = fresh.copy()
        fresh[1:] |= thread[1:] != thread[:-1]
        rows = np.flatnonzero(fresh)
        self.thread = thread[rows]
        begins = np.flatnonzero(new_unit[rows])
        self.keys = key[rows[begins]]
        self.starts = np.append(begins, len(rows)).astype("<i8")
        del key, thread, fresh, new_unit, begins

        def summed(values):
            values = values if order is None else values[order]
            return values if len(rows) == len(values) else np.add.reduceat(values, rows)

        self.accesses = summed(accesses)
        del accesses
        self.writes = summed(writes)
        del writes
        self.moved = summed(moved)
        del moved
        self._empty_units()
        self.line_use = lines.read(self)

    def key_of(self, page, allocation):
        """One number for a unit: its page and, below, the row of its allocation, 0 for none."""
        row = (self.row_of[allocation] + 1).astype("<u8")
        return (page << np.uint64(self.bits)) | row

    def _empty_units(self):
        units = len(self.keys)
        self.line_use = lines.none()
        self.first_thread = np.full(units, -1, "<i4")
        self.first_site = np.full(units, -1, "<i4")
        self.first_time = np.zeros(units, "<u8")
        self.inherited = np.zeros(units, bool)
        self.node = np.full(units, -1, "<i2")
        self.identity = np.zeros(units, "<u8")
        self.unit_bytes = None

    def read_first(self, inherits=True):
        first = self.process.first
        shift = np.uint64(self.trace.granularity.bit_length() - 1)
        key = recording.columns(first, key=("<u8", lambda piece: self.key_of(
            piece["address"] >> shift, piece["allocation"])))[0]
        order = np.argsort(key, kind="stable")
        once = np.ones(len(key), bool)
        np.not_equal(key[order[1:]], key[order[:-1]], out=once[1:])
        if not once.all():  # the first that places, as in _read_touches
            rows = (key & np.uint64((1 << self.bits) - 1)).astype("<i8") - 1
            private = ~np.isin(np.append(self.kind, 0)[rows], touches.SHARED)
            read = (recording.column(first, "flags") & recording.FIRST_WRITE) == 0
            order = np.lexsort((recording.column(first, "time_ns"), read & private, key))
        key = key[order]
        order, key = order[once], key[once]
        at = np.searchsorted(self.keys, key)
        found = (at < len(self.keys)) & (self.keys[np.minimum(at, len(self.keys) - 1)] == key) \
            if len(self.keys) else np.zeros(len(key), bool)
        at, order = at[found], order[found]
        del key, once, found
        # Columns, not whole records, which would be the most that is in memory at any time.
        self.first_thread[at] = touches.signed(recording.column(first, "thread"))[order]
        self.first_time[at] = recording.column(first, "time_ns")[order]
        self.set_sites(at, *(recording.column(first, name)[order] for name in ("stack_id", "instruction")))
        if inherits:
            self._inherit(first)

    def _identify_shared(self):
        """Gives units of what processes share the number that these have in all of them."""
        if not self.shared_at.any():
            return
        shift, bits = np.uint64(self.trace.granularity.bit_length() - 1), np.uint64(self.bits)
        row = (self.keys & np.uint64((1 << self.bits) - 1)).astype("<i8") - 1
        named = np.flatnonzero(np.append(self.shared_at, 0)[row])
        row = row[named]
        place = self.shared_at[row] + ((self.keys[named] >> bits) << shift) - self.address[row]
        whole = (place & np.uint64(self.trace.granularity - 1)) == 0
        # (No page has such a physical address.)
        self.identity[named[whole]] = (place[whole] >> shift) | np.uint64(1 << 63)

    def set_sites(self, at, stacks, instructions):
        self.first_site[at] = self._sites_of_stacks(stacks)
        alone = stacks == 0  # the instruction is all that is known
        self.first_site[at[alone]] = self.sites_of_instructions(instructions[alone])

    def _inherit(self, first):
        """Gives units that nobody touched first the first touch of their page: where realloc or mremap
        took it from, else in the life before of memory that is used again."""
        shift = np.uint64(self.trace.granularity.bit_length() - 1)
        bits, mask = np.uint64(self.bits), np.uint64((1 << self.bits) - 1)
        lacking = np.flatnonzero(self.first_thread < 0)
        if len(lacking) == 0:
            return  # (what follows sorts all first touches)
        row = (self.keys[lacking] & mask).astype("<i8") - 1
        page = self.keys[lacking] >> bits
        order = np.lexsort((first["time_ns"], first["address"] >> shift))
        pages, times = (first["address"] >> shift)[order], first["time_ns"][order]
        low, high = np.searchsorted(pages, page), np.searchsorted(pages, page, "right")
        chosen = np.where(row < 0, low, high - 1)  # of free memory the first, else the last before its end
        end = np.append(self.end, 0)[row]
        for late in np.flatnonzero((row >= 0) & (high - low > 1)):
            before = np.searchsorted(times[low[late]:high[late]], end[late], "right")
            chosen[late] = low[late] + max(int(before) - 1, 0)
        known = low < high
        at, records = lacking[known], first[order[chosen[known]]]
        self.first_thread[at] = records["thread"]
        self.first_time[at] = records["time_ns"]
        self.set_sites(at, records["stack_id"], records["instruction"])
        self.inherited[at] = records["time_ns"] < np.append(self.begin, 0)[row[known]]
        self._inherit_moved(lacking, row, page)

    def _inherit_moved(self, lacking, row, page):
        shift, bits = np.uint64(self.trace.granularity.bit_length() - 1), np.uint64(self.bits)
        born = self._born()
        for moved in np.flatnonzero(self.previous).tolist():
            units = np.flatnonzero(row == moved)
            if born[moved] is None or len(units) == 0:
                continue
            address = (page[units] << shift).astype("<i8")
            source = address - int(self.address[moved]) + int(self.previous[moved])
            key = ((np.maximum(source, 0).astype("<u8") >> shift) << bits) | np.uint64(born[moved] + 1)
            at = np.minimum(np.searchsorted(self.keys, key), len(self.keys) - 1)
            found = self.keys[at] == key
            self.first_thread[lacking[units[found]]] = self.first_thread[at[found]]
            self.first_site[lacking[units[found]]] = self.first_site[at[found]]
            self.first_time[lacking[units[found]]] = self.first_time[at[found]]

    def _born(self):
        """By the row of an allocation: the row of the one that it was before realloc or mremap, or None."""
        latest, born = {}, []
        for address, previous in zip(self.address.tolist(), self.previous.tolist()):
            born.append(latest.get(previous))
            latest[address] = len(born) - 1
        return born

    def sites_of_instructions(self, instructions):
        if len(instructions) == 0:
            return np.empty(0, "<i4")
        # Neighbours are mostly of one instruction, and few are left to sort.
        begins = np.flatnonzero(np.append(True, instructions[1:] != instructions[:-1]))
        places, inverse = np.unique(instructions[begins], return_inverse=True)
        begin = len(self.trace.sites)
        self.trace.sites.extend(Site(self.index, (int(place),), (False,)) for place in places)
        return np.repeat((begin + inverse).astype("<i4"), np.diff(begins, append=len(instructions)))

    def _read_touches(self):
        """Units of a first-touch recording, or where the pages of a counts recording really were."""
        found = touches.Touches(self.process, self.trace.granularity)
        rows = touches.alive(self, found.address, found.time)
        key = ((found.address >> np.uint64(self.trace.granularity.bit_length() - 1))
               << np.uint64(self.bits)) | (rows + 1).astype("<u8")
        # A read of private memory maps the page of zeros; the first write places the page. What was
        # discarded before a later touch does not count.
        private = ~np.isin(np.append(self.kind, 0)[rows], touches.SHARED)
        order = np.lexsort((found.time, found.read & private, found.superseded, key))
        key = key[order]
        once = np.ones(len(key), bool)
        once[1:] = key[1:] != key[:-1]
        chosen, key = order[once], key[once]
        if len(self.keys):  # counts tell the units; touches tell their nodes
            at = np.searchsorted(self.keys, key)
            at[at == len(self.keys)] = 0
            known = self.keys[at] == key
            at, chosen = at[known], chosen[known]
        else:
            self.keys = key
            self.starts = np.zeros(len(key) + 1, "<i8")
            self._empty_units()
            at = np.arange(len(key))
            largest = np.maximum(found.bytes[chosen], np.uint64(self.trace.granularity))
            if (largest > self.trace.granularity).any():
                self.unit_bytes = largest
        self.first_thread[at] = found.thread[chosen]
        self.first_time[at] = found.time[chosen]
        self.first_site[at] = self._sites_of_stacks(found.stack[chosen])
        self.node[at] = found.node[chosen]
        self.identity[at] = found.physical[chosen]
        self._follow_moves()

    def _follow_moves(self):
        """Gives pages that were moved with their block (realloc, mremap) their place at the new one."""
        moved = np.flatnonzero(self.previous)
        if self.process.info["mode"] != "first-touch" or len(moved) == 0:
            return
        shift, mask = np.uint64(self.bits), np.uint64((1 << self.bits) - 1)
        born = self._born()
        granularity = self.trace.granularity
        for row in moved.tolist():
            before, offset = born[row], int(self.address[row]) - int(self.previous[row])
            if before is None or offset % granularity:
                continue
            units = np.flatnonzero((self.keys & mask) == np.uint64(before + 1))
            page = (self.keys[units] >> shift).astype("<i8") + offset // granularity
            inside = page * granularity < int(self.address[row]) + int(self.size[row])
            units, key = units[inside], (page[inside].astype("<u8") << shift) | np.uint64(row + 1)
            fresh = ~np.isin(key, self.keys)
            if not fresh.any():
                continue
            keys = np.concatenate([self.keys, key[fresh]])
            order = np.argsort(keys, kind="stable")
            for name in ("first_thread", "first_site", "first_time", "inherited", "node", "identity",
                         "unit_bytes"):
                values = getattr(self, name)
                if values is not None:
                    setattr(self, name, np.concatenate([values, values[units[fresh]]])[order])
            self.keys = keys[order]
            self.starts = np.zeros(len(keys) + 1, "<i8")

    def _read_threads(self):
        records = self.process.threads
        named = (touches.signed(records["thread"]), self.thread, self.first_thread,
                 self.thread_of_allocation, self.line_use["thread"])
        count = max(int(numbers.max(initial=-1)) + 1 for numbers in named)
        self.threads = max(count, 1)
        # No thread, -1, is nobody's access, but may be whoever touched first.
        if self.thread.min(initial=0) < 0 or self.first_thread.min(initial=0) < -1:
            raise recording.Error(f"{self.process.folder} is damaged: it has a thread below 0")
        # Numbers have no gaps but for what is lost: one far beyond all others is none.
        few = 1024
        if self.threads > 1 << 20:
            raise recording.Error(f"{self.process.folder} is damaged: it has thread {count - 1}")
        if self.threads > few:
            seen = np.zeros(count, bool)
            for numbers in named:
                seen[numbers[numbers >= 0]] = True
            if count > few + 4 * int(seen.sum()):
                raise recording.Error(f"{self.process.folder} is damaged: it has thread {count - 1} of {seen.sum()}")
        self.cpu_ns = np.zeros(self.threads, "<u8")
        self.instructions = np.zeros(self.threads, "<u8")
        self.names = [""] * self.threads
        for record in records:
            thread = int(record["thread"])
            if thread < self.threads:
                self.cpu_ns[thread] = max(self.cpu_ns[thread], record["cpu_ns"])
                self.instructions[thread] = max(self.instructions[thread], record["instructions"])
                name = bytes(record["name"]).split(b"\0")[0].decode("utf-8", "replace")
                self.names[thread] = name or self.names[thread]


def _order_of(key, thread):
    """The order by key, then thread; None if they are in that order."""
    if not len(key):
        return None
    bits = int(thread.max()).bit_length()
    if thread.min() < 0 or int(key.max()).bit_length() + bits > 64:
        return np.lexsort((thread, key))
    # One number instead of two: sorting stably is quick where there are sorted stretches, as of each thread.
    both = key << np.uint64(bits)
    both |= thread.view("<u4")
    return None if (both[1:] >= both[:-1]).all() else np.argsort(both, kind="stable")


def _ends_of_life(records, begins):
    """When each allocation ended; the largest number for what lived to the end."""
    forever = np.iinfo("<u8").max
    end = np.full(len(begins), forever, "<u8")
    open_at = {}
    mapped = set()  # addresses of those that a range can end
    row = 0
    columns = (records[name].tolist() for name in ("event", "what", "address", "size", "time_ns"))
    for event, kind, address, size, time in zip(*columns):
        if event == recording.ALLOCATION_BEGAN:
            if address in open_at:
                end[open_at[address]] = time
            open_at[address] = row
            row += 1
            if kind != HEAP:
                mapped.add(address)
        elif event == recording.ALLOCATION_ENDED:
            if address in open_at:
                end[open_at.pop(address)] = time
                mapped.discard(address)
            if size:
                for inside in [one for one in mapped if address <= one < address + size]:
                    end[open_at.pop(inside)] = time
                    mapped.discard(inside)
    return end


def _put_together(trace, parts):
    threads = np.cumsum([0] + [part.threads for part in parts])
    allocations = np.cumsum([0] + [len(part.address) for part in parts])
    rows = np.cumsum([0] + [len(part.thread) for part in parts])
    shift = np.uint64(trace.granularity.bit_length() - 1)

    def joined(name, values, dtype):
        values = list(values)
        one = values[0] if len(values) == 1 else np.concatenate(values)
        setattr(trace, name, one.astype(dtype, copy=False))

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
    joined("starts", [np.zeros(1, "<i8")] + [part.starts[1:] + by for part, by in zip(parts, rows)],
           "<i8")
    joined("thread", (part.thread + by for part, by in zip(parts, threads)), "<i4")
    trace.line_use = lines.joined(parts, threads)
    joined("accesses", (part.accesses for part in parts), "<u8")
    joined("writes", (part.writes for part in parts), "<u8")
    joined("moved_bytes", (part.moved for part in parts), "<u8")
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
        setattr(trace, name, np.add.reduceat(values, rows) if len(rows) else values)
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
