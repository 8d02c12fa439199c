"""What to change in a program, with the gain that each change would bring.

    for change in advise(analysis):
        print(change.text, change.locality_gain, change.wrong_gain)

A gain is what the figures of the whole program become when the units of one structure are placed
otherwise, computed by the same functions as the figures themselves (metrics.py); `after` is what
they are when all changes up to this one are made.
"""

import dataclasses

import numpy as np

from . import metrics, sharing, structures
from .trace import ROWS

# Changes that gain less of the program's locality, or of its accesses that are contended, have one line
# together.
SMALLEST_GAIN = 0.001
MINOR_NAMES = 3  # of structures, in that line
# Where the thread with the most accesses has less than this share of them, no placement near one
# thread helps: spreading the pages evens the load of the memories.
SPREAD_BELOW = 0.5


@dataclasses.dataclass
class Change:
    structure: int           # index, -1: the program as a whole
    kind: str                # "first touch", "interleave", "ranks", "sharing" or "minor"
    text: str                # what to do
    cause: str               # what is wrong now
    locality_gain: float = None   # of the program's locality, 0 to 1; None: not known
    wrong_gain: float = None      # of the share of wrong first touches
    units: int = 0                # that would be placed otherwise
    remote: int = 0               # accesses that would be local, or that would not be contended
    locality_after: float = None  # with this and all changes before it
    wrong_after: float = None


def _thread_list(trace, threads):
    """`1-7`, or labels where there are several processes."""
    if len(trace.process_names) > 1:
        labels = [trace.thread_label(thread) for thread in threads]
        return ", ".join(labels[:6]) + (f" and {len(labels) - 6} more" if len(labels) > 6 else "")
    numbers = sorted(int(trace.thread_number[thread]) for thread in threads)
    parts, begin = [], 0
    for end in range(1, len(numbers) + 1):
        if end == len(numbers) or numbers[end] != numbers[end - 1] + 1:
            first, last = numbers[begin], numbers[end - 1]
            parts.append(str(first) if first == last else f"{first}-{last}")
            begin = end
    return ", ".join(parts)


def _share(value):
    return f"{100 * value:.1f} %"


def advise(analysis, limit=12):
    if not analysis.trace.has_counts:
        return _from_first_touches(analysis, limit)
    if analysis.trace.granularity <= sharing.LARGEST_LINE:
        return _from_lines(analysis, limit)  # memory is placed by pages
    return _from_counts(analysis, limit)


def _from_lines(analysis, limit):
    """Of lines that threads take from each other; structures with most such accesses first."""
    found = sharing.contention(analysis.trace, analysis.units)
    contended = np.bincount(analysis.unit_structure, weights=found.accesses,
                            minlength=len(analysis.structures))
    changes, minor = [], []
    for index in np.argsort(-contended, kind="stable").tolist():
        if not contended[index]:
            break
        if contended[index] < SMALLEST_GAIN * max(analysis.program.accesses, 1) or len(changes) == limit:
            minor.append(index)
            continue
        lines = np.flatnonzero((analysis.unit_structure == index) & (found.accesses > 0))
        lines = lines[np.argsort(-found.accesses[lines], kind="stable")]
        cause, text = sharing.advice_for(analysis, index, lines)
        cause = f"{_share(contended[index] / analysis.program.accesses)} of all accesses may wait for " \
                f"another thread's cache: {cause}"
        changes.append(Change(index, "sharing", text, cause, None, None, len(lines),
                              int(contended[index]), None, None))
    if minor:
        shares = contended[minor] / analysis.program.accesses
        lines = np.isin(analysis.unit_structure, minor) & (found.accesses > 0)
        text = _minor_text(analysis, minor, changes, f"{_minor_gain(shares, '%')} of all accesses contended each, "
                           f"{_share(shares.sum())} together")
        changes.append(Change(-1, "minor", text, "", units=int(np.count_nonzero(lines)),
                              remote=int(contended[minor].sum())))
    return changes


def _minor_text(analysis, minor, changes, gain):
    """One line, whose end may be cut off."""
    names = ", ".join(analysis.structures[index].name for index in minor[:MINOR_NAMES])
    if len(minor) > MINOR_NAMES:
        names += f" and {len(minor) - MINOR_NAMES} more"
    return f"{len(minor)} {'other ' if changes else ''}structure{'s' if len(minor) > 1 else ''}, {gain}: {names}"


