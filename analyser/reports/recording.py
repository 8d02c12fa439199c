"""Recordings of the locality analyser, as numpy arrays.

    from warren.locality import recording

    whole = recording.open("warren-locality")        # or the folder of one process
    for process in whole.processes:
        process.info["rank"], process.info["command"]    # process.json
        process.touches["address"]                       # structured arrays, mapped from the files
        process.stack(process.allocations["stack_id"][0])    # addresses, innermost first
    whole.warnings                                       # what is cut off or missing, sentences

The format, its files and the meaning of every field are in analyser/recorder/format.hpp. What can be
saved of a recording is: what is damaged, cut off or missing is left out, and `whole.damage` says of each
file what is wrong and what is lost by it (damage.py). What is no recording at all, or is of another
version, raises Error with the file and the reason.

All ids of stacks are of one table here: those of allocations, of which there are fewer, are moved
behind those of touches, which have a file of their own. `thread` in allocations, phases and names is the number that the
thread with this tid had at that time, -1 when it is not known.
"""

import os
import pathlib
import re

import numpy as np

from . import damage, description, files, records
from .description import Error, VERSION  # noqa: F401
from .records import *  # noqa: F401,F403
from .records import (ALLOCATION_FILLED, FILES, KINDS, LARGE, LARGEST_PAGE, NO_THREAD, NUMBERED, Chosen,
                      pieces)

__all__ = ["Error", "Process", "Recording", "open"]

OF_A_PROCESS = re.compile(r"(rank|process)-\d+([.-]\d+)?")  # names of folders that recorders make
FAULTS = "faults"  # the folder that goes with a recording of mode sample
STRINGS = "strings.bin"
STACKS, NEVER_FINISHED = ("stacks", "touch_stacks"), "was never finished"

# Files that recorders of a mode make before they record anything: without them something was removed.
NEEDED = {"first-touch": {"threads", "modules", "touch_stacks", "touches", "strings"}}
NEEDED_OF_COUNTS = {"threads", "modules", "touch_stacks", "intervals", "counts", "first", "strings"}
# Files of the tracker, which counts in their headers what it had no room for: what they are of.
OF_TRACKER = {"allocations": "allocations", "stacks": "calls of allocations", "phases": "phases",
              "names": "names"}

# What no program reaches: accesses or bytes of a thread in a unit, an address, bytes that one system call
# reads. Numbers of threads have no gaps but for what is lost: one far beyond all others is none.
MOST_ACCESSES, MOST_ADDRESS, MOST_FILLED = 1 << 56, 1 << 57, 1 << 31
FEW_THREADS, MOST_THREADS, MOST_RANKS = 1024, 1 << 20, 1 << 22
# Fewer counts don't tell by their addresses how large their units are.
FEW_COUNTS = 64


def shown(text):
    """What people see of a path or name: what can't be written as UTF-8 becomes `?`."""
    return text.encode("utf-8", "replace").decode()


def _told(loss):
    """A sentence about what a recorder has lost; no number: all of it."""
    count = f"{loss['count']}" if loss["count"] else "all"
    return f"{count} {loss['what']} were lost: {loss['why']}"


def _beyond(field, most):
    return lambda piece: piece[field] > most


def _no_thread(field, most, none):
    """Numbers from `most` on; with `none`, no_thread is one that is good."""
    if none:  # (which is 0 when it is counted up)
        return lambda piece: piece[field] + np.uint32(1) > most
    return lambda piece: piece[field] >= most


