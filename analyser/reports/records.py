"""The files of records of a recording, as numpy arrays that are mapped from them.

    records = read(folder / "counts.rec", "counts", sums, ended, tell)
    for piece in pieces(records): ...     # never all of a large file in memory at a time
    key, = columns(records, key=("<u8", lambda piece: piece["address"] >> 12))

The format and the meaning of every field are in analyser/recorder/format.hpp. Nothing that a file says of
itself is believed: its length is what bounds what is read of it. What is damaged is told (`tell`)
and left out. Of a large file that is done as its pieces are read (Chosen), as a copy of what is good
would take as much memory as the file.
"""

import errno
import mmap
import os
import stat
import zlib

import numpy as np

from . import description, files

VERSION = description.VERSION
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
PHASE_BEGAN, PHASE_ENDED, PHASE_PCONTROL = 1, 2, 3


# Records that are looked at at a time.
CHUNK = 1 << 18
# Bytes that are summed up at a time.
BLOCK = 1 << 20
# Files whose records are known by their number: those that are not good keep theirs.
NUMBERED = ("stacks", "touch_stacks", "allocations", "phases")
# Files that may be larger than memory.
LARGE = ("counts", "first", "touches", "bytes")


def forget(records):
    """Lets the system take back the memory of what has been read from a mapped file."""
    mapped = getattr(records, "_mmap", None)
    if mapped is not None and hasattr(mapped, "madvise"):
        mapped.madvise(mmap.MADV_DONTNEED)


class Chosen:
    """Records of a mapped file without those that are not good, and with 0 for numbers beyond `most`,
    a dictionary by fields. Of what is used of an array it has what the analysis needs."""

    def __init__(self, mapped, good=None, most=None):
        self.mapped, self.good, self.most = mapped, good, most or {}
        self.dtype = mapped.dtype
        self._count = len(mapped) if good is None else int(np.count_nonzero(good))

    def __len__(self):
        return self._count

    def _cleared(self, piece):
        for field, most in self.most.items():
            piece[field][piece[field] > most] = 0
        return piece

    def pieces(self):
        for begin in range(0, len(self.mapped), CHUNK):
            # (Of a memmap that is read-only, numpy 1.24 makes selections that are read-only, too.)
            piece = np.asarray(self.mapped[begin:begin + CHUNK])
            piece = piece[self.good[begin:begin + CHUNK]] if self.good is not None else np.array(piece)
            yield self._cleared(piece)
            forget(self.mapped)

    def __array__(self, dtype=None, copy=None):
        whole = np.concatenate([np.empty(0, self.dtype), *self.pieces()])
        return whole if dtype is None else whole.astype(dtype)

    def __getitem__(self, key):
        if isinstance(key, str):
            return column(self, key)
        rows = np.arange(len(self))[key]
        if self.good is not None:
            rows = np.flatnonzero(self.good)[rows]
        return self._cleared(np.array(np.asarray(self.mapped)[rows]))


def pieces(records):
    """The records piece by piece, so that those of a mapped file are never all in memory."""
    if isinstance(records, Chosen):
        yield from records.pieces()
        return
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


def masked(records, is_wanted):
    """A mask of the records by a function of a piece."""
    mask, at = np.empty(len(records), bool), 0
    for piece in pieces(records):
        mask[at:at + len(piece)] = is_wanted(piece)
        at += len(piece)
    return mask


def without(records, good):
    """The records that are good, a mask of them; of a large file they stay in it."""
    if isinstance(records, Chosen):
        among = np.ones(len(records.mapped), bool) if records.good is None else records.good.copy()
        among[among] = good
        return Chosen(records.mapped, among, records.most)
    return Chosen(records, good) if hasattr(records, "_mmap") and len(records) > CHUNK else records[good]


def header_of(kind, dtype):
    """What a file of such records begins with."""
    return np.array([(MAGIC, VERSION, kind, HEADER.itemsize, dtype.itemsize, 0)], HEADER).tobytes()


