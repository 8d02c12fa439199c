"""What of a recording is damaged, cut off or missing, and what a report lacks because of it."""

import dataclasses
import os
import pathlib

# What is lost with each file.
OF_FILE = {
    "process.json": "how the process was recorded",
    "threads.rec": "names, times and loads of threads",
    "modules.rec": "functions and lines of the code",
    "stacks.rec": "where memory was allocated",
    "touch_stacks.rec": "where memory was touched first",
    "allocations.rec": "which memory is whose structure's",
    "touches.rec": "first touches",
    "intervals.rec": "the program's phases and intervals",
    "counts.rec": "accesses",
    "first.rec": "first touches",
    "communication.rec": "what threads hand on to each other",
    "bytes.rec": "which bytes of lines threads use",
    "phases.rec": "the program's phases",
    "names.rec": "names that the program gave",
    "strings.bin": "names of programs and libraries",
}
OF_RECORDINGS = {pathlib.PurePath(name).suffix for name in OF_FILE}


@dataclasses.dataclass(frozen=True)
class Damage:
    """One sentence: `what` is wrong with a file, and what is `lost` by it."""
    path: pathlib.Path
    what: str
    lost: str
    process: str    # the name of its folder
    file: str       # empty: it is of the whole process

    def __str__(self):
        return f"{self.path} {self.what}; lost: {self.lost}"

    def facts(self):
        """As plain data."""
        return {"process": self.process, "file": self.file, "path": str(self.path), "what": self.what,
                "lost": self.lost}


def of(path, what, lost=None):
    """`path` is that of a file of a process, or its folder's."""
    path = pathlib.Path(path)
    # (Names of folders have dots, too: rank-00002.2.)
    is_file = path.name in OF_FILE or path.suffix in OF_RECORDINGS and not os.path.isdir(path)
    process, file = (path.parent.name, path.name) if is_file else (path.name, "")
    return Damage(path, what, lost or OF_FILE.get(path.name, "what is in it"), process, file)


def without(entries, known):
    """The entries that are not among those `known`, by whatever path these were reached."""
    def key(one):
        return os.path.realpath(one.path), one.what, one.lost
    keys = {key(one) for one in known}
    return [one for one in entries if key(one) not in keys]


def places(entries):
    """How many files or folders they are about."""
    return len({os.path.realpath(one.path) for one in entries})


def once(entries):
    """Each of them once, in the order in which they came."""
    return list(dict.fromkeys(entries))
