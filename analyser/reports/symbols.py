"""Places in the source of addresses in the code: all of a recording at once.

    symbolizer = Symbolizer(trace)
    symbolizer.resolve(sites)           # one run of llvm-symbolizer or eu-addr2line
    symbolizer.frames(site)             # innermost first, inlined functions too
    symbolizer.own_frame(site)          # the innermost that is the program's own

llvm-symbolizer (of any version) is preferred; eu-addr2line of elfutils does as well. Without either,
frames have no lines, and `missing` says so.
"""

import collections
import functools
import json
import os
import re
import shutil
import subprocess

import numpy as np

from . import elf, recording

Frame = collections.namedtuple("Frame", "function file line column")
Code = collections.namedtuple("Code", "path address")  # as the file counts addresses

# Folders of others' headers and libraries: no place that a user would change.
FOREIGN = re.compile(r"^(/usr/(?!local/src|src)|/lib|/build/|/opt/rh/|\.\./|\./|<)")
TIME_LIMIT_S = 600


def find_symbolizer():
    """("llvm" or "elfutils", path), or (None, None)."""
    chosen = os.environ.get("WARREN_SYMBOLIZER")
    names = ["llvm-symbolizer"] + [f"llvm-symbolizer-{version}" for version in range(25, 12, -1)]
    for name in [chosen] if chosen else names + ["eu-addr2line"]:
        path = shutil.which(name)
        if path:
            return ("elfutils" if "addr2line" in os.path.basename(path) else "llvm"), path
    return None, None


class Modules:
    """The files that a process had mapped, by address."""

    def __init__(self, process):
        self.process = process
        records = process.modules
        self.records = records[records["event"] == recording.MODULE_LOADED]
        self.records = self.records[np.argsort(self.records["begin"], kind="stable")]
        self._begins = self.records["begin"].astype("<u8")

    def find(self, address):
        """The record of the module that an address is in, or None. Of several that were there one
        after the other, the last."""
        at = int(np.searchsorted(self._begins, np.uint64(address), "right")) - 1
        for record in self.records[max(at - 64, 0):at + 1][::-1]:  # overlaps are of a few
            if int(record["end"]) > address:
                return record
        return None

    def path(self, record):
        return self.process.path(record)

    def address_in_file(self, record, file):
        """Where in the file's own addresses the record begins; None: nowhere."""
        found = file.addresses_of_offset(int(record["file_offset"]))
        if len(found) < 2:
            return found[0] if found else None
        # Of the two that have the page, the one that is as far from the file's beginning in memory.
        path = self.path(record)
        before = self.records[:int(np.searchsorted(self._begins, record["begin"], "right"))]
        for other in before[before["file_offset"] == 0][::-1]:
            start = file.addresses_of_offset(0)
            if start and self.path(other) == path:
                wanted = int(record["begin"]) - int(other["begin"]) + start[0]
                return wanted if wanted in found else found[0]
        return found[0]


