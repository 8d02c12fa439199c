"""Cache lines that threads take from each other: false sharing, and what looks like it.

    found = contention(trace, metrics.per_unit(trace))      # None: units are larger than a line
    found.accesses, found.writers                           # of each unit

Only recordings with units of a line (`warren locality record --granularity 64`) know lines. A line
is contended if several threads access it and one of them writes: with several writers every access
of another than the main user may find the line in another processor's cache, with one writer as many
as it writes. Which bytes of a line each thread has used a recording says as far as accesses were
looked at (BytesRecord in analyser/recorder/format.hpp): a line is shared falsely if no thread was seen at
bytes that another writes. It doesn't say when: what threads use one after the other is told from what they use in turn by its amount only, as a line that one
initialises and another uses has few contended accesses among many.
"""

import dataclasses

import numpy as np

LARGEST_LINE = 128
# Of a line's accesses, below which it changes hands only now and then.
SMALLEST_SHARE = 0.1


@dataclasses.dataclass
class Contention:
    accesses: np.ndarray  # of each unit, contended ones; 0: the line is not contended
    writers: np.ndarray   # threads that write to it


def contention(trace, units):
    if trace.granularity > LARGEST_LINE:
        return None
    sizes = np.diff(trace.starts)
    unit_of_row = np.repeat(np.arange(trace.units, dtype="<i4"), sizes)
    writing = trace.writes > 0
    writes = np.bincount(unit_of_row, weights=trace.writes, minlength=trace.units)
    by_writers = np.bincount(unit_of_row, weights=np.where(writing, trace.accesses, 0),
                             minlength=trace.units)
    total = units.total.astype(float)
    contended = np.where(units.writers > 1, total - units.most,
                         np.minimum(writes, total - by_writers))
    contended[(units.sharers < 2) | (units.writers < 1) | (contended < SMALLEST_SHARE * total)] = 0
    return Contention(contended, units.writers)


def uses_of(trace, unit):
    """[(thread, bytes read, bytes written, site)] of a line, threads ascending; bytes as a bit each."""
    if trace.line_use is None:
        return []
    low, high = np.searchsorted(trace.line_use["unit"], [unit, unit + 1])
    return [(int(one["thread"]), int(one["read"]), int(one["written"]), int(one["site"]))
            for one in trace.line_use[low:high]]


def is_false(uses):
    """Whether several threads use the line and none of them what another writes."""
    return len(uses) > 1 and any(use[2] for use in uses) and not any(
        one[2] & (other[1] | other[2]) for one in uses for other in uses if one[0] != other[0])


def ranges(mask):
    """`0-7, 16` of a bit for each byte."""
    at = [byte for byte in range(64) if mask >> byte & 1]
    parts, begin = [], 0
    for end in range(1, len(at) + 1):
        if end == len(at) or at[end] != at[end - 1] + 1:
            parts.append(str(at[begin]) if end == begin + 1 else f"{at[begin]}-{at[end - 1]}")
            begin = end
    return ", ".join(parts)


def offset_of(analysis, unit):
    """Bytes from the beginning of the line's structure to the line, where that is one allocation."""
    row = int(analysis.trace.unit_allocation[unit])
    return None if row < 0 else \
        int(analysis.trace.unit_address[unit]) - int(analysis.trace.allocation_address[row])


def bytes_told(analysis, unit, threads=4):
    """Who uses which bytes of a line, by their offsets in its structure, and where in the program."""
    trace, told = analysis.trace, []
    uses = uses_of(trace, unit)
    offset = offset_of(analysis, unit)
    for thread, read, written, site in uses[:threads]:
        place = analysis.first_place(site)[0]
        does = "writes" if written else "reads"
        told.append(f"{trace.thread_label(thread)} {does} {ranges(written or read)}"
                    + (f" ({place})" if place else ""))
    more = f", and {len(uses) - threads} more" if len(uses) > threads else ""
    begin = "bytes" if offset is None else f"bytes from {offset:+d}" if offset else "bytes"
    return f"{begin}: " + "; ".join(told) + more if told else ""


def resolve(analysis, units):
    """Looks up the places in the program of all that uses these lines, at once."""
    sites = {use[3] for unit in units for use in uses_of(analysis.trace, unit)}
    analysis.symbolizer.resolve(sorted(site for site in sites if site >= 0))


def listed(analysis, limit=200):
    """The most contended lines, for the report: each with its structure, offset and bytes by thread."""
    found = contention(analysis.trace, analysis.units)
    if found is None or analysis.trace.line_use is None:
        return []
    lines = np.argsort(-found.accesses, kind="stable")[:limit]
    lines = lines[found.accesses[lines] > 0].tolist()
    resolve(analysis, lines)
    rows = []
    for unit in lines:
        uses = uses_of(analysis.trace, unit)
        rows.append({"structure": analysis.structures[analysis.unit_structure[unit]].name,
                     "address": f"{int(analysis.trace.unit_address[unit]):x}",
                     "offset": offset_of(analysis, unit), "contended": int(found.accesses[unit]),
                     "falsely": is_false(uses),
                     "uses": [{"thread": thread, "read": ranges(read), "written": ranges(written),
                               "place": analysis.first_place(site)[0]}
                              for thread, read, written, site in uses]})
    return rows


def advice_for(analysis, index, lines):
    """(what is wrong, what to do) about the contended lines (units) of one structure."""
    trace, structure = analysis.trace, analysis.structures[index]
    used = int(np.count_nonzero((analysis.unit_structure == index) & analysis.units.used))
    threads = np.unique(np.concatenate(
        [trace.thread[trace.starts[unit]:trace.starts[unit + 1]] for unit in lines[:4096].tolist()]))
    count = f"{len(lines)} of its {used} lines of {trace.granularity} B in use" if used > 1 else \
        f"its line of {trace.granularity} B"
    writers = analysis.units.writers[lines]
    some = str(writers.min()) if writers.min() == writers.max() else f"{writers.min()} to {writers.max()}"
    verb = "are" if len(lines) > 1 else "is"
    cause = f"{count} {verb} written by {some} of {len(threads)} threads that access them"
    looked_at = lines[:4096].tolist()
    falsely = sum(is_false(uses_of(trace, unit)) for unit in looked_at)
    if falsely:
        shared = "falsely: no thread was seen at bytes that another writes"
        cause += f", {shared}" if falsely == len(looked_at) else f", {falsely} of {len(looked_at)} {shared}"
    told = ""
    if looked_at:
        resolve(analysis, looked_at[:1])
        told = bytes_told(analysis, looked_at[0])
    cause += f"; in the busiest {told}" if told else ""
    if structure.kind == "static":
        names = analysis.variables(lines)
        own = ", ".join(f"`{name}`" for name in names[:6]) + (" and others" if len(names) > 6 else "")
        if len(names) > 1 and len(names) > len(lines):
            return cause, f"variables share lines ({own}): give each that a thread writes a line of its " \
                          f"own (alignas({trace.granularity}))"
        if own:
            cause += f" ({own})"
    if 4 * len(lines) <= used and used > 8:
        return cause, "where parts of threads meet in a line, let them begin on one (rows that are a " \
                      f"multiple of {trace.granularity} B, aligned)"
    if trace.granularity * len(lines) < 2 * trace.granularity * len(threads):
        return cause, "let each thread sum up in a variable of its own and store once, or keep a line " \
                      f"per thread (alignas({trace.granularity}))"
    return cause, "give each thread a block of lines instead of elements in turn (schedule(static) " \
                  "without a chunk, blocks that are multiples of a line)"