class Process:
    """One process image: `info` (process.json), arrays by the names of their files, `warnings`."""

    def __init__(self, folder, others=()):
        """`others` are the descriptions of the processes of the same job, for what its own lacks."""
        self.folder = pathlib.Path(folder)
        self.name = self.folder.name
        self.warnings, self.damage = [], []
        self.info, found = description.read(self.folder)
        self.damage += found
        told = None
        if not found or "mode" in self.info or self._has_records():
            told = description.complete(self.info, others, self.folder, self._guess)
        if told is None:
            raise Error(f"{found[0].path} {found[0].what}")
        self.warnings += told
        self._warn(bool(found))
        ended = self.info.get("end_ns") is not None
        needed = NEEDED.get(self.info["mode"], NEEDED_OF_COUNTS)
        sums = self.info.get("files")
        for name in FILES:
            expected = None if sums is None else sums.get(f"{name}.rec")
            setattr(self, name, records.read(
                self.folder / f"{name}.rec", name, expected, ended, self._tell, self.warnings.append,
                self._may_be_longer(name), sums is None and name in needed))
        self._strings = self._read_strings(sums, "strings" in needed)
        for name in sorted(sums or ()):
            if name != STRINGS and name.removesuffix(".rec") not in FILES:
                records.Source(self.folder / name, sums[name], True, self._tell)
        self._warn_of_losses(ended)
        self._check()
        self._join_stacks()
        self._number_threads()

    def _may_be_longer(self, name):
        """What may be behind that of a file which was summed up: room of the tracker's, or older recorders' rest."""
        if name in OF_TRACKER and self.info["mode"] != "first-touch":
            return "bytes"
        return "records" if self.info.get("end") == "exec" else None

    def _tell(self, path, what, lost=None):
        self.damage.append(damage.of(path, what, lost))

    def _has_records(self, names=tuple(FILES)):
        for name in names:
            try:
                if os.stat(self.folder / f"{name}.rec").st_size > records.HEADER.itemsize:
                    return True
            except OSError:
                pass
        return False

    def _guess(self):
        """What a description says that is not there, by the files that are."""
        if self._has_records(["touches"]):
            return {"mode": "first-touch", "granularity": 4096, "page_size": 4096}
        counts = records.read(self.folder / "counts.rec", "counts", None, False, lambda *_: None,
                              lambda *_: None)
        if len(counts) < FEW_COUNTS:
            return {}
        address = 0
        for piece in pieces(counts):
            address |= int(np.bitwise_or.reduce(piece["address"]))
        mode = "sample" if (self.folder.parent / FAULTS).is_dir() else "counts"
        return {"mode": mode, "granularity": min(max(address & -address, 64), 2 << 20),
                "page_size": 4096}

    def _warn(self, is_damaged):
        self.warnings += [f"{self.folder}: {_told(loss)}" for loss in self.info.get("lost", [])]
        self.warnings += [f"{self.folder}: {sentence}" for sentence in self.info.get("missing", [])]
        if self.info.get("end_ns") is None and not is_damaged:
            self.warnings.append(f"{self.folder}: the recording has no end: the recorder was stopped, "
                                 "or has not finished; it goes as far as it was written")

    def _warn_of_losses(self, ended):
        """Of what the tracker had no room for, where no recorder was told of it, which says it."""
        if ended and self.info["mode"] == "first-touch":
            return
        for name, what in OF_TRACKER.items():
            if count := records.lost(self.folder / f"{name}.rec"):
                self.warnings.append(f"{self.folder}: " + _told({
                    "count": count, "what": what, "why": "the disk was full, files were limited, or the "
                    "recording had reached its limit"}))

    def _read_strings(self, sums, is_needed):
        path = self.folder / STRINGS
        source = records.Source(path, (sums or {}).get(STRINGS), is_needed and sums is None, self._tell,
                                1 if self.info.get("end") == "exec" else None)
        self._strings_are_told = source.is_told
        if not source.is_there:
            if len(self.modules) and not source.is_told:
                self._tell(path, "is missing")
            self._strings_are_told = True
            return b""
        try:
            return files.read_regular(path, files.DESCRIPTION_LIMIT)[:source.size]
        except OSError as problem:
            self._tell(path, f"can't be read: {problem.strerror}")
            self._strings_are_told = True
            return b""

    def _leave_out(self, name, wrong):
        """`wrong`: masks of records and what is wrong with them."""
        bad = None
        for mask, what in wrong:
            if not mask.any():
                continue
            if bad is None:
                bad, first, told = mask, int(np.argmax(mask)), what
                continue
            if int(np.argmax(mask)) < first:
                first, told = int(np.argmax(mask)), what
            bad = bad | mask
        if bad is None:
            return
        count = int(np.count_nonzero(bad))
        found = getattr(self, name)
        self._tell(self.folder / f"{name}.rec", f"is damaged: {count:,} of its {len(bad):,} records "
                   f"{'is' if count == 1 else 'are'} left out, as record {first + 1} {told}")
        if name in NUMBERED:
            cleared = np.array(found)
            cleared[bad] = np.zeros((), cleared.dtype)
            setattr(self, name, cleared)
        else:
            setattr(self, name, records.without(found, ~bad))

    def _limits(self):
        """By names of files: what makes a record one that can't be, and numbers of other files' records with
        the most that there are."""
        threads = self._threads_limit()
        wrong = {
            "threads": [(_beyond("event", 3), "has an unknown event"),
                        (_no_thread("thread", threads, True), "has a thread far beyond all others")],
            "modules": [(_beyond("event", 2), "has an unknown event"),
                        (lambda piece: piece["end"] <= piece["begin"], "ends before it begins"),
                        (_beyond("end", MOST_ADDRESS), "has an address that can't be")],
            "allocations": [(_beyond("event", 4), "has an unknown event"),
                            (_beyond("what", len(KINDS) - 1), "is of no known kind"),
                            (_beyond("address", MOST_ADDRESS), "has an address that can't be"),
                            (lambda piece: (piece["size"] > MOST_ADDRESS) | (
                                (piece["event"] == ALLOCATION_FILLED) & (piece["size"] > MOST_FILLED)),
                             "is larger than can be")],
            "phases": [(_beyond("event", 3), "has an unknown event")],
            "names": [(_beyond("event", 1), "has an unknown event")],
            "touches": [(_beyond("flags", 31), "has unknown flags"),
                        (_no_thread("thread", threads, True), "has a thread far beyond all others"),
                        (lambda piece: (piece["bytes"] > LARGEST_PAGE)
                         | (piece["bytes"] & (piece["bytes"] - np.uint64(1)) != 0),
                         "is of a page of a size that no processor has")],
            "first": [(_beyond("flags", 7), "has unknown flags"),
                      (_beyond("address", MOST_ADDRESS), "has an address that can't be"),
                      (_no_thread("thread", threads, True), "has a thread far beyond all others")],
            "bytes": [(_beyond("flags", 1), "has unknown flags"),
                      (_beyond("address", MOST_ADDRESS), "has an address that can't be"),
                      (_no_thread("thread", threads, True), "has a thread far beyond all others")],
            "counts": [(_beyond("address", MOST_ADDRESS), "has an address that can't be"),
                       (_no_thread("thread", threads, False), "has a thread that can't be")]
            + [(_beyond(field, MOST_ACCESSES), f"has more {field.replace('_', ' ')} than can be")
               for field in ("reads", "writes", "bytes_read", "bytes_written")],
            "communication": [(_no_thread(field, threads, False), f"has a {field} that can't be")
                              for field in ("producer", "consumer")]
            + [(_beyond("bytes", MOST_ACCESSES), "has more bytes than can be")],
        }
        stacks, allocations = len(self.stacks), len(self.allocations)
        numbers = {"allocations": {"stack_id": stacks},
                   "touches": {"stack_id": len(self.touch_stacks)},
                   "first": {"stack_id": len(self.touch_stacks), "allocation": allocations},
                   "counts": {"allocation": allocations}, "bytes": {"allocation": allocations}}
        return wrong, numbers

    def _threads_limit(self):
        """Threads have numbers below this."""
        names = ("threads", "counts", "first", "touches", "bytes")
        one = np.uint32(1)  # no_thread becomes 0
        most = max((int((piece["thread"] + one).max()) for name in names
                    for piece in pieces(getattr(self, name))), default=0)
        if most <= FEW_THREADS:
            return FEW_THREADS
        seen = np.zeros(MOST_THREADS + 2, bool)
        for name in names:
            for piece in pieces(getattr(self, name)):
                seen[np.minimum(piece["thread"] + one, np.uint32(MOST_THREADS + 1))] = True
        numbers = np.flatnonzero(seen[1:-1])
        beyond = numbers[numbers >= FEW_THREADS + 4 * np.arange(1, len(numbers) + 1)]
        return int(beyond[0]) if len(beyond) else MOST_THREADS

    def _check(self):
        for name in STACKS:
            stacks = getattr(self, name)
            late = stacks["caller"] >= np.arange(1, len(stacks) + 1)
            self._leave_out(name, [(stacks["place"] == 0, NEVER_FINISHED), (stacks["place"] > 2, "is of no known kind"),
                                   (late, "is called by one that comes after it")])
        wrong, numbers = self._limits()
        for name, (_, fields) in FILES.items():
            if name not in STACKS:
                self._check_file(name, fields[0][0], wrong.get(name, []), numbers.get(name, {}))
        outside = self.modules["path_offset"] + self.modules["path_bytes"] > len(self._strings)
        if outside.any() and not self._strings_are_told:
            self._tell(self.folder / STRINGS, f"is cut off: {outside.sum()} modules have no name")

    def _check_file(self, name, first, rules, numbers):
        found = getattr(self, name)
        rules = [(lambda piece: piece[first] == 0, NEVER_FINISHED), *rules]
        bad, beyond, at = [None] * len(rules), dict.fromkeys(numbers, 0), 0
        for piece in pieces(found):
            for index, (is_wrong, _) in enumerate(rules):
                mask = is_wrong(piece)
                if mask.any():
                    if bad[index] is None:
                        bad[index] = np.zeros(len(found), bool)
                    bad[index][at:at + len(piece)] = mask
            for field, most in numbers.items():
                if piece[field].max() > most:
                    beyond[field] += int(np.count_nonzero(piece[field] > most))
            at += len(piece)
        self._leave_out(name, [(mask, what) for mask, (_, what) in zip(bad, rules) if mask is not None])
        found = getattr(self, name)
        for field in numbers:
            if beyond[field]:
                self._tell(self.folder / f"{name}.rec", f"has {beyond[field]:,} records that refer to "
                           f"{'an allocation' if field == 'allocation' else 'calls'} that was not written",
                           "what they refer to")
        most = {field: most for field, most in numbers.items() if beyond[field]}
        if most:
            found = Chosen(getattr(found, "mapped", found), getattr(found, "good", None), most)
        setattr(self, name, found if name in LARGE else np.asarray(found))

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
            known = np.empty(len(records), [*records.dtype.descr, ("thread", "<i8")])
            for field in records.dtype.names:
                known[field] = records[field]
            known["thread"] = self.thread_of(records["tid"], records["time_ns"])
            setattr(self, name, known)

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
        before = [image for image in images if (image.info.get("start_ns") or 0) <= start or not start]
        if not before:
            self.warnings.append(f"{self.folder}: first touches are known of bursts only, where the page "
                                 f"was not there before: {FAULTS}/ has none of it")
            return
        image = max(before, key=lambda one: one.info.get("start_ns") or 0)
        self._warn_of_the_end(image)
        known = image.threads[image.threads["thread"] < MOST_THREADS]
        tids = np.zeros(int(known["thread"].max(initial=0)) + 1, "<u8")
        tids[known["thread"]] = known["tid"]
        touches = np.array(image.touches)
        thread = touches["thread"]
        numbers = self.thread_of(tids[np.minimum(thread, len(tids) - 1)], touches["time_ns"])
        touches["thread"] = np.where(thread < len(tids), numbers, -1).astype("<u4")
        touches["stack_id"] = 0  # of code that the counting recorder has made
        self.touches = touches
        self.damage += image.damage
        self.warnings += [f"{image.folder}: {_told(loss)}" for loss in image.info.get("lost", [])]
        self.warnings += [f"{self.folder}: {sentence}" for sentence in image.info.get("missing", [])]

    def _warn_of_the_end(self, image):
        """Of first touches that the recorder beside, which was stopped, has not seen."""
        if image.info.get("end_ns") is not None or any(one.file == description.NAME for one in image.damage):
            return
        last = max((int(piece["time_ns"].max()) for piece in pieces(image.touches)), default=0)
        end = self.info.get("end_ns") or max(
            [int(getattr(self, name)[field].max(initial=0)) for name, field in
             (("threads", "time_ns"), ("intervals", "end_ns"), ("allocations", "time_ns"))]
            + [int(piece["time_ns"].max()) for piece in pieces(self.first)])
        if end > last:
            start = self.info.get("start_ns") or image.info.get("start_ns") or last
            self.warnings.append(f"{image.folder}: first touches are known of the first "
                                 f"{max(last - start, 0) / 1e9:.1f} s only: the recorder was stopped")

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
    """All processes of a recording, ranks first; `warnings` and `damage` are those of all."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        if not self.folder.is_dir():
            raise Error(f"{folder} is no folder with a recording" if self.folder.exists() else
                        f"{folder} does not exist")
        self.left_out = []  # damage by which nothing is known of a process
        self.told = []  # warnings of the whole
        inside = os.listdir(self.folder)
        is_one = description.NAME in inside or (
            not any(_is_of_a_process(self.folder / name) for name in inside)
            and any(name.endswith(".rec") for name in inside))
        if is_one:
            self.processes = [Process(self.folder)]
        else:
            self.processes = self._read_all()
            self._miss_ranks()
        self.processes.sort(key=_order)
        self._join_faults(self.folder.parent if is_one else self.folder)

    def _read_all(self):
        folders = sorted(entry for entry in self.folder.iterdir() if _is_of_a_process(entry))
        if not folders:
            raise Error(f"{self.folder} holds no recording: no folder in it has a process.json")
        return _processes(folders, self.left_out)

    def _miss_ranks(self):
        """Ranks of the job that aren't there. Where most are, the others have been lost; else they may be
        in folders of other nodes, or were not to be recorded."""
        sizes = [process.info["size"] for process in self.ranks if process.info.get("size") is not None]
        size = max(sizes, default=0)
        if not 0 < size <= MOST_RANKS:
            return
        known = {process.info["rank"] for process in self.ranks}
        lacking = [rank for rank in range(size) if rank not in known]
        told = {one.path.name for one in self.left_out}
        there = set(os.listdir(self.folder))
        try:
            there_of_faults = set(os.listdir(self.folder / FAULTS))
        except OSError:
            there_of_faults = set()
        for name in [f"rank-{rank:05}" for rank in lacking]:
            if name not in told and (2 * len(lacking) < size or name in there or name in there_of_faults):
                what = "is no folder" if name in there else "is missing"
                self.left_out.append(damage.of(self.folder / name, f"{what}: the job had {size} ranks",
                                               "the whole process"))
                told.add(name)
        elsewhere = [rank for rank in lacking if f"rank-{rank:05}" not in told]
        if elsewhere:
            self.told.append(f"{self.folder}: of the job's {size} ranks {len(elsewhere)} are not in it, rank "
                             f"{elsewhere[0]} for one: they were recorded elsewhere, not at all, or are lost")

    def _join_faults(self, folder):
        """Gives processes of mode sample the touches that the kernel told of another recorder."""
        samples = [process for process in self.processes if process.info["mode"] == "sample"]
        if not samples:
            return
        faults = folder / FAULTS
        try:
            everyone = sorted(entry for entry in (faults / name for name in os.listdir(faults))
                              if _is_of_a_process(entry))
        except FileNotFoundError:  # so it is, too, where the kernel tells nothing, and then nobody says it's there
            if any(process.info.get("faults") for process in samples):
                self.left_out.append(damage.of(faults, "is missing", "first touches"))
            everyone = None
        except OSError as problem:
            self.left_out.append(damage.of(faults, f"can't be read: {problem.strerror}", "first touches"))
            everyone = None
        folders = everyone or []
        if self.folder != folder:  # other processes' are no matter of one alone
            folders = [entry for entry in folders if _is_about(entry, samples[0])]
        images = {}
        for image in _processes(folders, self.left_out, must=False) if folders else []:
            images.setdefault((image.info.get("host"), image.info["pid"]), []).append(image)
            images.setdefault(image.name, []).append(image)
        pids = {process.info["pid"] for process in samples}
        for process in samples:
            found = images.get((process.info.get("host"), process.info["pid"])) \
                or images.get(process.name, [])
            process.join_faults(found)
            # Of those that others have made or replaced the recorder may have seen too little for a folder.
            is_always = process.info.get("end_ns") is not None and process.info.get("end") != "exec" \
                and (process.info.get("rank") is not None or process.info.get("parent") not in pids)
            path = faults / process.name
            if not found and everyone is not None and is_always and path not in folders \
                    and not _was_stopped(everyone, process):
                self.left_out.append(damage.of(path, "is missing", "first touches"))

    @property
    def warnings(self):
        return damage.once(self.told + [text for process in self.processes for text in process.warnings])

    @property
    def damage(self):
        return damage.once(self.left_out + [one for process in self.processes for one in process.damage])

    def leave_out(self, process, what):
        """Does without a process, whose damage stays known."""
        self.processes.remove(process)
        self.left_out += [damage.of(process.folder, f"is left out: it {what}", "the whole process"),
                          *process.damage]

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


def _is_of_a_process(entry):
    """Whether it is the folder of a process, described or not; one that can't be read, by its name."""
    if entry.name == FAULTS:
        return False
    is_named = OF_A_PROCESS.fullmatch(entry.name) is not None
    try:
        inside = os.listdir(entry)
    except NotADirectoryError:
        return False
    except OSError:
        return is_named
    return is_named or any(name == description.NAME or name.endswith(".rec") for name in inside)


