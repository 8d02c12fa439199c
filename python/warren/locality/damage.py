"""What of a recording is damaged, cut off or missing, and what a report lacks because of it."""

import dataclasses
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


@dataclasses.dataclass(frozen=True)
class Damage:
    """One sentence: `what` is wrong with a file, and what is `lost` by it."""
    path: pathlib.Path
    what: str
    lost: str

    @property
    def process(self):
        return self.path.parent.name if self.path.suffix else self.path.name

    @property
    def file(self):
        return self.path.name if self.path.suffix else ""

    def __str__(self):
        return f"{self.path} {self.what}; lost: {self.lost}"

    def facts(self):
        """As plain data."""
        return {"process": self.process, "file": self.file, "path": str(self.path), "what": self.what,
                "lost": self.lost}


def of(path, what, lost=None):
    path = pathlib.Path(path)
    return Damage(path, what, lost or OF_FILE.get(path.name, "what is in it"))


def once(entries):
    """Each of them once, in the order in which they came."""
    return list(dict.fromkeys(entries))
