"""Writes recordings (analyser/recorder/format.hpp) from arrays, for tests."""

import json
import os
import pathlib
import struct
import zlib

import numpy as np

from warren.locality import recording


def write_process(folder, mode="counts", rank=None, granularity=4096, paths=(), info=None, **files):
    """A process's folder. files: name=list of dictionaries or structured array; `paths` of modules. What is
    always there at the end of a recording is, too."""
    os.makedirs(folder)
    facts = {"format": "warren locality recording", "version": recording.VERSION, "mode": mode,
             "granularity": granularity, "page_size": 4096, "pid": 100 + (rank or 0), "rank": rank,
             "command": ["./program"], "host": "here", "start_ns": 1, "end_ns": 2}
    facts.update(info or {})
    with open(os.path.join(folder, "process.json"), "w", encoding="utf-8") as file:
        json.dump(facts, file)
    needed = recording.NEEDED.get(mode, recording.NEEDED_OF_COUNTS) - {"strings"}
    for name, records in {**dict.fromkeys(sorted(needed), ()), **files}.items():
        kind, fields = recording.FILES[name]
        dtype = np.dtype(fields)
        if not isinstance(records, np.ndarray):
            made = np.zeros(len(records), dtype)
            for index, record in enumerate(records):
                for field, value in record.items():
                    made[index][field] = value
            records = made
        with open(os.path.join(folder, f"{name}.rec"), "wb") as file:
            file.write(struct.pack("<8sI4sIIQ", recording.MAGIC, recording.VERSION, kind, 32,
                                   dtype.itemsize, 0))
            records.tofile(file)
    with open(os.path.join(folder, "strings.bin"), "wb") as file:
        file.write("".join(paths).encode("utf-8", "surrogateescape"))


def counts(matrix, base=1 << 32, allocation=0, granularity=4096):
    """Records of counts of a dense matrix, unit × thread."""
    matrix = np.asarray(matrix)
    row, thread = np.nonzero(matrix)
    made = np.zeros(len(row), np.dtype(recording.FILES["counts"][1]))
    made["interval"] = 1
    made["thread"] = thread
    made["address"] = base + row * granularity
    made["allocation"] = allocation
    made["reads"] = matrix[row, thread]
    made["bytes_read"] = 8 * matrix[row, thread]
    return made


def first(threads, base=1 << 32, allocation=0, granularity=4096, stack=0, instruction=0x1234):
    made = np.zeros(len(threads), np.dtype(recording.FILES["first"][1]))
    made["flags"] = recording.FIRST_VALID | recording.FIRST_WRITE
    made["thread"] = threads
    made["address"] = base + np.arange(len(threads)) * granularity
    made["time_ns"] = 10
    made["instruction"] = instruction
    made["allocation"] = allocation
    made["stack_id"] = stack
    return made


def threads(count, instructions=()):
    made = []
    for thread in range(count):
        made.append({"event": recording.THREAD_BEGAN, "thread": thread, "tid": 100 + thread,
                     "time_ns": 1 + thread})
        made.append({"event": recording.THREAD_ENDED, "thread": thread, "tid": 100 + thread,
                     "time_ns": 1000, "cpu_ns": 500,
                     "instructions": instructions[thread] if len(instructions) else 0})
    return made


def allocation(address, size, tid=100, time=2, stack=0, what=1):
    return {"event": recording.ALLOCATION_BEGAN, "what": what, "address": address, "size": size,
            "time_ns": time, "tid": tid, "stack_id": stack}


def sums_of(folder):
    return {path.name: {"bytes": path.stat().st_size, "crc32": zlib.crc32(path.read_bytes())}
            for path in pathlib.Path(folder).iterdir() if path.name != "process.json"}


def describe_files(folder):
    """Adds to a description what recorders add at the end."""
    path = pathlib.Path(folder, "process.json")
    info = json.loads(path.read_text())
    info.pop("sum", None)
    info["files"] = sums_of(folder)
    text = json.dumps(info)[:-1]
    path.write_text(f'{text},\n "sum": {zlib.crc32(text.encode())}\n}}\n')
