"""Cache lines that threads take from each other: false sharing, and what looks like it.

    found = contention(trace, metrics.per_unit(trace))      # None: units are larger than a line
    found.accesses, found.writers                           # of each unit

Only recordings with units of a line (`warren locality record --granularity 64`) know lines. A line
is contended if several threads access it and one of them writes: with several writers every access
of another than the main user may find the line in another processor's cache, with one writer as many
as it writes. A recording doesn't say which bytes of a line each thread uses, nor when: what threads
use one after the other is told from what they use in turn by its amount only, as a line that one
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
