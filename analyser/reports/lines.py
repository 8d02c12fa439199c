"""Which bytes of cache lines threads use: the rows of Trace.line_use (trace.py), per unit and thread in
that order. A byte is a bit, the lowest the first; `site` is where the latest was used."""

import numpy as np

from . import recording

USE = np.dtype([("unit", "<i4"), ("thread", "<i4"), ("site", "<i4"), ("read", "<u8"), ("written", "<u8")])


def none():
    return np.empty(0, USE)


def read(part):
    """Of one process (a part of a trace), all intervals together: a line is shared falsely or not,
    whenever."""
    records = part.process.bytes
    if len(records) == 0 or len(part.keys) == 0:
        return none()
    shift = np.uint64(part.trace.granularity.bit_length() - 1)

    def unit(piece):
        key = part.key_of(piece["address"] >> shift, piece["allocation"])
        at = np.minimum(np.searchsorted(part.keys, key), len(part.keys) - 1)
        known = (part.keys[at] == key) & (piece["thread"] < recording.NO_THREAD >> 1)
        return np.where(known, at, -1)

    # A column at a time: copies of whole records take nearly twice the memory.
    units, threads = recording.columns(records, unit=("<i4", unit),
                                       thread=("<u4", lambda piece: piece["thread"]))
    order = np.lexsort((threads, units))
    order = order[np.count_nonzero(units < 0):]
    units, threads = units[order], threads[order]
    fresh = np.ones(len(order), bool)
    fresh[1:] = (np.diff(units) != 0) | (threads[1:] != threads[:-1])
    rows = np.flatnonzero(fresh)
    uses = np.zeros(len(rows), USE)
    uses["unit"], uses["thread"] = units[rows], threads[rows]
    if len(rows):
        uses["site"] = part.sites_of_instructions(recording.column(records, "instruction")[order[rows]])
        for name in ("read", "written"):
            uses[name] = np.bitwise_or.reduceat(recording.column(records, name)[order], rows)
    return uses


def joined(parts, threads):
    """Of several processes; `threads` are the numbers of their first threads. None: of none."""
    if not any(len(part.line_use) for part in parts):
        return None
    units = np.cumsum([0] + [len(part.keys) for part in parts])
    uses = [part.line_use.copy() for part in parts]
    for one, unit, thread in zip(uses, units, threads):
        one["unit"] += unit
        one["thread"] += thread
    return np.concatenate(uses)


def moved(uses, number_of):
    """The uses of units that have got other numbers; -1: they are left out."""
    if uses is None:
        return None
    uses = uses.copy()
    uses["unit"] = number_of[uses["unit"]]
    uses = uses[uses["unit"] >= 0]
    return uses[np.lexsort((uses["thread"], uses["unit"]))]
