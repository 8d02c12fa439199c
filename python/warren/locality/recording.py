"""Recordings of the locality analyser, as numpy arrays.

    from warren.locality import recording

    whole = recording.open("warren-locality")        # or the folder of one process
    for process in whole.processes:
        process.info["rank"], process.info["command"]    # process.json
        process.touches["address"]                       # structured arrays, mapped from the files
        process.stack(process.allocations["stack_id"][0])    # addresses, innermost first
    whole.warnings                                       # what is cut off or missing, sentences

The format, its files and the meaning of every field are in src/locality/format.hpp. What can be
saved of a recording is: a last incomplete record and records that were never finished are left out,
with a warning. What is not a recording, is of another version or is damaged raises Error with the
file and the reason.

All ids of stacks are of one table here: those of allocations, of which there are fewer, are moved
behind those of touches, which have a file of their own. `thread` in allocations, phases and names is the number that the
thread with this tid had at that time, -1 when it is not known.
"""

import json
import mmap
import os
import pathlib
import re

import numpy as np
from numpy.lib import recfunctions

from . import files

__all__ = ["Error", "Process", "Recording", "open"]

VERSION = 1
MAGIC = b"WARRENLR"
NO_THREAD = 0xffffffff

HEADER = np.dtype([("magic", "S8"), ("version", "<u4"), ("kind", "S4"), ("header_bytes", "<u4"),
                   ("record_bytes", "<u4"), ("lost", "<u8")])

_STACK = [("place", "<u4"), ("caller", "<u4"), ("address", "<u8")]

# The files: the four letters of their kind and the fields of their records. The first field is
# never 0 in a record that is whole.
FILES = {
    "threads": (b"THRD", [
        ("event", "<u4"), ("thread", "<u4"), ("tid", "<u4"), ("parent", "<u4"), ("time_ns", "<u8"),
        ("cpu_ns", "<u8"), ("instructions", "<u8"), ("name", "S16")]),
    "modules": (b"MODL", [
        ("event", "<u4"), ("path_bytes", "<u4"), ("time_ns", "<u8"), ("begin", "<u8"), ("end", "<u8"),
        ("file_offset", "<u8"), ("path_offset", "<u8"), ("build_id_bytes", "<u4"),
        ("build_id", "V20")]),
    "stacks": (b"STCK", _STACK),
    "touch_stacks": (b"STCK", _STACK),
    "allocations": (b"ALLO", [
        ("event", "<u4"), ("what", "<u4"), ("address", "<u8"), ("size", "<u8"), ("time_ns", "<u8"),
        ("tid", "<u4"), ("stack_id", "<u4"), ("previous", "<u8")]),
    "touches": (b"TOUC", [
        ("flags", "<u4"), ("thread", "<u4"), ("address", "<u8"), ("bytes", "<u8"), ("time_ns", "<u8"),
        ("physical", "<u8"), ("stack_id", "<u4"), ("node", "<i4")]),
    "intervals": (b"INTV", [
        ("number", "<u4"), ("phase", "<u4"), ("begin_ns", "<u8"), ("end_ns", "<u8")]),
    "counts": (b"CNTS", [
        ("interval", "<u4"), ("thread", "<u4"), ("address", "<u8"), ("allocation", "<u4"),
        ("reserved", "<u4"), ("reads", "<u8"), ("writes", "<u8"), ("bytes_read", "<u8"),
        ("bytes_written", "<u8")]),
    "first": (b"FRST", [
        ("flags", "<u4"), ("thread", "<u4"), ("address", "<u8"), ("time_ns", "<u8"),
        ("instruction", "<u8"), ("allocation", "<u4"), ("stack_id", "<u4")]),
    "communication": (b"COMM", [
        ("interval", "<u4"), ("producer", "<u4"), ("consumer", "<u4"), ("reserved", "<u4"),
        ("events", "<u8"), ("bytes", "<u8")]),
    "bytes": (b"BYTS", [
        ("flags", "<u4"), ("thread", "<u4"), ("address", "<u8"), ("allocation", "<u4"),
        ("reserved", "<u4"), ("read", "<u8"), ("written", "<u8"), ("instruction", "<u8")]),
    "phases": (b"PHAS", [
        ("event", "<u4"), ("tid", "<u4"), ("time_ns", "<u8"), ("level", "<i4"), ("reserved", "<u4"),
        ("name", "S104")]),
    "names": (b"NAME", [
        ("event", "<u4"), ("tid", "<u4"), ("address", "<u8"), ("size", "<u8"), ("time_ns", "<u8"),
        ("name", "S128")]),
}

