"""Touches of pages, which the kernel tells: who placed each page of a process.

    touches = Touches(process, 4096)       # columns, what system calls filled unseen too
    alive(part, addresses, times)          # in which allocation each address was at its time
    read_sampled(part)                     # first touches of a recording of mode sample
"""

import numpy as np

from . import recording

SHARED = [recording.KINDS.index("shared"), recording.KINDS.index("shmem")]


class Touches:
    """Columns of the touches of a process, of what system calls filled unseen too."""

    def __init__(self, process, granularity):
        records = process.touches
        unseen = filled(process, granularity)

        count = len(unseen["address"])
        unseen.update(node=np.full(count, -1), physical=np.zeros(count), read=np.zeros(count, bool),
                      bytes=np.full(count, granularity))
        found = {}
        for name, field, dtype in (
                ("address", "address", "<u8"), ("time", "time_ns", "<u8"), ("thread", "thread", "<i4"),
                ("stack", "stack_id", "<u4"), ("node", "node", "<i2"), ("physical", "physical", "<u8"),
                ("bytes", "bytes", "<u8")):
            found[name] = (dtype, lambda piece, field=field, dtype=dtype: piece[field].astype(dtype),
                           unseen[field])
        found["read"] = ("?", lambda piece: (piece["flags"] & recording.TOUCH_READ) != 0, unseen["read"])
        values = recording.columns(records, **{name: one[:2] for name, one in found.items()})
        for name, seen in zip(found, values):
            dtype, _, more = found[name]
            setattr(self, name, np.concatenate([seen, np.asarray(more).astype(dtype)]) if count else seen)
        self.superseded = np.zeros(len(self.address), bool)
        discarded = process.allocations[process.allocations["event"] == recording.ALLOCATION_DISCARDED]
        if len(discarded):
            order = np.argsort(self.address, kind="stable")
            places, times = self.address[order], self.time[order]
            low = np.searchsorted(places, discarded["address"])
            high = np.searchsorted(places, discarded["address"] + discarded["size"])
            for begin, end, time in zip(low.tolist(), high.tolist(), discarded["time_ns"].tolist()):
                before = order[begin:end][times[begin:end] < time]
                self.superseded[before] = True


# Pages that system calls filled, all together, and small ones in large ones: more are left out.
MAX_FILLED, MAX_WITHIN = 1 << 24, 1 << 24