def _minor_gain(gains, unit):
    most = max(gains)
    if most < SMALLEST_GAIN:
        return f"less than {100 * SMALLEST_GAIN:.1f} {unit}"
    return f"up to {100 * most:.1f} {unit}"  # they come after the limit of changes


def _from_counts(analysis, limit):
    trace, units = analysis.trace, analysis.units
    wrong_units = units.wrong
    gains, wrong = np.zeros((2, len(analysis.structures)))
    for begin in range(0, trace.units, ROWS):
        of = slice(begin, begin + ROWS)
        structure, to_mend = analysis.unit_structure[of], wrong_units[of]
        gains += np.bincount(structure, weights=(units.most[of] - units.by_first[of]) * to_mend,
                             minlength=len(gains))
        wrong += np.bincount(structure, weights=to_mend, minlength=len(wrong))
    order = np.lexsort((wrong, gains))[::-1]
    program = analysis.program
    if not program.accesses:
        return []
    # The figures if all were changed, structure by structure: the program's after some of the changes
    # are those of the changed structures and of the others together.
    placed = np.where(wrong_units, units.best_thread, trace.first_thread)
    changed = metrics.sums(metrics.with_first_threads(trace, units, placed), analysis.unit_bytes,
                           analysis.unit_structure, len(analysis.structures))
    figures = analysis.sums.copy()
    changes, minor, before = [], [], program
    for index in order.tolist():
        if not wrong[index]:
            break
        if analysis.structures[index].name == structures.RECORDER:
            continue
        if gains[index] < SMALLEST_GAIN * program.accesses or len(changes) == limit:
            minor.append(index)
            continue
        members = (analysis.unit_structure == index) & wrong_units
        figures[:, index] = changed[:, index]
        after = metrics.summary_of(figures.sum(axis=1))
        changes.append(_change(analysis, index, members, before, after))
        before = after
    if changes and _threads_of_processes_share(analysis):
        changes.append(_as_ranks(analysis, program))
    if minor:
        figures[:, minor] = changed[:, minor]
        after = metrics.summary_of(figures.sum(axis=1))
        gained = gains[minor] / program.accesses
        text = _minor_text(analysis, minor, changes, f"{_minor_gain(gained, 'points')} of locality each, "
                           f"{100 * gained.sum():.1f} points together")
        changes.append(_gains(Change(-1, "minor", text, "", units=int(wrong[minor].sum())), before, after))
    return changes


def _gains(change, before, after):
    """The change with what it makes of the program's figures."""
    change.locality_gain = (after.locality or 0) - (before.locality or 0)
    change.wrong_gain = (before.wrong - after.wrong) / before.used
    change.remote = before.remote - after.remote
    change.locality_after, change.wrong_after = after.locality, after.wrong / after.used
    return change


def _change(analysis, index, members, before, after):
    trace, structure = analysis.trace, analysis.structures[index]
    summary = analysis.of_structure[index]
    toucher, count = np.unique(trace.first_thread[members], return_counts=True)
    main = toucher[np.argsort(count)[::-1]]
    users = np.unique(analysis.units.best_thread[members])
    places = [site for site, _ in analysis.first_sites(index)]
    place = analysis.first_place(places[0])[0] if places else "unknown"
    share = len(np.flatnonzero(members)) / analysis.program.used
    by_whom = f"thread {trace.thread_label(main[0])[1:]}" if len(trace.process_names) == 1 else \
        trace.thread_label(main[0])
    if len(main) > 1:
        by_whom += f" and {len(main) - 1} more"
    cause = (f"{_share(share)} of all pages in use are its own and touched first by {by_whom} "
             f"({place}), but used most by {_thread_list(trace, users)}")
    exclusivity = summary.exclusivity or 0
    kind = "first touch"
    if structure.kind == "other":
        text = ("let the threads that use these pages write to them first; which structures they are is "
                f"not known ({structure.reason})")
    elif exclusivity < SPREAD_BELOW and (summary.sharers or 0) > 2:
        kind = "interleave"
        text = ("no thread has most of its accesses: spread its pages over the memories "
                "(interleave), or give each thread a part of its own")
    elif structure.kind == "static":
        text = "write to it first in the parallel loop that uses it, before anything else does"
    elif 2 * np.count_nonzero(trace.inherited[members]) >= np.count_nonzero(members):
        text = ("its memory was placed by what had it before: allocate it once, keep it, and initialise "
                "it in parallel, with the division among threads of the loops that use it")
    else:
        text = "initialise it in parallel, with the division among threads of the loops that use it"
        loop = _parallel_place(analysis, users)
        if loop:
            text += f" (as {loop[1]} is at {loop[0]})"
        if structure.file.endswith((".cpp", ".cc", ".cxx", ".C", ".hpp", ".h", ".hxx")):
            text += ", or allocate it with warren::FirstTouchAllocator"
    return _gains(Change(index, kind, text, cause, units=int(np.count_nonzero(members))), before, after)


