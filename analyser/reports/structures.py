"""Which data structure each unit of memory belongs to, with its name and where it was allocated.

A structure is what has the same name and the same place of allocation, in all processes. Its name
comes from the program (warren/locality.h), else from the source at the allocating call
(declarators.py), else, for variables, from the symbols of the program or library; stacks are
structures of their own. Where a name is missing, `reason` says why.
"""

import collections
import dataclasses
import os
import re
import shutil
import subprocess

import numpy as np

from . import declarators, recording

OTHER = "(other memory)"
# Variables of the libraries that recorders load into programs, which no change to these would move.
RECORDER, OF_RECORDER = "(recorder)", re.compile(r"libwarren-(tracker|hooks|counts)\.so(\.\d+)*")
# Bytes of a variable that is a structure of its own; smaller ones are their file's, all together.
SMALLEST_VARIABLE = 4096
# How far before a line variables are looked for that reach into it.
LARGEST_SYMBOL = 1 << 16


@dataclasses.dataclass
class Structure:
    name: str
    kind: str          # one of recording.KINDS, "static" or "other"
    file: str = ""     # of the allocating statement
    line: int = 0
    function: str = ""
    place: str = ""    # library and offset, where there is no line
    reason: str = ""   # why there is no better name
    named: bool = True
    allocations: int = 0
    processes: int = 0

    @property
    def location(self):
        return recording.shown(f"{os.path.basename(self.file)}:{self.line}" if self.line else self.place)


def find(trace, symbolizer):
    """(structures, index of each unit's). Resolves the places that it needs."""
    finder = _Finder(trace, symbolizer)
    return finder.structures, finder.unit_structure


def of_allocations(trace, symbolizer, rows):
    """The structure of each of these rows of the allocations, whether they have units or not."""
    finder = _Finder(trace, symbolizer)
    of_row = finder.name_allocations(np.asarray(rows, "<i4"), collections.defaultdict(set))
    return [finder.structures[of_row[row]] for row in rows]