# The values of fields, by their names in format.hpp.
THREAD_BEGAN, THREAD_ENDED, THREAD_SO_FAR = 1, 2, 3
MODULE_LOADED, MODULE_UNLOADED = 1, 2
PLACE_RETURN_ADDRESS, PLACE_INSTRUCTION = 1, 2
ALLOCATION_BEGAN, ALLOCATION_ENDED, ALLOCATION_DISCARDED, ALLOCATION_FILLED = 1, 2, 3, 4
LARGEST_PAGE = 1 << 40  # processors have pages of up to 16 GiB (POWER)
KINDS = ("unknown", "heap", "mapping", "shared", "shmem", "program_break", "stack")
TOUCH_VALID, TOUCH_WRITE, TOUCH_READ, TOUCH_KERNEL, TOUCH_MAJOR = 1, 2, 4, 8, 16
FIRST_VALID, FIRST_WRITE, FIRST_LATE = 1, 2, 4
OF_A_PROCESS = re.compile(r"(rank|process)-\d+(-\d+)?")  # names of folders that recorders make
FAULTS = "faults"  # the folder that goes with a recording of mode sample
PHASE_BEGAN, PHASE_ENDED, PHASE_PCONTROL = 1, 2, 3


# Of process.json: types of values, and whether they are needed.
KEYS = {"mode": (str, True), "granularity": (int, True), "page_size": (int, True), "pid": (int, True),
        "parent": (int, False), "rank": (int, False), "size": (int, False), "start_ns": (int, False),
        "end_ns": (int, False), "bursts": (int, False), "end": (str, False), "host": (str, False), "executable": (str, False)}


class Error(Exception):
    """A recording can't be used; the text names the file and the reason."""


class CutOff(Error):
    """The description of a process was not written to its end: the writer was killed, or the disk was full."""


def shown(text):
    """What people see of a path or name: what can't be written as UTF-8 becomes `?`."""
    return text.encode("utf-8", "replace").decode()


def _all_are(values, kind):
    return isinstance(values, list) and all(isinstance(value, kind) for value in values)


# Records that are looked at at a time.
CHUNK = 1 << 18


def forget(records):
    """Lets the system take back the memory of what has been read from a mapped file."""
    mapped = getattr(records, "_mmap", None)
    if mapped is not None and hasattr(mapped, "madvise"):
        mapped.madvise(mmap.MADV_DONTNEED)


def pieces(records):
    """The records piece by piece, so that those of a mapped file are never all in memory."""
    for begin in range(0, len(records), CHUNK):
        yield records[begin:begin + CHUNK]
        forget(records)


def columns(records, count=None, chosen=None, **made):
    """An array for each name=(type, function of a piece). With `chosen`, a function of a piece that
    makes a mask, of these records only, which are `count`."""
    result = [np.empty(len(records) if count is None else count, dtype) for dtype, _ in made.values()]
    at = 0
    for piece in pieces(records):
        piece = piece if chosen is None else piece[chosen(piece)]
        for values, (_, make) in zip(result, made.values()):
            values[at:at + len(piece)] = make(piece)
        at += len(piece)
    return result


def column(records, field, dtype=None):
    return columns(records, field=(dtype or records.dtype[field], lambda piece: piece[field]))[0]


def _largest(records, fields):
    """The largest value of each of these fields."""
    most = dict.fromkeys(fields, 0)
    for piece in pieces(records):
        for field in fields:
            most[field] = max(most[field], int(piece[field].max()))
    return most