def _parallel_place(analysis, users):
    """(place, structure) where these threads touch something first, each its part; None: nowhere."""
    trace = analysis.trace
    for _, site, count in analysis.parallel_sites:
        place, _, _, line = analysis.first_place(site)
        if 2 * count <= len(users) or not line:
            continue
        units = np.bincount(analysis.unit_structure[trace.first_site == site], minlength=len(analysis.structures))
        for index in np.argsort(-units, kind="stable").tolist():
            one = analysis.structures[index]
            if units[index] and one.named and one.kind not in ("stack", "other"):  # those nobody initialises
                return place, one.name
    return None


def _threads_of_processes_share(analysis):
    """Whether any process has several working threads, which ranks could be."""
    worker = analysis.balance.worker
    counts = np.bincount(analysis.trace.thread_process[worker], minlength=1)
    return counts.max(initial=0) > 1


def _as_ranks(analysis, program):
    gain = 0.0 if program.locality is None else program.exclusivity - program.locality
    return Change(-1, "ranks", "run an MPI rank instead of each thread (mpiexec --ranks threads): "
                  "each then places its own pages; at best this", "threads share what one of them "
                  "has touched", gain, program.wrong / program.used,
                  program.wrong, int(gain * program.accesses),
                  program.exclusivity, 0.0)


def _workers(analysis):
    """Without counts: the threads that work, as far as that is known. Else, as of a recorder that was
    killed before it read any processor times, all of them."""
    touches = analysis.first_touches()[:, :-1]
    if not analysis.trace.cpu_ns.any() and not analysis.trace.instructions.any():
        return np.arange(analysis.trace.threads), False
    # The processor time of threads that ran for a moment only may not be known: they have touched.
    return np.flatnonzero(analysis.balance.worker | (touches.sum(axis=0) > 0.01 * max(touches.sum(), 1))), True


def nothing(analysis):
    """Why there is nothing to advise."""
    if analysis.trace.has_counts:
        return f"Nothing that would bring {100 * SMALLEST_GAIN:.1f} points."
    workers, are_known = _workers(analysis)
    several = np.bincount(analysis.trace.thread_process[workers], minlength=1).max(initial=0) > 1
    if not several:
        told = f"No process has several threads{' that work' if are_known else ''}: what its one thread touches " \
               "first is its own."
    else:
        told = f"Of several threads{' that work' if are_known else ''} none alone has touched a structure first that " \
               "has a name and a hundredth of all pages; memory without a name isn't judged."
    return f"{told} Accesses are not known (record with --mode counts)."


def _from_first_touches(analysis, limit):
    """Without counts: structures that one thread has placed, where several work."""
    trace = analysis.trace
    touches = analysis.first_touches()[:, :-1]
    workers, are_known = _workers(analysis)
    sizes = touches.sum(axis=1)
    changes = []
    for index in np.argsort(sizes)[::-1].tolist():
        structure = analysis.structures[index]
        if len(changes) == limit or sizes[index] < max(16, 0.01 * trace.units):
            break
        if structure.kind in ("stack", "other") or not structure.named:
            continue
        for process in np.unique(trace.thread_process[touches[index] > 0]).tolist():
            own = workers[trace.thread_process[workers] == process]
            there = np.where(trace.thread_process == process, touches[index], 0)
            if len(own) > 1 and there.max() > 0.9 * there.sum():
                thread = int(there.argmax())
                place = analysis.first_place(analysis.first_sites(index)[0][0])[0]
                changes.append(Change(
                    index, "first touch", "if all threads use it, initialise it in parallel, with the "
                    "loop's own division among threads (record with --mode counts to know)",
                    f"{_share(there.max() / there.sum())} of its {int(there.sum())} pages were touched "
                    f"first by thread {trace.thread_label(thread).lstrip('T')} ({place}), one of "
                    + (f"{len(own)} that work" if are_known else f"{len(own)} threads, whose processor times are not "
                       "known: the recorder was stopped before it read them"), None, None, int(there.max()), 0, None, None))
                break
    return changes