class Source:
    """A file of a recording: its length, as far as it was written, and whether it is what was written."""

    def __init__(self, path, expected, is_needed, tell, more=None):
        """`expected` is what process.json says of the file, or None. `more`: bytes of a record, any number of
        which may be behind what was summed up."""
        self.path, self.tell, self.more = path, tell, more
        self.size = 0        # bytes that may be read
        self.is_there = self.is_told = False
        try:
            self._open(expected)
        except FileNotFoundError:
            if expected is not None or is_needed:
                self._say("is missing")
        except OSError as problem:
            self.is_there, self.size = False, 0
            self._say(f"can't be read: {problem.strerror}")

    def _say(self, what, lost=None):
        self.tell(self.path, what, lost)
        self.is_told = True

    def _open(self, expected):
        there = os.stat(self.path)
        if not stat.S_ISREG(there.st_mode):
            self._say("is no file")
            return
        with files.open_regular(self.path, 1 << 62) as file:
            self.is_there, self.size = True, there.st_size
            if expected is not None:
                self._compare(file, expected)

    def _compare(self, file, expected):
        wanted, more = expected["bytes"], self.size - expected["bytes"]
        if more < 0:
            self._say(f"is cut off: {self.size:,} of {wanted:,} bytes are there")
            return
        self.size = wanted
        if more and (not self.more or more % self.more):
            self._say(f"has {more:,} bytes more than were written", "nothing that was in it")
        sum_, left = 0, wanted
        block = memoryview(bytearray(min(BLOCK, max(left, 1))))
        while left > 0 and (count := file.readinto(block[:min(left, len(block))])):
            sum_, left = zlib.crc32(block[:count], sum_), left - count
        if sum_ != expected["crc32"]:
            self._say("is not what was written: its checksum is another",
                      "nothing that can be told; figures that come from it may be wrong")


def read(path, name, expected, ended, tell, warn, more=None, is_needed=False):
    """The records of one file, mapped, as far as they are whole. `ended`: its writer had the time to write
    them; `is_needed`: it always makes the file. `more`: what may be behind what was summed up, "records" or
    "bytes"."""
    kind, fields = FILES[name]
    dtype = np.dtype(fields)
    source = Source(path, expected, is_needed, tell,
                    {None: None, "records": dtype.itemsize, "bytes": 1}[more])
    if not source.is_there or (expected is not None and expected["bytes"] == 0):
        return np.empty(0, dtype)
    say = (lambda path, what: warn(f"{path} {what}")) if not ended else \
        (lambda path, what: None) if source.is_told else tell
    try:
        return _map(source, kind, dtype, say, tell)
    except (OSError, ValueError) as problem:  # ValueError: it has become shorter
        if getattr(problem, "errno", None) == errno.ENOMEM:
            raise
        tell(path, f"can't be read: {getattr(problem, 'strerror', problem)}")
        return np.empty(0, dtype)


def _map(source, kind, dtype, say, tell):
    path, nothing = source.path, np.empty(0, dtype)
    if source.size < HEADER.itemsize:
        content = files.read_regular(path, files.DESCRIPTION_LIMIT)[:source.size]
        if not header_of(kind, dtype).startswith(content[:24]):  # behind that is what was lost
            tell(path, "is no file of a locality recording")
        elif source.size:
            say(path, "ends within its header: there is nothing in it")
        else:
            say(path, "is empty: its writer was stopped before it wrote anything")
        return nothing
    header = np.fromfile(path, HEADER, 1)[0]
    wrong = None
    if header["magic"] != MAGIC:
        wrong = "is no file of a locality recording"
    elif header["version"] != VERSION:
        wrong = f"has version {header['version']} of the format; this reader is for version {VERSION}"
    elif header["kind"] != kind:
        wrong = (f"is damaged: its records are of kind {header['kind'].decode('latin-1')!r}, "
                 f"not {kind.decode()!r}")
    elif header["record_bytes"] != dtype.itemsize or header["header_bytes"] != HEADER.itemsize:
        wrong = (f"is damaged: records of {header['record_bytes']} bytes behind a header of "
                 f"{header['header_bytes']}, not of {dtype.itemsize} behind {HEADER.itemsize}")
    if wrong:
        tell(path, wrong)
        return nothing
    count, rest = divmod(source.size - HEADER.itemsize, dtype.itemsize)
    records = np.memmap(path, dtype, "r", HEADER.itemsize, (count,)) if count else nothing
    # Room that was made for records to come is no loss, nor is what of it is no whole record's.
    if count and records[dtype.names[0]][-1] == 0:
        records = records[:_written(records)]
    elif rest and not source.is_told and np.fromfile(path, "u1", rest, offset=source.size - rest).any():
        tell(path, f"ends within a record: {rest} bytes are left out", "that record, and what was behind it")
    return records


def lost(path):
    """How many records its writer in the program had no room for, by its header."""
    try:
        with files.open_regular(path, 1 << 62) as file:
            header = np.frombuffer(file.read(HEADER.itemsize).ljust(HEADER.itemsize, b"\0"), HEADER)
    except OSError:
        return 0
    return int(header["lost"][0]) if header["magic"][0] == MAGIC else 0


def _written(records):
    """How many records there are up to the last whose first field is not 0."""
    first = records.dtype.names[0]
    for end in range(len(records), 0, -CHUNK):
        begin = max(end - CHUNK, 0)
        found = np.flatnonzero(records[first][begin:end])
        forget(records)
        if found.size:
            return begin + int(found[-1]) + 1
    return 0