class _Finder:
    def __init__(self, trace, symbolizer):
        self.trace, self.symbolizer = trace, symbolizer
        self.structures = []
        self._index = {}
        rows = np.unique(trace.unit_allocation)
        processes = collections.defaultdict(set)
        of_row = self.name_allocations(rows[rows >= 0], processes)
        self.unit_structure = of_row[trace.unit_allocation]
        self._name_outside(processes)
        for structure, members in processes.items():
            self.structures[structure].processes = len(members)

    def name_allocations(self, rows, processes):
        """The structures of these rows, -1 for others and at the end; adds to their processes."""
        trace = self.trace
        sites = np.unique(trace.allocation_site[rows]) if len(rows) else np.empty(0, "<i4")
        # Of an allocate statement all blocks are needed to tell them apart.
        everything = np.unique(trace.allocation_site) if len(rows) else sites
        self.symbolizer.resolve([int(site) for site in everything if site >= 0])
        self._number_calls(everything)
        names = {int(site): self._of_site(int(site)) for site in sites}
        given = self._given_names()
        of_row = np.full(len(trace.allocation_site) + 1, -1, "<i4")
        for row in rows.tolist():
            structure = self._allocated(row, names, given)
            of_row[row] = structure
            self.structures[structure].allocations += 1
            processes[structure].add(int(trace.allocation_process[row]))
        return of_row

    def _add(self, structure):
        key = (structure.name, structure.file, structure.line, structure.place, structure.kind)
        if key not in self._index:
            self._index[key] = len(self.structures)
            self.structures.append(structure)
        return self._index[key]

    def _given_names(self):
        """Names that the program gave, by row of the allocation."""
        trace, given = self.trace, {}
        for index, process in enumerate(trace.processes):
            if process is None or not len(process.names):
                continue
            rows = np.flatnonzero(trace.allocation_process == index)
            begins, sizes = trace.allocation_address[rows], trace.allocation_size[rows]
            for record in process.names:
                address = int(record["address"])
                inside = (begins <= address) & (address < begins + sizes) & \
                    (trace.allocation_begin[rows] <= record["time_ns"])
                found = rows[inside]
                if len(found):
                    row = found[np.argmax(trace.allocation_begin[found])]
                    text = bytes(record["name"]).split(b"\0")[0]
                    given[int(row)] = text.decode("utf-8", "replace")
        return given

    def _allocated(self, row, names, given):
        trace = self.trace
        kind = recording.KINDS[trace.allocation_kind[row]]
        site = int(trace.allocation_site[row])
        if kind == "stack":
            thread = int(trace.allocation_thread[row])
            label = f"of {trace.thread_label(thread)}" if thread >= 0 else ""
            return self._add(Structure(f"stack {label}".strip(), "stack"))
        found = names.get(site) or Structure("", kind, named=False,
                                             reason="the recording has no call stack of it")
        found = dataclasses.replace(found, kind=kind, allocations=0)
        if row in given:
            found = dataclasses.replace(found, name=given[row], named=True, reason="")
        if not found.name:
            found.name = f"({kind.replace('_', ' ')})"
        return self._add(found)

    # Sites: statements of the source.

    def _own_places(self, site):
        """(code, frame) of the program's own frames, innermost first."""
        own = set(self.symbolizer.own_frames(site))
        places = []
        for code in self.symbolizer.codes(site):
            if code is not None:
                places += [(code, frame) for frame in self.symbolizer._frames.get(code, [])
                           if frame in own]
        return places

    def _number_calls(self, sites):
        """The calls of a statement with several, in the order of their code."""
        calls = collections.defaultdict(set)
        for site in sites.tolist():
            if site >= 0:
                for code, frame in self._own_places(site)[:1]:
                    calls[frame.file, frame.line].add(code)
        self._calls = {place: sorted(codes) for place, codes in calls.items()}

    def _of_site(self, site):
        if site < 0:
            return None
        places = self._own_places(site)
        if not places:
            return self._without_source(site)
        fallback = None
        try:
            for code, frame in places:
                position = None
                calls = self._calls.get((frame.file, frame.line), [])
                if code in calls:
                    position = (calls.index(code), len(calls))
                name = declarators.name_at(frame.file, frame.line, frame.column, position)
                if name is None:
                    continue
                found = Structure(name, "heap", frame.file, frame.line, frame.function)
                if not declarators.is_handed_on(frame.file, frame.line, frame.column, name):
                    return found
                fallback = fallback or found
        except declarators.Unavailable as problem:
            self.symbolizer.tell(str(problem))
        if fallback:
            return fallback
        frame = places[0][1]
        reason = "the statement names nothing"
        if not os.path.exists(frame.file):
            reason = f"the source file {frame.file} is not there"
        return Structure(f"({frame.function or 'unnamed'})", "heap", frame.file, frame.line,
                         frame.function, reason=reason, named=False)

    def _without_source(self, site):
        place = self.symbolizer.fallback(site)
        functions = self.symbolizer.own_functions(site)
        module = place.split("+")[0]
        reason = f"{module} has no lines of source for it (compile with -g)"
        if place == "unknown":
            reason = "its call stack is in no file that is there"
        return Structure(f"({functions[0] if functions else module})", "heap", place=place,
                         function=functions[0] if functions else "", reason=reason, named=False)

    # Units in no allocation: variables and the rest.

    def _name_outside(self, processes):
        trace = self.trace
        outside = np.flatnonzero(self.unit_structure < 0)
        for process in np.unique(trace.unit_process[outside]).tolist():
            units = outside[trace.unit_process[outside] == process]
            for begin, end, module in self._ranges(process):
                addresses = trace.unit_address[units]
                inside = units[(addresses + np.uint64(trace.granularity) > begin)
                               & (addresses < end) & (self.unit_structure[units] < 0)]
                if len(inside):
                    self._name_statics(inside, module, processes, process)
        rest = np.flatnonzero(self.unit_structure < 0)
        if len(rest):
            reason = "in no allocation that was recorded: too small, or of the system"
            if trace.mode in ("counts", "sample") and len(trace.allocation_address) == 0:
                reason = "no allocations are recorded"
            other = self._add(Structure(OTHER, "other", named=False, reason=reason))
            self.unit_structure[rest] = other
            processes[other].update(np.unique(trace.unit_process[rest]).tolist())

    def _ranges(self, process):
        """(begin, end, (path, file, what to add to the file's addresses)) of loaded files."""
        modules = self.symbolizer._modules[process]
        found = {}
        for record in modules.records if modules is not None else []:
            path = modules.path(record)
            begin, end, file, bias = int(record["begin"]), int(record["end"]), None, 0
            located = self.symbolizer.module(process, begin)
            if located and located[1] is not None and located[2] is not None:
                file, bias = located[1], begin - located[2]
                end = max(end, (bias + file.end_of_memory() + 4095) & ~4095)
            low, high, module = found.get((path, bias), (begin, end, (path, file, bias)))
            found[path, bias] = (min(low, begin), max(high, end), module)
        return list(found.values())

    def _name_statics(self, units, module, processes, process):
        path, file, bias = module
        library = recording.shown(os.path.basename(path)) or "unknown"
        if OF_RECORDER.fullmatch(library):
            own = self._add(Structure(RECORDER, "other", named=False, reason="the recorder's own variables"))
            self.unit_structure[units] = own
            processes[own].add(process)
            return
        whole = self._add(Structure(f"({library})", "static", place=library, named=False,
                                    reason="variables of less than a page, or without symbols"))
        starts, sizes, names = file.variables if file is not None else ((), (), [])
        if len(starts) == 0:
            self.unit_structure[units] = whole
            processes[whole].add(process)
            return
        pages = self.trace.unit_address[units].astype("<i8") - bias
        ends = starts + sizes
        low = np.searchsorted(starts, np.maximum(pages, 0).astype("<u8"), "right") - 1
        high = np.searchsorted(starts, np.maximum(pages + self.trace.granularity, 0).astype("<u8"))
        demangled = _demangled(names)
        for unit, page, first, last in zip(units.tolist(), pages.tolist(), low.tolist(),
                                           high.tolist()):
            # The variable with most bytes in the page.
            best, most = -1, 0
            for one in range(max(first, 0), min(last, max(first, 0) + 256)):
                common = min(int(ends[one]), page + self.trace.granularity) - max(int(starts[one]), page)
                if common > most:
                    best, most = one, common
            structure = whole
            if best >= 0 and int(sizes[best]) >= SMALLEST_VARIABLE:
                structure = self._add(Structure(demangled(names[best]), "static", place=library))
            self.unit_structure[unit] = structure
            processes[structure].add(process)


