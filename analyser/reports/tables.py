"""Tables of an analysis: CSV with a line per unit, as Diener et al. (2017) have them in their table 2,
JSON, Parquet, and columns as dictionaries of arrays, which data frames are made of."""

import contextlib
import csv
import errno
import io
import json
import os
import stat

import numpy as np

from . import metrics, recording

# Cells, units × threads, that are written at a time.
CELLS = 1 << 22
# Beyond this JSON would be hundreds of megabytes: CSV and Parquet have the units.
JSON_UNITS = 1_000_000


class Error(Exception):
    """A table can't be written; the text says why."""


def _labels(analysis):
    trace = analysis.trace
    return [trace.thread_label(thread) for thread in range(trace.threads)] + [""]


def _texts(analysis):
    """Arrays of texts, by index in structures, allocations' structures and sites; the last is empty."""
    names = np.array([recording.shown(one.name) for one in analysis.structures] + [""], object)
    places = np.array([one.location for one in analysis.structures] + [""], object)
    sites = np.array([""] * (len(analysis.trace.sites) + 1), object)
    for site in np.unique(analysis.trace.first_site):
        if site >= 0:
            sites[site] = analysis.first_place(site)[0]
    return names, places, sites


def _pieces(trace):
    """Ranges of units to write one after the other; one if there are none."""
    size = max(CELLS // trace.threads, 1)
    return ((begin, begin + size) for begin in range(0, max(trace.units, 1), size))


def unit_columns(analysis, begin=0, end=None):
    """The columns of the table of units, as arrays: those of the CSV, by name, in order."""
    trace = analysis.trace
    end = trace.units if end is None else min(end, trace.units)
    names, places, sites = _texts(analysis)
    threads = np.append(trace.allocation_thread, -1)[trace.unit_allocation[begin:end]]
    structure = analysis.unit_structure[begin:end]
    columns = {"address": trace.unit_address[begin:end]}
    if len(trace.process_names) > 1:
        columns["process"] = np.array(trace.process_names, object)[trace.unit_process[begin:end]]
    labels = np.array(_labels(analysis), object)
    columns["alloc.thread"] = labels[threads] if "process" in columns else threads
    columns["alloc.location"] = places[structure]
    first = trace.first_thread[begin:end]
    columns["firsttouch.thread"] = labels[first] if "process" in columns else first
    columns["firsttouch.location"] = sites[trace.first_site[begin:end]]
    columns["structure.name"] = names[structure]
    dense = np.zeros((trace.threads, end - begin), "<u8")
    low, high = trace.starts[begin], trace.starts[end]
    rows = np.repeat(np.arange(end - begin), np.diff(trace.starts[begin:end + 1]))
    dense[trace.thread[low:high], rows] = trace.accesses[low:high]
    for thread in range(trace.threads):
        columns[labels[thread]] = dense[thread]
    return columns


def structure_columns(analysis):
    order = analysis.ranking()
    chosen = [(analysis.structures[i], analysis.of_structure[i]) for i in order]
    columns = {key: [getattr(one, key) for one, _ in chosen]
               for key in ("name", "kind", "file", "line", "function", "allocations", "named", "reason")}
    for key in ("name", "file", "function", "reason"):
        columns[key] = [recording.shown(text) for text in columns[key]]
    for key in ("units", "bytes", "accesses", "locality", "correctness", "exclusivity", "sharers",
                "shared", "wrong", "remote"):
        columns[key] = [getattr(one, key) for _, one in chosen]
    return columns


def thread_columns(analysis):
    trace = analysis.trace
    return {"thread": _labels(analysis)[:-1],
            "process": [trace.process_names[p] for p in trace.thread_process],
            "name": list(trace.thread_names),
            "instructions": trace.instructions, "cpu_ns": trace.cpu_ns,
            "accesses": metrics.accesses_by_thread(trace).astype("<u8"),
            "first_touches": np.bincount(trace.first_thread[trace.first_thread >= 0],
                                         minlength=trace.threads),
            "works": analysis.balance.worker}


def _discard(path):
    """Removes what was begun, if it is a file (/dev/stdout is none)."""
    with contextlib.suppress(OSError):
        if stat.S_ISREG(os.lstat(path).st_mode):
            os.unlink(path)


def _named(problem, path):
    """The same with the file's name, which writing doesn't tell."""
    if isinstance(problem, OSError) and problem.filename is None:
        return OSError(problem.errno or errno.EIO, problem.strerror or str(problem), os.fspath(path))
    return problem


@contextlib.contextmanager
def output(path, newline=None):
    """A file for text, of which nothing stays if writing it fails."""
    file = open(path, "w", encoding="utf-8", errors="replace", newline=newline)
    try:
        with file:
            yield file
    except BaseException as problem:
        _discard(path)
        raise _named(problem, path) from None


def write_csv(analysis, path):
    with output(path, newline="") as file:
        writer = None
        for begin, end in _pieces(analysis.trace):
            columns = unit_columns(analysis, begin, end)
            if writer is None:
                csv.writer(file, lineterminator="\n").writerow(columns)
                writer = True
            texts = [_csv_texts(name, values) for name, values in columns.items()]
            file.write("".join(",".join(row) + "\n" for row in zip(*texts)))


def _csv_texts(name, values):
    if name == "address":
        return [f"{value:#x}" for value in values.tolist()]
    if values.dtype != object:
        return [str(value) if value >= 0 else "" for value in values.tolist()]
    quoted = {}
    for text in set(values.tolist()):
        line = io.StringIO()
        csv.writer(line, lineterminator="").writerow([text])
        quoted[text] = "" if text == "" else line.getvalue()
    return [quoted[text] for text in values.tolist()]


def _plain(value):
    if isinstance(value, np.ndarray):
        return [_plain(one) for one in value.tolist()]
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if isinstance(value, np.generic):
        return value.item()
    return value


def summary(analysis, changes, results=(), after=None):
    """Everything but the units, as plain data. Of another recording, `after`, it has the damage."""
    trace = analysis.trace
    balance = analysis.balance
    return {
        "mode": trace.mode, "granularity": trace.granularity, "processes": trace.process_names,
        "program": vars(analysis.program),
        "balance": {"of": balance.kind, "imbalance": balance.imbalance,
                    "variance": balance.variance, "threads": int(balance.worker.sum())},
        "structures": {key: _plain(values) for key, values in structure_columns(analysis).items()},
        "threads": {key: _plain(values) for key, values in thread_columns(analysis).items()},
        "communication": None if analysis.communication is None else _plain(analysis.communication),
        "advice": [_advice(analysis, change) for change in changes],
        "what_if": [{key: _plain(value) for key, value in vars(result).items()}
                    for result in results],
        "warnings": analysis.warnings,
        "damage": _damage(analysis),
        "after": None if after is None else {"damage": _damage(after)},
    }


def _damage(analysis):
    return [one.facts() for one in analysis.damage]


def _advice(analysis, change):
    if change.structure < 0:
        return dict(vars(change), structure=None, location=None)
    one = analysis.structures[change.structure]
    return dict(vars(change), structure=one.name, location=one.location)


def write_json(analysis, changes, results, path, after=None):
    data = summary(analysis, changes, results, after)
    if analysis.trace.units <= JSON_UNITS:
        data["units"] = {key: _plain(values) for key, values in unit_columns(analysis).items()}
    else:
        data["units_left_out"] = (f"{analysis.trace.units} are more than {JSON_UNITS}: write CSV or "
                                  "Parquet")
    with output(path) as file:
        json.dump(data, file, ensure_ascii=False)
        file.write("\n")


def write_parquet(analysis, path):
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise Error("Parquet needs the Python package pyarrow; CSV and JSON don't") from None
    writer = None
    try:
        for begin, end in _pieces(analysis.trace):
            columns = unit_columns(analysis, begin, end)
            table = pyarrow.table({
                name: pyarrow.array(values.tolist(), pyarrow.string()).dictionary_encode()
                if values.dtype == object else pyarrow.array(values)
                for name, values in columns.items()})
            if writer is None:
                writer = pyarrow.parquet.ParquetWriter(path, table.schema)
            writer.write_table(table)
        if writer is not None:
            writer.close()  # writes the footer
    except BaseException as problem:
        if writer is not None:
            with contextlib.suppress(Exception):  # the first reason is the one that matters
                writer.close()
            _discard(path)
        raise _named(problem, path) from None
