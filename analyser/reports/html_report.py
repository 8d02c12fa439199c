"""The report as one HTML file that needs no network: assets/report.html with its style, script and the
data in it. The pages are packed, a byte for each page and thread, compressed; readers' browsers
unpack them (assets/page_map.js says in which order)."""

import base64
import json
import os
import pathlib
import zlib

import numpy as np

from . import advice, files, sharing, tables, trace as traces

ASSETS = pathlib.Path(__file__).parent / "assets"
SCRIPTS = ("page_map.js", "report.js")
# Cells of the heat map, pages × threads: a byte each in the browser. Beyond this neighbouring pages
# share a row.
MAX_CELLS = 24_000_000
MAX_ROWS = 2_000_000
# Beyond this only the surroundings of marked lines are shown.
MAX_SOURCE_LINES = 4000
SOURCE_AROUND = 40


def write(analysis, changes, path, other=None, machine=None, placement="", results=()):
    facts = _facts(analysis, changes)
    pages, facts["pages"] = _pages(analysis, MAX_CELLS)
    blobs = {"pages": pages}
    if other is not None:
        facts["after"] = _facts(other, advice.advise(other))
        blobs["pages_after"], facts["after"]["pages"] = _pages(other, MAX_CELLS // 4)
    if results:
        facts["what_if"] = {
            "machine": machine.name, "placement": placement, "origin": machine.origin,
            "nodes": machine.nodes, "localities": [sorted(one) for one in machine.localities],
            "results": [{key: _plain(value) for key, value in vars(one).items()} for one in results]}
    template = (ASSETS / "report.html").read_text(encoding="utf-8")
    parts = {"STYLE": (ASSETS / "report.css").read_text(encoding="utf-8"),
             "SCRIPT": "".join((ASSETS / name).read_text(encoding="utf-8") for name in SCRIPTS),
             # "</script>" in a name must not end the script.
             "FACTS": json.dumps(facts, ensure_ascii=True).replace("<", "\\u003c"),
             "BLOBS": "".join(f'<script type="application/octet-stream" id="{name}">{blob}</script>\n'
                              for name, blob in blobs.items())}
    with tables.output(path) as file:
        for part in template.split("@@"):
            file.write(parts.get(part, part))


def _plain(value):
    return value.tolist() if isinstance(value, np.ndarray) else value


def _facts(analysis, changes):
    facts = tables.summary(analysis, changes)
    facts["what_if"] = None
    command = next((process.info.get("command") for process in analysis.trace.processes
                    if process is not None and process.info.get("command")), "")
    facts["title"] = " ".join(command) if isinstance(command, list) else str(command)
    order = analysis.ranking()
    place = {index: position for position, index in enumerate(order)}
    touches = analysis.first_touches()
    facts["structures"]["location"] = [analysis.structures[i].location for i in order]
    facts["structures"]["touches"] = [[[int(t) if t < analysis.trace.threads else -1,
                                        int(touches[i, t])]
                                       for t in np.argsort(touches[i])[::-1][:8] if touches[i, t]]
                                      for i in order]
    for change, found in zip(changes, facts["advice"]):
        found["index"] = place.get(change.structure, -1)
    facts["has_counts"] = analysis.trace.has_counts
    facts["nothing"] = "" if changes else advice.nothing(analysis)
    facts["sources"] = _sources(analysis, order)
    facts["lines"] = sharing.listed(analysis)
    known = analysis.trace.node >= 0
    if known.any():
        facts["nodes"] = np.bincount(analysis.trace.node[known]).tolist()
    if analysis.communication is not None and not analysis.communication.any():
        facts["communication"] = None
    recorded = analysis.trace.communication is not None
    facts["communication_recorded"] = recorded
    facts["communication_of"] = (
        "bytes that a thread (row) wrote and another (column) was the next to use" if recorded else
        "estimated: accesses of two threads to the same units, of which the smaller number counts")
    return facts


def _pages(analysis, cells):
    """The packed pages, and what is needed to unpack them."""
    trace = analysis.trace
    threads, units = trace.threads, trace.units
    if units == 0:
        return "", {"rows": 0, "per_row": 1, "ranges": [], "most": 0}
    rank = np.empty(len(analysis.structures), "<i4")
    rank[analysis.ranking()] = np.arange(len(rank))
    structure = rank[analysis.unit_structure]
    order = np.lexsort((trace.unit_address, trace.unit_process, structure))
    rows = min(units, max(cells // threads, 1), MAX_ROWS)
    per_row = -(-units // rows)
    rows = -(-units // per_row)
    # Position of each unit in the picture; several units share a row.
    row_of = np.empty(units, "<i8")
    row_of[order] = np.arange(units) // per_row
    leaders = order[::per_row]
    heat = np.zeros(threads * rows)
    for some, lines in traces.blocks(trace):
        cell = np.repeat(row_of[some], np.diff(trace.starts[some.start:some.stop + 1]))
        cell += trace.thread[lines].astype("<i8") * rows
        np.add.at(heat, cell, trace.accesses[lines].astype(float))
    heat = heat.reshape(threads, rows)
    if not trace.has_counts:  # a touch is all that is known
        known = trace.first_thread >= 0
        heat[trace.first_thread[known], row_of[known]] = 1
    most = float(heat.max(initial=0))
    if most:
        np.log1p(heat, out=heat)
        heat *= 254 / np.log1p(most)
        np.ceil(heat, out=heat)
    wrong = np.bincount(row_of, weights=analysis.units.wrong, minlength=rows)
    wrong_share = np.ceil(wrong / per_row * 255).clip(0, 255)
    page = trace.unit_address[leaders] // np.uint64(trace.granularity)

    def differences(values):
        return np.diff(values.astype("<u4"), prepend=np.uint32(0)).astype("<u4").tobytes()

    packed = b"".join([differences(page & np.uint64(0xffffffff)), differences(page >> np.uint64(32)),
                       differences(structure[leaders]),
                       differences(trace.first_thread[leaders].astype("<i4").view("<u4")),
                       differences(analysis.units.best_thread[leaders].view("<u4")),
                       wrong_share.astype("u1").tobytes(), heat.astype("u1").tobytes()])
    begins = np.flatnonzero(np.diff(structure[leaders], prepend=-1))
    ends = np.append(begins[1:], rows)
    ranges = [[int(structure[leaders[b]]), int(b), int(e)] for b, e in zip(begins, ends)]
    return (base64.b64encode(zlib.compress(packed, 5)).decode(),
            {"rows": int(rows), "per_row": int(per_row), "ranges": ranges, "most": most})


def _sources(analysis, order):
    """Files with marked lines: {path: {"lines": [[number, text]], "marks": {number: [texts]}}}."""
    marks = {}

    def mark(path, line, kind, label, position):
        marks.setdefault(path, {}).setdefault(int(line), []).append([kind, label, position])

    for position, index in enumerate(order):
        one = analysis.structures[index]
        if one.line:
            mark(one.file, one.line, "allocated", one.name, position)
        for site, units in analysis.first_sites(index)[:6]:
            _, _, path, line = analysis.first_place(site)
            if line:
                mark(path, line, "first touch", f"{one.name}: {units} pages", position)
    sources = {}
    for path, of_file in marks.items():
        try:
            text = files.read_regular(path, files.SOURCE_LIMIT).decode("utf-8", "replace")
            lines = text.splitlines()
        except OSError:
            lines = None
        shown = []
        if lines is not None:
            wanted = range(1, len(lines) + 1)
            if len(lines) > MAX_SOURCE_LINES:
                near = {at for line in of_file
                        for at in range(line - SOURCE_AROUND, line + SOURCE_AROUND + 1)}
                wanted = sorted(at for at in near if 1 <= at <= len(lines))
            shown = [[at, lines[at - 1]] for at in wanted]
        sources[path] = {"name": os.path.basename(path), "there": lines is not None, "lines": shown,
                         "marks": of_file}
    return sources