def header_of(kind, dtype):
    """What a file of such records begins with."""
    return np.array([(MAGIC, VERSION, kind, HEADER.itemsize, dtype.itemsize, 0)], HEADER).tobytes()


def _read(path, kind, dtype, warnings, finished):
    """The records of one file, mapped; with `finished` those whose first field is 0 are left out."""
    if not path.exists():
        return np.empty(0, dtype)
    size = path.stat().st_size
    if size == 0:
        warnings.append(f"{path} is empty: its writer was stopped before it wrote anything")
        return np.empty(0, dtype)
    if size < HEADER.itemsize:
        content = path.read_bytes()
        if not header_of(kind, dtype).startswith(content[:24]):  # behind that is what was lost
            raise Error(f"{path} is no file of a locality recording")
        warnings.append(f"{path} ends within its header: there is nothing in it")
        return np.empty(0, dtype)
    header = np.fromfile(path, HEADER, 1)[0]
    if header["magic"] != MAGIC:
        raise Error(f"{path} is no file of a locality recording")
    if header["version"] != VERSION:
        raise Error(f"{path} has version {header['version']} of the format; this reader is for "
                    f"version {VERSION}")
    if header["kind"] != kind:
        raise Error(f"{path} is damaged: its records are of kind {header['kind'].decode('latin-1')!r}, "
                    f"not {kind.decode()!r}")
    if header["record_bytes"] != dtype.itemsize or header["header_bytes"] != HEADER.itemsize:
        raise Error(f"{path} is damaged: records of {header['record_bytes']} bytes behind a header of "
                    f"{header['header_bytes']}, not of {dtype.itemsize} behind {HEADER.itemsize}")
    count, rest = divmod(size - HEADER.itemsize, dtype.itemsize)
    if count == 0:
        if rest:
            warnings.append(f"{path} ends within a record: {rest} bytes are left out")
        return np.empty(0, dtype)
    records = np.memmap(path, dtype, "r", HEADER.itemsize, (count,))
    first = dtype.names[0]
    if records[first][-1] == 0:  # room that was made for records to come is no loss
        written = np.flatnonzero(records[first])
        records = records[:written[-1] + 1 if written.size else 0]
    elif rest:
        warnings.append(f"{path} ends within a record: {rest} bytes are left out")
    missing = len(records) - sum(np.count_nonzero(piece[first]) for piece in pieces(records))
    if missing:
        warnings.append(f"{path}: {missing} records were never finished and are left out")
    return records[records[first] != 0] if finished and missing else records


def _refuse(path, wrong, what):
    """Raises if any of the marked records is wrong, and names the first."""
    found = np.flatnonzero(wrong)
    if found.size:
        raise Error(f"{path} is damaged: record {found[0] + 1} {what}")


