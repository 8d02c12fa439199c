"""The summary of an analysis for a terminal: as wide as that is, with colours where it has them."""

import os
import re
import shutil

import numpy as np

from . import advice, damage

# Of threads, and of damaged files, in the summary.
PAIRS, DAMAGED = 6, 32
BOLD, DIM, RED, YELLOW, GREEN, CYAN = "1", "2", "31", "33", "32", "36"


class Page:
    """Lines for a terminal of some width."""

    def __init__(self, stream, color="auto", width=None):
        self.color = color == "always" or (color == "auto" and stream.isatty()
                                           and "NO_COLOR" not in os.environ)
        self.width = max(width or (shutil.get_terminal_size((100, 24)).columns), 40)
        self.lines = []

    def paint(self, text, *codes):
        return f"\033[{';'.join(codes)}m{text}\033[0m" if self.color and codes else text

    def line(self, text=""):
        self.lines.append(text)

    def heading(self, text):
        self.line()
        self.line(self.paint(text, BOLD))

    def wrapped(self, text, indent=2, codes=()):
        words, line = plain(" ".join(text.split())).split(" "), " " * indent
        for word in words:
            if len(line) + len(word) + 1 > self.width and line.strip():
                self.line(self.paint(line, *codes))
                line = " " * indent
            line += word if not line.strip() else " " + word
        if line.strip():
            self.line(self.paint(line, *codes))

    def text(self):
        return "\n".join(self.lines) + "\n"


def percent(share, digits=1):
    return "-" if share is None else f"{100 * share:.{digits}f} %"


def size(count):
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return f"{count:.0f} {unit}" if unit == "B" or count >= 100 else f"{count:.1f} {unit}"
        count /= 1024
    return ""


def number(count):
    if count is None:
        return "-"
    for unit, factor in (("", 1), (" k", 1e3), (" M", 1e6), (" G", 1e9), (" T", 1e12)):
        if count < 1000 * factor or unit == " T":
            return f"{count / factor:.{0 if factor == 1 or count >= 100 * factor else 1}f}{unit}"
    return ""


def plain(text):
    """Without what a terminal would obey: names come from programs."""
    return re.sub(r"[\x00-\x1f\x7f-\x9f]", "?", text)


def fitted(text, width):
    text = plain(text)
    return text if len(text) <= width else text[:max(width - 1, 0)] + "…"


def _quality(share, good=0.8, fair=0.5):
    if share is None:
        return ()
    return (GREEN,) if share >= good else (YELLOW,) if share >= fair else (RED,)


def table(page, headings, rows, flexible, codes=None):
    """Columns as wide as they need, the flexible one (an index) takes what is left; the columns at the
    right go when there is no room for 12 letters of it. codes(row, column) colours a cell."""
    columns = len(headings)
    while True:
        widths = [max([len(headings[c])] + [len(row[c]) for row in rows]) for c in range(columns)]
        fixed = sum(w for c, w in enumerate(widths) if c != flexible) + 2 * columns
        if page.width - fixed >= 12 or columns <= flexible + 2:
            break
        columns -= 1
    widths[flexible] = max(min(widths[flexible], page.width - fixed), 8)

    def cells(row, painter):
        parts = []
        for column in range(columns):
            text = fitted(row[column], widths[column])
            left = column == flexible or not row[column][:1].isdigit() and column < 2
            text = text.ljust(widths[column]) if left else text.rjust(widths[column])
            parts.append(painter(text, column))
        return "  " + "  ".join(parts).rstrip()

    page.line(cells(headings, lambda text, column: page.paint(text, DIM)))
    for index, row in enumerate(rows):
        page.line(cells(row, lambda text, column: page.paint(
            text, *(codes(index, column) if codes else ()))))