def variables_at(trace, symbolizer, units):
    """The names of the variables that overlap these units, in the order of the units."""
    names = {}
    for unit in units.tolist():
        address = int(trace.unit_address[unit])
        for at in (address, address + trace.granularity - 1):  # it may begin in another segment
            found = symbolizer.module(int(trace.unit_process[unit]), at)
            if found is None or found[2] is None:
                continue
            starts, sizes, all_names = found[1].variables
            begin = found[2] - (at - address)
            first = int(np.searchsorted(starts, np.uint64(max(begin - LARGEST_SYMBOL, 0))))
            last = int(np.searchsorted(starts, np.uint64(max(begin + trace.granularity, 0))))
            for one in range(first, last):
                if int(starts[one] + sizes[one]) > begin:
                    names[all_names[one]] = None
    readable = _demangled(list(names))
    return [readable(name) for name in names]


def _demangled(names):
    """A function that makes C++'s and Fortran's symbols readable."""
    table = {}
    mangled = [name for name in names if name.startswith("_Z")]
    filter_program = shutil.which("c++filt")
    if mangled and filter_program:
        try:
            done = subprocess.run([filter_program], input="\n".join(mangled) + "\n",
                                  capture_output=True, encoding="utf-8", errors="replace",
                                  timeout=60, check=False)
            lines = done.stdout.splitlines()
            if len(lines) == len(mangled):
                table = dict(zip(mangled, lines))
        except (OSError, subprocess.SubprocessError):
            pass

    def readable(name):
        fortran = re.fullmatch(r"__(\w+?)_MOD_(\w+)", name)
        if fortran:
            return f"{fortran[1]}::{fortran[2]}"
        return table.get(name, re.sub(r"\.\d+$", "", name))  # a function's static: name.0

    return readable
