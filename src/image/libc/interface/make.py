#!/usr/bin/env python3
"""The table of what the C library exports and keeps state for (table.tsv beside this file): what of it images have of
their own, what they share, and what is refused.

    make.py [FOLDER]           writes the table by the libraries in FOLDER (default: the system's), keeping rows of others
    make.py --check [FOLDER]   says what the table lacks, and is wrong about

A function keeps state if its code, or what it calls that is not exported, refers to writable memory of the library,
directly or by the table of variables that programs may copy, or has a system call, which may ask for state of the
kernel's. So an exported function that has no row keeps none. Names of old versions, which no new program is linked to, and the
C library's private names have no rows.
"""
import argparse
import bisect
import collections
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parents[2]
LIBRARIES = ("libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "libutil.so.1", "libresolv.so.2",
             "libanl.so.1")
FOLDER = "/lib/x86_64-linux-gnu"


def output_of(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


class Library:
    """The exported names of a file, and which functions refer to writable memory or the kernel's state."""

    def __init__(self, path):
        self.path = path
        self.functions = collections.defaultdict(list)  # by address
        self.variables = set()
        self.versions = set()
        self.begins = set()  # of functions, as far as they are known
        for line in output_of("readelf", "-W", "--dyn-syms", path).splitlines():
            words = line.split()
            if len(words) < 8 or words[6] in ("UND", "ABS") or "@" not in words[7]:
                continue
            self.begins.add(int(words[1], 16))
            if "@@" not in words[7] or "PRIVATE" in words[7]:
                continue
            name, version = words[7].split("@@")
            self.versions.add(version)
            if words[3] in ("FUNC", "IFUNC"):
                self.functions[int(words[1], 16)].append(name)
            elif words[3] == "OBJECT":
                self.variables.add(name)
        self.sections = {}
        for line in output_of("readelf", "-W", "-S", path).splitlines():
            match = re.match(r"\s*\[\s*\d+\]\s+(\S+)\s+\S+\s+([0-9a-f]+)\s+[0-9a-f]+\s+([0-9a-f]+)", line)
            if match:
                begin = int(match[2], 16)
                self.sections[match[1]] = (begin, begin + int(match[3], 16))
        self.places = set()  # that hold addresses of the library's own variables
        for line in output_of("readelf", "-W", "-r", path).splitlines():
            match = re.match(r"([0-9a-f]+)\s+\S+\s+R_X86_64_GLOB_DAT\s+[0-9a-f]+\s+([^\s@]+)", line)
            if match and match[2] in self.variables:
                self.places.add(int(match[1], 16))
        self.calls = collections.defaultdict(set)
        self.data = set()  # beginnings of code that refers to writable memory, or has a system call
        self.read_code()

    def is_in(self, address, *names):
        return any(begin <= address < end for begin, end in (self.sections.get(name, (0, 0)) for name in names))

    def read_code(self):
        system_calls = []
        instructions = []  # address, what it jumps to or calls, what it refers to
        for line in output_of("objdump", "-d", "--no-show-raw-insn", "-j", ".text", self.path).splitlines():
            match = re.match(r"\s*([0-9a-f]+):\s+(.*)", line)
            if not match:
                continue
            code = match[2]
            jump = re.search(r"\b(call|j\w+)\s+([0-9a-f]+) <", code)
            target = int(jump[2], 16) if jump else None
            if jump and jump[1] == "call":
                self.begins.add(target)
            refers = re.search(r"# ([0-9a-f]+) <", code)
            if refers and "lea" in code and self.is_in(int(refers[1], 16), ".text"):
                self.begins.add(int(refers[1], 16))  # of a function that is called by its address
            if code.startswith("syscall"):
                system_calls.append(int(match[1], 16))
            instructions.append((int(match[1], 16), target, int(refers[1], 16) if refers else None, "lea" in code))
        begins = sorted(self.begins)

        def beginning(address):
            at = bisect.bisect_right(begins, address)
            return begins[at - 1] if at else address
        self.data.update(beginning(address) for address in system_calls)
        for address, target, refers, is_address in instructions:
            function = beginning(address)
            if target is not None and beginning(target) != function:
                self.calls[function].add(beginning(target))
            if refers is not None and (refers in self.places or self.is_in(refers, ".data", ".bss")):
                self.data.add(function)
            elif refers is not None and is_address and self.is_in(refers, ".text"):
                self.calls[function].add(beginning(refers))

    def keeps_state(self, function):
        seen, waiting = {function}, [function]
        while waiting:
            one = waiting.pop()
            if one in self.data:
                return True
            for other in self.calls[one] - seen:
                seen.add(other)
                if other not in self.functions:  # what is exported has its own row
                    waiting.append(other)
        return False


def own_functions():
    own = set(re.findall(r'\{"([^"]+)",', (HERE.parent / "substitutes.cpp").read_text()))
    for path in (SOURCE / "launch" / "host").glob("*.cpp"):
        own |= set(re.findall(r'\{"([^"]+)", (?:reinterpret_cast<void\*>|erase\(|(?:one|two)_of<)', path.read_text()))
    return own


def own_variables():
    return set(re.findall(r'\{"([^"]+)", Variable::', (HERE.parent / "state.cpp").read_text()))


REFUSED = {"register_printf_function", "register_printf_modifier", "register_printf_specifier", "register_printf_type",
           "daemon", "signalfd"}


# What is the image's in part, or for ranks that are threads only (launch/host/signals.cpp).
PARTLY_OWN = {"getrusage", "times", "posix_spawn", "posix_spawnp", "dup2", "dup3", "closefrom", "close_range",
              "vfork", "__vfork", "sigset", "sigaltstack", "signal", "bsd_signal", "ssignal", "sigaction", "__sigaction",
              "sysv_signal", "__sysv_signal", "sigignore",
              "siginterrupt", "kill", "sigqueue", "setitimer", "getitimer", "prctl",
              "pthread_setname_np", "pthread_getname_np", "dlinfo",
              "execl", "execle", "execlp", "execv", "execve", "execveat", "execvp", "execvpe", "fexecve"}


class Rules:
    def __init__(self):
        self.rules = []
        for line in (HERE / "rules.tsv").read_text().splitlines():
            if line and not line.startswith("#"):
                pattern, kind, state = (line.split("\t") + [""])[:3]
                self.rules.append((re.compile(pattern), kind, state))

    def find(self, name):
        for pattern, kind, state in self.rules:
            if pattern.fullmatch(name):
                return kind, state
        return None


def classify(name, is_function, own, rules):
    if name in REFUSED:
        return "refused", "what would be the process's"
    if name in own and name not in PARTLY_OWN:
        return "own", ""
    return rules.find(name)


def rows_of(folder):
    """Rows (name, kind, class, state, library) of the libraries in a folder, and names without a class."""
    rules, functions, variables = Rules(), own_functions(), own_variables()
    rows, holes, versions = {}, [], set()
    for name in LIBRARIES:
        path = pathlib.Path(folder) / name
        if not path.exists():
            continue
        library = Library(str(path))
        versions |= library.versions
        listed = [(one, "function") for address, names in library.functions.items() for one in names
                  if library.keeps_state(address) or one in functions or rules.find(one)]
        listed += [(one, "variable") for one in library.variables]
        for one, kind in listed:
            found = classify(one, kind == "function", functions if kind == "function" else variables, rules)
            if found is None:
                holes.append(f"{name}: the {kind} {one} keeps state and has no class: give it one in {HERE / 'rules.tsv'}")
            else:
                rows[one, kind] = (*found, name)
    return rows, holes, versions


def read_table():
    rows = {}
    path = HERE / "table.tsv"
    for line in path.read_text().splitlines() if path.exists() else []:
        if line and not line.startswith("#"):
            name, kind, group, state, library = line.split("\t")
            rows[name, kind] = (group, state, library)
    return rows


def shared_calls(rows):
    """The part of the table that `warren image check` reads, as C++."""
    lines = ["// Made by interface/make.py: functions and variables of the C library whose state all images share, and",
             "// those that are refused or can't be copied; in the order of strcmp."]
    for (name, kind), (group, state, _) in sorted(rows.items()):
        if (kind == "function" and group in ("shared", "refused")) or (kind == "variable" and group != "own"):
            sort = {"shared": "call", "refused": "refused_call"}[group] if kind == "function" else group + "_variable"
            lines.append(f'    {{"{name}", StatefulKind::{sort},\n     "{state}"}},')
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    parser.add_argument("folder", nargs="?", default=FOLDER)
    given = parser.parse_args()
    rows, holes, versions = rows_of(given.folder)
    for hole in holes:
        print(hole)
    table = read_table()
    if given.check:
        wrong = list(holes)
        for key, row in sorted(rows.items()):
            if table.get(key, ("",))[:2] != row[:2]:
                wrong.append(key)
                print(f"{key[1]} {key[0]}: the table says {table.get(key)}, it should be {row}: run {HERE / 'make.py'}")
        if (HERE / "shared_calls.inc").read_text() != shared_calls(table):
            wrong.append("inc")
            print(f"{HERE / 'shared_calls.inc'} is of another table: run {HERE / 'make.py'}")
        print(f"{len(rows)} rows of {max(versions, key=lambda one: [int(part) for part in re.findall('[0-9]+', one)])}")
        return 1 if wrong else 0
    table.update(rows)
    lines = ["# What the C library exports and keeps state for: name, kind, class, state, library. Made by make.py."]
    lines += ["\t".join((name, kind, *row)) for (name, kind), row in sorted(table.items())]
    (HERE / "table.tsv").write_text("\n".join(lines) + "\n")
    (HERE / "shared_calls.inc").write_text(shared_calls(table))
    return 1 if holes else 0


if __name__ == "__main__":
    sys.exit(main())