def summary(analysis, changes, page, structures=15):
    trace, program, balance = analysis.trace, analysis.program, analysis.balance
    processes = len(trace.process_names)
    command = next((process.info.get("command") for process in trace.processes
                    if process is not None and process.info.get("command")), None)
    if command:
        text = " ".join(command) if isinstance(command, list) else str(command)
        page.line(page.paint(fitted(text, page.width), BOLD))
    page.line(fitted(f"{trace.mode}, {processes} process{'es' if processes > 1 else ''}, "
                     f"{trace.threads} threads, {number(program.units)} units of "
                     f"{size(trace.granularity)}, {size(program.bytes)}", page.width))
    page.heading("Program")
    figures = []
    if trace.has_counts:
        figures += [("locality", percent(program.locality), "accesses by the thread of the first touch",
                     _quality(program.locality)),
                    ("first touch correct", percent(program.correctness),
                     "who touched most units first is not known" if program.correctness is None else
                     f"{number(program.wrong)} units touched first by another than their main user",
                     _quality(program.correctness, 0.95, 0.8)),
                    ("exclusivity", percent(program.exclusivity),
                     "what locality could be, each unit near its main user", ()),
                    ("shared", percent(program.shared),
                     f"of units are accessed by several threads, {program.sharers or 0:.1f} on average",
                     ())]
    if balance.imbalance is not None:
        left_out = len(balance.worker) - int(balance.worker.sum())
        figures.append(("load imbalance", percent(balance.imbalance),
                        f"of {balance.kind}, variance {balance.variance:.1e}, "
                        f"{int(balance.worker.sum())} threads" +
                        (f" ({left_out} helpers left out)" if left_out else ""), ()))
    for name, value, meaning, codes in figures:
        page.line(f"  {name:<20}{page.paint(f'{value:>8}', BOLD, *codes)}  "
                  + page.paint(fitted(meaning, max(page.width - 32, 0)), DIM))
    _structures(analysis, page, structures)
    _communication(analysis.trace, page)
    _advice(analysis, changes, page)
    _damage(analysis.damage, "the report is of what is whole", page)
    if analysis.warnings:
        page.heading("Note")
        for warning in analysis.warnings[:8]:
            page.wrapped(warning, codes=(YELLOW,))
        if len(analysis.warnings) > 8:
            page.wrapped(f"and {len(analysis.warnings) - 8} more")


def _damage(entries, heading, page):
    if not entries:
        return
    page.heading(f"Damaged: {heading}")
    for one in entries[:DAMAGED]:
        page.wrapped(str(one), codes=(RED,))
    if len(entries) > DAMAGED:
        page.wrapped(f"and {len(entries) - DAMAGED} more (--json has all)")


def _structures(analysis, page, limit):
    order = analysis.ranking()
    if not order:
        return
    page.heading("Structures")
    counts = analysis.trace.has_counts
    touches = analysis.first_touches()
    rows = []
    for index in order[:limit]:
        one, figures = analysis.structures[index], analysis.of_structure[index]
        toucher = int(touches[index, :-1].argmax()) if touches[index, :-1].any() else -1
        share = touches[index].max() / max(touches[index].sum(), 1)
        first = f"{analysis.trace.thread_label(toucher)} {percent(share, 0)}"
        row = [one.name, size(figures.bytes)]
        if counts:
            row += [percent(figures.locality), percent(figures.correctness), number(figures.remote)]
        row += [first, one.location]
        rows.append(row)
    headings = ["name", "size"] + (["locality", "correct", "remote"] if counts else []) + \
        ["first touch", "allocated"]

    def codes(index, column):
        figures = analysis.of_structure[order[index]]
        if counts and column == 2:
            return _quality(figures.locality)
        if counts and column == 3:
            return _quality(figures.correctness, 0.95, 0.8)
        return ()

    table(page, headings, rows, 0, codes)
    if len(order) > limit:
        page.line(f"  and {len(order) - limit} more (--structures N)")