class Process:
    """One process image: `info` (process.json), arrays by the names of their files, `warnings`."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.name = self.folder.name
        self.warnings = []
        self.info = self._read_info()
        for name, (kind, fields) in FILES.items():
            # Places and allocations are known by their number: unfinished ones keep theirs.
            finished = name not in ("stacks", "touch_stacks", "allocations", "phases")
            setattr(self, name, _read(self.folder / f"{name}.rec", kind, np.dtype(fields),
                                      self.warnings, finished))
        strings = self.folder / "strings.bin"
        self._strings = b""
        if strings.exists():
            try:
                self._strings = files.read_regular(strings, files.DESCRIPTION_LIMIT)
            except OSError as problem:
                raise Error(f"{strings}: {problem.strerror}") from None
        self._check()
        self._join_stacks()
        self._number_threads()

    def _read_info(self):
        path = self.folder / "process.json"
        try:
            info = json.loads(files.read_regular(path, files.DESCRIPTION_LIMIT).decode("utf-8"))
        except OSError as problem:
            raise Error(f"{path}: {problem.strerror}") from None
        except (ValueError, RecursionError) as problem:
            raise CutOff(f"{path} is damaged: {problem}") from None
        if not isinstance(info, dict) or info.get("format") != "warren locality recording":
            raise Error(f"{path} doesn't describe a locality recording")
        if info.get("version") != VERSION:
            raise Error(f"{path} has version {info.get('version')} of the format; this reader is for "
                        f"version {VERSION}")
        for key, (kind, needed) in KEYS.items():
            value = info.get(key)  # (type(), as true is an int)
            if type(value) is not kind and (needed or value is not None):
                raise Error(f"{path} is damaged: {key!r} is {value!r}")
        for key in ("granularity", "page_size"):
            if not 0 < info[key] <= 1 << 40 or info[key] & (info[key] - 1):
                raise Error(f"{path} is damaged: {key!r} is {info[key]}, no power of two")
        command = info.get("command", [])
        lost, missing = info.get("lost", []), info.get("missing", [])
        for key, good in (
                ("command", isinstance(command, str) or _all_are(command, str)),
                ("missing", _all_are(missing, str)),
                ("lost", _all_are(lost, dict) and all(
                    type(loss.get("count")) is int and isinstance(loss.get("what"), str)
                    and isinstance(loss.get("why"), str) for loss in lost))):
            if not good:
                raise Error(f"{path} is damaged: {key!r} is {info[key]!r}")
        for loss in lost:
            self.warnings.append(f"{self.folder}: {loss['count']} {loss['what']} were lost: {loss['why']}")
        for sentence in missing:
            self.warnings.append(f"{self.folder}: {sentence}")
        if info.get("end_ns") is None:
            self.warnings.append(f"{self.folder}: the recording has no end: the recorder was stopped, "
                                 "or has not finished; it goes as far as it was written")
        return info

    def _check(self):
        for name in ("stacks", "touch_stacks"):
            stacks = getattr(self, name)
            numbers = np.arange(1, len(stacks) + 1)
            _refuse(self.folder / f"{name}.rec", (stacks["caller"] >= numbers) | (stacks["place"] > 2),
                    "is called by one that comes after it, or is of no known kind")
        limits = {"threads": ("event", 3), "modules": ("event", 2), "allocations": ("event", 4),
                  "phases": ("event", 3), "names": ("event", 1), "touches": ("flags", 31),
                  "first": ("flags", 7), "bytes": ("flags", 1)}
        numbers = {"allocations": {"stack_id": len(self.stacks)},
                   "touches": {"stack_id": len(self.touch_stacks), "bytes": LARGEST_PAGE},
                   "first": {"stack_id": len(self.touch_stacks), "allocation": len(self.allocations)},
                   "counts": {"allocation": len(self.allocations)},
                   "bytes": {"allocation": len(self.allocations)}}
        largest = {name: _largest(getattr(self, name), list(numbers.get(name, ()))
                                  + ([limits[name][0]] if name in limits else []))
                   for name in limits | numbers}
        if largest["touches"]["bytes"] > LARGEST_PAGE:
            _refuse(self.folder / "touches.rec", self.touches["bytes"] > LARGEST_PAGE,
                    "is of a page of more than 1 TiB, which no processor is known to have")
        for name, (field, most) in limits.items():
            if largest[name][field] > most:
                _refuse(self.folder / f"{name}.rec", getattr(self, name)[field] > most,
                        f"has an unknown {field}")
        _refuse(self.folder / "allocations.rec", self.allocations["what"] >= len(KINDS),
                "is of no known kind")
        _refuse(self.folder / "modules.rec", self.modules["end"] <= self.modules["begin"],
                "ends before it begins")
        outside = self.modules["path_offset"] + self.modules["path_bytes"] > len(self._strings)
        if outside.any():
            self.warnings.append(f"{self.folder / 'strings.bin'} is cut off: {outside.sum()} modules "
                                 "have no name")
        for name, fields in numbers.items():
            for field, most in fields.items():
                if largest[name][field] <= most:
                    continue
                # The other file was cut off, which is said once.
                cleared = np.array(getattr(self, name))
                beyond = cleared[field] > most
                self.warnings.append(f"{self.folder / name}.rec: {np.count_nonzero(beyond)} records refer "
                                     f"to a {field} that was not written; it is unknown")
                cleared[field][beyond] = 0
                setattr(self, name, cleared)

    def _join_stacks(self):
        """One table of places for allocations and touches."""
        moved = len(self.touch_stacks)
        self.places = np.concatenate([self.touch_stacks, self.stacks])
        callers = self.places["caller"]
        callers[moved:] += np.where(callers[moved:] != 0, moved, 0).astype("<u4")
        if moved and len(self.allocations):
            self.allocations = np.array(self.allocations)
            numbers = self.allocations["stack_id"]
            numbers += np.where(numbers != 0, moved, 0).astype("<u4")

    def _number_threads(self):
        began = self.threads[self.threads["event"] == THREAD_BEGAN]
        order = np.lexsort((began["time_ns"], began["tid"]))
        self._tids, self._began = began["tid"][order], began["time_ns"][order]
        self._numbers = began["thread"][order].astype("<i8")
        for name in ("allocations", "phases", "names"):
            records = getattr(self, name)
            setattr(self, name, recfunctions.append_fields(
                records, "thread", self.thread_of(records["tid"], records["time_ns"]), "<i8",
                usemask=False))

    def thread_of(self, tid, time_ns):
        """The numbers of the threads that had these tids at these times; -1: not known."""
        tid, time_ns = np.asarray(tid, "<u8"), np.asarray(time_ns, "<u8")
        if len(self._tids) == 0:
            return np.full(tid.shape, -1, "<i8")
        # A tid has several threads one after the other: the last that began before holds. One that
        # the recorder saw a moment later than the program is the first of its tid.
        first = np.searchsorted(self._tids, tid, "left")
        end = np.searchsorted(self._tids, tid, "right")
        found = first.copy()
        reused = np.flatnonzero(end - first > 1)
        for one in reused:
            later = np.searchsorted(self._began[first[one]:end[one]], time_ns[one], "right") - 1
            found[one] = first[one] + max(later, 0)
        known = first < end
        return np.where(known, self._numbers[np.where(known, found, 0)], -1)

    def join_faults(self, images):
        """Takes the touches of that first-touch recording, of those of its pid, which it began in."""
        start = self.info.get("start_ns") or 0
        before = [image for image in images if (image.info.get("start_ns") or 0) <= start]
        if not before:
            self.warnings.append(f"{self.folder}: first touches are known of bursts only, where the page "
                                 "was not there before")
            return
        image = max(before, key=lambda one: one.info.get("start_ns") or 0)
        tids = np.zeros(int(image.threads["thread"].max(initial=0)) + 1, "<u8")
        tids[image.threads["thread"]] = image.threads["tid"]
        touches = np.array(image.touches)
        thread = touches["thread"]
        numbers = self.thread_of(tids[np.minimum(thread, len(tids) - 1)], touches["time_ns"])
        touches["thread"] = np.where(thread < len(tids), numbers, -1).astype("<u4")
        touches["stack_id"] = 0  # of code that the counting recorder has made
        self.touches = touches
        for loss in image.info.get("lost", []):
            self.warnings.append(f"{image.folder}: {loss['count']} {loss['what']} were lost: {loss['why']}")
        self.warnings.extend(f"{self.folder}: {sentence}" for sentence in image.info.get("missing", []))

    @property
    def size(self):
        """Records of accesses and touches."""
        return len(self.counts) + len(self.touches)

    def path(self, module):
        """The path of a record of modules; empty if it is not known."""
        begin, count = int(module["path_offset"]), int(module["path_bytes"])
        text = self._strings[begin:begin + count]
        return text.decode("utf-8", "surrogateescape") if len(text) == count else ""

    def build_id(self, module):
        """The build id of a record of modules, as hexadecimal digits; empty if there is none."""
        return bytes(module["build_id"])[:int(module["build_id_bytes"])].hex()

    def stack(self, number):
        """The addresses of a stack, innermost first; empty for 0, which is no stack."""
        return self.places["address"][self.stack_numbers(number)]

    def stack_numbers(self, number):
        """The places of a stack, as indices into `places`, innermost first."""
        found = []
        number = int(number)
        while number:
            found.append(number - 1)
            number = int(self.places["caller"][number - 1])
        return np.array(found, "<i8")


class Recording:
    """All processes of a recording, ranks first; `warnings` are those of all."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        if not self.folder.is_dir():
            raise Error(f"{folder} is no folder with a recording" if self.folder.exists() else
                        f"{folder} does not exist")
        if (self.folder / "process.json").exists():
            folders = [self.folder]
        else:
            folders = [entry for entry in self.folder.iterdir() if (entry / "process.json").exists()]
        bare = [] if folders == [self.folder] else sorted(filter(_lacks_description, self.folder.iterdir()))
        if not folders:
            raise Error(f"{folder} holds no recording: no folder in it has a process.json"
                        + (f" ({', '.join(entry.name for entry in bare[:3])}"
                           f"{' and others' if len(bare) > 3 else ''}: their writer was stopped before it "
                           "wrote one, or the disk was full)" if bare else ""))
        read = []
        left_out = [(entry.name, f"{entry} has no process.json: its writer was stopped before it wrote one, "
                     "or the disk was full") for entry in bare]
        for entry in folders:
            try:
                read.append(Process(entry))
            except CutOff as problem:
                left_out.append((entry.name, problem))
        if not read:
            raise next(problem for _, problem in left_out if isinstance(problem, CutOff))
        self.processes = sorted(read, key=_order)
        self._join_faults()
        self.left_out = [f"{name} is left out, as nothing describes it: {problem}"
                         for name, problem in sorted(left_out, key=lambda one: one[0])]
        self.warnings = self.left_out + [text for process in self.processes for text in process.warnings]

    def _join_faults(self):
        """Gives processes of mode sample the touches that the kernel told of another recorder."""
        images = {}
        for entry in (self.folder / FAULTS).glob("*/process.json"):
            try:
                image = Process(entry.parent)
            except CutOff:
                continue  # the processes whose faults are lacking say so
            images.setdefault((image.info.get("host"), image.info["pid"]), []).append(image)
        for process in self.processes:
            if process.info["mode"] == "sample":
                process.join_faults(images.get((process.info.get("host"), process.info["pid"]), []))

    @property
    def ranks(self):
        return [process for process in self.processes if process.info.get("rank") is not None]

    def leave_out_replaced(self):
        """Of the images that a process had one after the other, by exec, leaves the last, which is the
        rank if one before was (`mpiexec env X=1 ./program`)."""
        before, kept = {}, []
        for process in sorted(self.processes, key=lambda one: (one.info.get("start_ns") or 0, one.name)):
            of = (process.info.get("host"), process.info["pid"])
            replaced = before.get(of)
            if replaced is not None and replaced.info.get("end") == "exec":
                kept.remove(replaced)
                if process.info.get("rank") is None:
                    process.info.update({key: replaced.info.get(key) for key in ("rank", "size")})
                if replaced.size > process.size:
                    process.warnings.append(
                        f"{replaced.folder} has more records than {process.name}, which replaced it by "
                        "exec, and is left out (--everything shows it)")
            before[of] = process
            kept.append(process)
        self.processes = sorted(kept, key=_order)


def _lacks_description(entry):
    """Whether it is the folder of a process that nothing describes."""
    if entry.name == FAULTS or not entry.is_dir() or (entry / "process.json").exists():
        return False
    return any(entry.glob("*.rec")) or OF_A_PROCESS.fullmatch(entry.name) is not None


def _order(process):
    rank = process.info.get("rank")
    return (rank is None, rank or 0, process.info.get("start_ns") or 0, process.name)


def open(folder):  # as in gzip.open
    """The recording in a folder."""
    return Recording(os.fspath(folder))
