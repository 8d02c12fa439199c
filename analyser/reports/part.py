"""What one process's recording says, joined, with its own numbers of threads and allocations: units, who
touched them first and where, who accesses them. trace.py puts the parts of a recording together.

A unit has one number, its key: its page and, below, the row of its allocation, 0 for none. Keys ascend.
"""

import dataclasses

import numpy as np

from . import lines, recording, touches

HEAP = recording.KINDS.index("heap")


@dataclasses.dataclass
class Site:
    """A place in a program's code: addresses, innermost first, and whether each is a return address."""
    process: int
    addresses: tuple
    returns: tuple


class Part:
    """One process's part of the trace, whose sites it adds to."""

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
            self.read_touches()
        self._identify_shared()
        self._read_threads()
        # What has been read takes memory that the analysis needs.
        for name in ("counts", "first", "touches"):
            setattr(process, name, np.empty(0, getattr(process, name).dtype))

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
        def columns(**made):
            return recording.columns(counts, count, None if wanted is None else chosen, **made)

        key, thread = columns(
            key=("<u8", lambda piece: self.key_of(piece["address"] >> shift, piece["allocation"])),
            thread=("<i4", lambda piece: touches.signed(piece["thread"])))
        order = _order_of(key, thread)
        if order is not None:
            key, thread = key[order], thread[order]
        fresh = np.empty(len(key), bool)
        fresh[:1] = True
        np.not_equal(key[1:], key[:-1], out=fresh[1:])
        new_unit = fresh.copy()
        fresh[1:] |= thread[1:] != thread[:-1]
        if fresh.all():  # a row each, as is usual
            rows, begins, self.thread = None, np.flatnonzero(new_unit), thread
            self.keys = key[begins]
        else:
            rows = np.flatnonzero(fresh)
            begins = np.flatnonzero(new_unit[rows])
            self.thread, self.keys = thread[rows], key[rows[begins]]
        self.starts = np.append(begins, len(self.thread)).astype("<i8", copy=False)
        del key, thread, fresh, new_unit, begins

        # One after the other: the file is read again, as all of them at once, in its order and then in
        # that of units, would be the most that is in memory at any time.
        def summed(make):
            values, = columns(values=("<u8", make))
            values = values if order is None else values[order]
            return narrow(values if rows is None else np.add.reduceat(values, rows))

        self.accesses = summed(lambda piece: piece["reads"] + piece["writes"])
        self.writes = summed(lambda piece: piece["writes"])
        self.moved = summed(lambda piece: piece["bytes_read"] + piece["bytes_written"])
        del order, rows
        self._empty_units()
        self.line_use = lines.read(self)

    def key_of(self, page, allocation):
        """One number for a unit: its page and, below, the row of its allocation, 0 for none."""
        row = (self.row_of[allocation] + 1).astype("<u8")
        return (page << np.uint64(self.bits)) | row

    def _make_units(self, keys):
        """Units without accesses."""
        self.keys = keys
        self.starts = np.zeros(len(keys) + 1, "<i8")
        self._empty_units()

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
        ascending = key[order]
        once = np.ones(len(key), bool)
        np.not_equal(ascending[1:], ascending[:-1], out=once[1:])
        if len(self.process.counts) == 0:  # they are lost: the first touches are what there is
            self._make_units(ascending[once])
        del ascending
        if not once.all():  # the first that places, as in read_touches
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
            return
        row = (self.keys[lacking] & mask).astype("<i8") - 1
        page = self.keys[lacking] >> bits  # (ascending, as the keys are)

        def is_of_lacking(piece):
            wanted = piece["address"] >> shift
            return page[np.minimum(np.searchsorted(page, wanted), len(page) - 1)] == wanted

        among = np.flatnonzero(recording.masked(first, is_of_lacking))
        pages, times = recording.column(first, "address")[among] >> shift, recording.column(first, "time_ns")[among]
        order = np.lexsort((times, pages))
        pages, times, order = pages[order], times[order], among[order]
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

    def read_touches(self):
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
            self._make_units(key)
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


def narrow(values):
    """The same numbers in half the memory, where they are small enough."""
    return values.astype("<u4") if not len(values) or values.max() < 1 << 32 else values


def _order_of(key, thread):
    """The order by key, then thread; None if they are in that order."""
    if not len(key):
        return None
    bits = int(thread.max()).bit_length()
    narrow = "<u4" if len(key) < 1 << 32 else "<i8"
    if thread.min() < 0 or int(key.max()).bit_length() + bits > 64:
        return np.lexsort((thread, key)).astype(narrow)
    # One number instead of two: sorting stably is quick where there are sorted stretches, as of each thread.
    both = key << np.uint64(bits)
    both |= thread.view("<u4")
    return None if (both[1:] >= both[:-1]).all() else np.argsort(both, kind="stable").astype(narrow)


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