def _communication(trace, page):
    """The pairs of threads that hand most on, where that was recorded."""
    matrix = trace.communication
    if matrix is None or not matrix.any():
        return
    page.heading("Threads that use what others wrote")
    pairs = np.argsort(-matrix, axis=None, kind="stable")[:PAIRS]
    told = [f"{trace.thread_label(writer)} to {trace.thread_label(user)} {size(matrix[writer, user])}"
            for writer, user in zip(*np.unravel_index(pairs, matrix.shape)) if matrix[writer, user]]
    page.wrapped(f"{size(matrix.sum())} in all; " + ", ".join(told))


def _advice(analysis, changes, page):
    page.heading("What to change")
    if not changes:
        page.wrapped(advice.nothing(analysis))
    place = 0
    for change in changes:
        if change.kind == "minor":
            page.line(f"     {fitted(change.text, page.width - 5)}")
            continue
        place += 1
        if change.structure < 0:
            title = "ranks instead of threads"
        else:
            one = analysis.structures[change.structure]
            title = f"{one.name}, {one.location}" if one.location else one.name
        gain = ""
        if change.kind == "sharing":
            gain = f"{number(change.remote)} contended accesses"
        if change.locality_gain is not None:
            gain = (f"locality {100 * change.locality_gain:+.1f} points, wrong first touches "
                    f"{-100 * change.wrong_gain:+.1f} points")
        title = fitted(title, page.width - 5)
        if len(title) + len(gain) + 7 <= page.width:
            page.line(f"  {place}. {page.paint(title, BOLD)}  {page.paint(gain, GREEN)}")
        else:
            page.line(f"  {place}. {page.paint(title, BOLD)}")
            page.wrapped(gain, 5, (GREEN,))
        page.wrapped(f"{change.cause}: {change.text}.", 5)
        if change.structure >= 0 and change.locality_after is not None:
            page.wrapped(f"then locality {percent(change.locality_after)}, wrong "
                         f"{percent(change.wrong_after)}", 5, (DIM,))


def what_if(machine, placement, results, page):
    page.heading(f"On {machine.name}, threads {placement}")
    page.wrapped(f"{len(machine.nodes)} nodes, {len(machine.processors)} processors; latencies and "
                 f"bandwidths: {machine.origin}; pages are placed one by one but where it says huge", codes=(DIM,))
    rows = [[one.policy, percent(one.local_share), f"{one.mean_latency_ns:.0f} ns",
             f"{one.latency_cost_s:.3g} s", f"{one.bandwidth_cost_s:.3g} s",
             percent(one.imbalance, 0)] for one in results]
    table(page, ["pages", "local", "mean latency", "latency cost", "bandwidth cost", "node imbalance"],
          rows, 0)
    for one in results:
        total = one.traffic.sum() or 1
        page.line(page.paint(f"  {one.policy}: accesses from processors (rows) to nodes (columns)", DIM))
        for index, row in enumerate(one.traffic):
            cells = "".join(f"{100 * value / total:7.1f}" for value in row)
            page.line(fitted(f"  {_ranges(machine.localities[index]):>10} {cells} %", page.width))


def _ranges(members):
    members = sorted(members)
    if members and members[-1] - members[0] + 1 == len(members):
        return f"{members[0]}-{members[-1]}"
    return f"{members[0]},…" if members else "-"


def _points(one, other):
    if one is None or other is None:
        return "-"
    change = round(100 * (other - one), 1)
    return f"{change:+.1f}" if change else "0.0"  # nothing has no sign


def comparison(before, after, page, name="the other recording"):
    """`name` is what the recording `after` is called."""
    _damage(damage.without(after.damage, before.damage), f"of {plain(name)}, the figures are of what is whole", page)
    page.heading("Before and after")
    rows = []
    for name, key in (("locality", "locality"), ("first touch correct", "correctness"),
                      ("exclusivity", "exclusivity")):
        one, other = getattr(before.program, key), getattr(after.program, key)
        rows.append([name, percent(one), percent(other), _points(one, other)])
    one, other = before.balance.imbalance, after.balance.imbalance
    rows.append(["load imbalance", percent(one), percent(other), _points(one, other)])
    table(page, ["", "before", "after", "points"], rows, 0)