def filled(process, granularity):
    """Touches that nobody saw: a page for each that a system call filled."""
    calls = process.allocations[process.allocations["event"] == recording.ALLOCATION_FILLED]
    calls = calls[calls["size"] > 0]
    first = calls["address"] // granularity
    pages = ((calls["address"] + calls["size"] - 1) // granularity - first + 1).astype("<i8")
    calls = calls[np.cumsum(pages, dtype=float) <= MAX_FILLED]
    first, pages = first[:len(calls)], pages[:len(calls)]
    within = np.arange(pages.sum()) - np.repeat(np.cumsum(pages) - pages, pages)
    found = {name: np.repeat(calls[name], pages) for name in ("time_ns", "thread", "stack_id")}
    found["address"] = (np.repeat(first, pages) + within.astype("<u8")) * np.uint64(granularity)
    return found


def signed(threads):
    """no_thread becomes -1."""
    return threads.astype("<u4").view("<i4")


def alive(part, addresses, times):
    """The row of the allocation that each address was in at its time, -1 for none: the one that
    began last."""
    rows = np.full(len(addresses), -1, "<i4")
    if len(part.address) == 0 or len(addresses) == 0:
        return rows
    order = np.argsort(addresses, kind="stable")
    place, time = addresses[order], times[order]
    sorted_rows = np.full(len(order), -1, "<i4")
    lows = np.searchsorted(place, part.address)
    highs = np.searchsorted(place, part.address + part.size)
    # Large pages are touched as a whole: what begins in one belongs to it.
    for row in np.lexsort((np.arange(len(part.begin)), part.begin)):
        low, high = lows[row], highs[row]
        if low < high:
            alive = (time[low:high] >= part.begin[row]) & (time[low:high] < part.end[row])
            sorted_rows[low:high][alive] = row
    rows[order] = sorted_rows
    return rows


def read_sampled(part):
    """First touches of a sample recording: what the kernel's faults tell; where there are none, what
    bursts have seen of pages that were not there before."""
    first = part.process.first
    seen = recording.masked(first, lambda piece: (piece["flags"] & recording.FIRST_LATE) == 0)
    part.process.first = first = first if seen.all() else recording.without(first, seen)
    if len(part.process.touches) == 0:
        if len(first):
            part.read_first(inherits=False)
        return
    if len(part.process.counts) == 0:  # it ended before any were saved: the touches are what there is
        part.read_touches()
        return
    _read_faults(part)
    # Where in the program: what bursts know of the same thread.
    shift = np.uint64(part.trace.granularity.bit_length() - 1)
    key = part.key_of(first["address"] >> shift, first["allocation"])
    at = np.searchsorted(part.keys, key)
    at[at == len(part.keys)] = 0
    known = (part.keys[at] == key) if len(part.keys) else np.zeros(len(key), bool)
    known[known] = part.first_thread[at[known]] == first["thread"][known]
    part.set_sites(at[known], first["stack_id"][known], first["instruction"][known])


def _read_faults(part):
    """The first thread of each unit, by the faults of its pages."""
    touches = Touches(part.process, part.trace.granularity)
    unit_bits = part.trace.granularity.bit_length() - 1
    shift = max(unit_bits, part.process.info["page_size"].bit_length() - 1)
    pages = np.maximum((touches.bytes >> np.uint64(shift)).astype("<i8"), 1)
    many = (pages > 1) & (np.cumsum(pages) > MAX_WITHIN)
    if many.any():
        pages[many] = 1
        part.trace.warnings.append(f"{part.process.folder}: of {np.count_nonzero(many):,} large pages first "
                                   "touches are known of their beginning only: there are too many")
    within = np.arange(pages.sum()) - np.repeat(np.cumsum(pages) - pages, pages)
    size = np.maximum(touches.bytes, np.uint64(1 << shift))
    page = np.repeat(touches.address // size * size >> np.uint64(shift), pages) + within.astype("<u8")
    time, thread = np.repeat(touches.time, pages), np.repeat(touches.thread, pages)
    rows = np.repeat(alive(part, touches.address, touches.time), pages)
    private = ~np.isin(np.append(part.kind, 0)[rows], SHARED)
    reads, gone = np.repeat(touches.read, pages) & private, np.repeat(touches.superseded, pages)
    bits, mask = np.uint64(part.bits), np.uint64((1 << part.bits) - 1)
    unit_page = (part.keys >> bits) >> np.uint64(shift - unit_bits)
    unit_row = (part.keys & mask).astype("<i8") - 1
    # What placed the page in this life of its memory; else in one before it.
    order = np.lexsort((time, reads, gone, rows, page))
    key = (page << bits) | (rows + 1).astype("<u8")
    wanted = (unit_page << bits) | (unit_row + 1).astype("<u8")
    at = np.searchsorted(key[order], wanted)
    found = at < len(key)
    found[found] = key[order][at[found]] == wanted[found]
    part.first_thread[found] = thread[order][at[found]]
    part.first_time[found] = time[order][at[found]]
    lacking = np.flatnonzero(~found)
    order = np.lexsort((time, page))
    low, high = np.searchsorted(page[order], unit_page[lacking]), \
        np.searchsorted(page[order], unit_page[lacking], "right")
    end = np.where(unit_row[lacking] >= 0, np.append(part.end, 0)[unit_row[lacking]], 0)
    for one in np.flatnonzero(low < high):
        among = order[low[one]:high[one]]
        before = max(int(np.searchsorted(time[among], end[one], "right")) - 1, 0)
        part.first_thread[lacking[one]] = thread[among[before]]
        part.first_time[lacking[one]] = time[among[before]]
        part.inherited[lacking[one]] = True