class Symbolizer:
    def __init__(self, trace):
        self.trace = trace
        self.missing = []  # sentences
        self._modules = [Modules(process) if process is not None else None
                         for process in trace.processes]
        self._kind, self._program = find_symbolizer()
        self._frames = {}
        self._told = set()
        # Caches of this one alone, which go with it, and with the recording's mapped files.
        self.file = functools.lru_cache(None)(self.file)
        self.code = functools.lru_cache(None)(self.code)

    def tell(self, sentence):
        if sentence not in self._told:
            self._told.add(sentence)
            self.missing.append(sentence)

    def file(self, path, build_id=""):
        """The ELF file, None if it is not there or another than the recorded one."""
        if not path.startswith("/") or path.endswith(" (deleted)"):
            return None
        try:
            found = elf.File(path)
            there = found.build_id()
        except elf.Error as problem:
            self.tell(f"no names from {problem}")
            return None
        if build_id and there and there != build_id:
            self.tell(f"{path} has changed since the recording (another build id): no names from it")
            return None
        return found

    def module(self, process, address):
        """(record, ELF file or None, the file's own address) of an address; None: in no module."""
        modules = self._modules[process]
        record = modules.find(address) if modules is not None else None
        if record is None:
            return None
        path = modules.path(record)
        file = self.file(path, modules.process.build_id(record))
        inside = None
        if file is not None:
            begin = modules.address_in_file(record, file)
            if begin is not None:
                inside = address - int(record["begin"]) + begin
        return record, file, inside

    def code(self, process, address, is_return):
        """The Code of an address; of a return address, that of the call."""
        found = self.module(process, address)
        if found is None or found[2] is None:
            return None
        return Code(found[1].path, found[2] - (1 if is_return else 0))

    def codes(self, site):
        one = self.trace.sites[site]
        return [self.code(one.process, address, is_return)
                for address, is_return in zip(one.addresses, one.returns)]

    def resolve(self, sites):
        wanted = {code for site in sites for code in self.codes(site)
                  if code is not None and code not in self._frames}
        if not wanted:
            return
        if self._program is None:
            self.tell("no lines of the source: neither llvm-symbolizer nor eu-addr2line is installed "
                      "(Debian: llvm or elfutils)")
            return
        wanted = sorted(wanted)
        run = self._run_llvm if self._kind == "llvm" else self._run_elfutils
        try:
            run(wanted)
        except (OSError, subprocess.SubprocessError, ValueError) as problem:
            self.tell(f"no lines of the source: {self._program} failed: {problem}")

    def _run_llvm(self, codes):
        lines = "".join(f'"{code.path}" {code.address:#x}\n' for code in codes)
        done = subprocess.run([self._program, "--output-style=JSON", "--inlines", "--demangle"],
                              input=lines, capture_output=True, text=True, timeout=TIME_LIMIT_S,
                              check=False, errors="surrogateescape")
        answers = [line for line in done.stdout.splitlines() if line.strip()]
        if len(answers) != len(codes):
            raise ValueError(f"{len(answers)} answers to {len(codes)} questions "
                             f"{done.stderr.strip()[:200]}")
        for code, line in zip(codes, answers):
            self._frames[code] = [
                Frame(symbol.get("FunctionName", ""), symbol.get("FileName", ""),
                      int(symbol.get("Line", 0)), int(symbol.get("Column", 0)))
                for symbol in json.loads(line).get("Symbol", [])]

    def _run_elfutils(self, codes):
        for path in sorted({code.path for code in codes}):
            own = [code for code in codes if code.path == path]
            # A line of its own behind each answer's frames tells where it ends: address 0.
            lines = "".join(f"{code.address:#x}\n0x0\n" for code in own)
            done = subprocess.run([self._program, "-e", path, "-i", "-f", "-C", "-A", "-a"],
                                  input=lines, capture_output=True, text=True, timeout=TIME_LIMIT_S,
                                  check=False, errors="surrogateescape")
            found = re.split(r"(?m)^(0x[0-9a-f]+)\n", done.stdout)[1:]
            answers = {int(address, 16): text.splitlines()
                       for address, text in zip(found[::2], found[1::2])}
            for code in own:
                text = answers.get(code.address, [])
                frames = []
                for function, place in zip(text[::2], text[1::2]):
                    parts = re.match(r"(.*?)(?::(\d+))?(?::(\d+))?$", place)
                    frames.append(Frame(re.sub(r" inlined at .*", "", function).replace("??", ""),
                                        parts[1].replace("??", ""), int(parts[2] or 0),
                                        int(parts[3] or 0)))
                self._frames[code] = frames

    def frames(self, site):
        """All frames of a site, innermost first; what is not known is left out."""
        if site < 0:
            return []
        return [frame for code in self.codes(site) if code is not None
                for frame in self._frames.get(code, [])]

    def own_frames(self, site):
        """Those in the program's own source, innermost first."""
        return [frame for frame in self.frames(site)
                if frame.file and frame.line and not FOREIGN.match(frame.file)]

    def own_functions(self, site):
        """Names of functions in files of the program's own, innermost first, lines or not."""
        if site < 0:
            return []
        return [frame.function for code in self.codes(site)
                if code is not None and not FOREIGN.match(code.path)
                for frame in self._frames.get(code, []) if frame.function]

    def header_line(self, site):
        """The line in a library's header that the innermost address in a file of the program's own comes
        from, a template's that is not inlined; empty: none."""
        for code in self.codes(site) if site >= 0 else []:
            for frame in reversed(self._frames.get(code, [])):
                if frame.file and frame.line and not FOREIGN.match(code.path):
                    return recording.shown(f"{os.path.basename(frame.file)}:{frame.line}")
        return ""

    def fallback(self, site):
        """`libfoo.so+0x1234` of the innermost address in a file of the program's own, else in any file,
        or "unknown"."""
        codes = [code for code in self.codes(site) if code is not None] if site >= 0 else []
        own = [code for code in codes if not FOREIGN.match(code.path)]
        for code in own + codes:
            return recording.shown(f"{os.path.basename(code.path)}+{code.address:#x}")
        return "unknown"