def _described(folder):
    """What is whole of its description."""
    try:
        return description.read(folder)[0]
    except Error:
        return {}


def _is_about(entry, process):
    """Whether that folder is of this process."""
    return _described(entry).get("pid") == process.info["pid"] or entry.name == process.name


def _was_stopped(folders, process):
    """Whether the recorder of a process's faults was stopped before its end, by what it left of others."""
    known = [_described(folder) for folder in folders]
    return any(info.get("end_ns") is None for info in known
               if info and info.get("host") == process.info.get("host"))


def _processes(folders, left_out, must=True):
    """The processes of these folders. What can't be used is added to `left_out`; if that is all, and there
    must be one, it is an Error."""
    described = {folder: _described(folder) for folder in folders}
    read, problems = [], []
    for folder in folders:
        try:
            read.append(Process(folder, [info for other, info in described.items() if other != folder]))
        except Error as problem:
            problems.append(problem)
            left_out.append(damage.of(folder, f"is left out, as nothing describes it: {problem}",
                                      "the whole process"))
    if must and not read:
        raise Error(str(problems[0]) if len(problems) == 1 else
                    f"{problems[0]} (and {len(problems) - 1} more are left out alike)")
    return read


def _order(process):
    rank = process.info.get("rank")
    return (rank is None, rank or 0, process.info.get("start_ns") or 0, process.name)


def open(folder):  # as in gzip.open
    """The recording in a folder."""
    return Recording(os.fspath(folder))
