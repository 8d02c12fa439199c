"""What is asked, and what Warren aims at.

A question is one program with fixed arguments on a number of ranks. A program prints one JSON line
per figure; figures are told apart by (figure, mode, size, ranks).
"""

from dataclasses import dataclass, field


@dataclass
class Question:
    name: str  # what --only selects
    program: str
    ranks: int  # as reported
    arguments: list = field(default_factory=list)
    quick_arguments: list = field(default_factory=list)  # for trials of settings, and --quick
    start_ranks: int = 0  # as started, when different
    timeout: float = 120

    def started(self):
        return self.start_ranks or self.ranks

    @property
    def figures(self):
        return {"message_rate": ["message rate"], "collectives": COLLECTIVES, "groups": GROUPS,
                "rma": RMA, "files": FILES}.get(self.program, [self.program])


@dataclass
class Target:
    """Warren's aim: a ratio to the best peer or an absolute value."""

    figure: str
    limit: float
    kind: str = "ratio"  # or "absolute"
    ranks: tuple = ()
    modes: tuple = ()
    sizes: tuple = (0, float("inf"))  # from, to (inclusive)

    def concerns(self, key):
        figure, mode, size, ranks = key
        return (figure == self.figure and (not self.ranks or ranks in self.ranks)
                and (not self.modes or mode in self.modes)
                and (size is None or self.sizes[0] <= size <= self.sizes[1]))


COLLECTIVES = ["barrier", "bcast", "reduce", "allreduce", "allgather", "alltoall", "gather",
               "scatter"]
GROUPS = ["groups latency", "groups message rate", "groups bandwidth"]
RMA_SHORT = ["put", "get", "accumulate", "fetch_and_op", "compare_and_swap"]
RMA_RATES = ["put rate", "get rate", "accumulate rate"]
RMA_LONG = ["put vector", "put time", "get time", "accumulate time"]
RMA_EPOCHS = ["exclusive lock", "shared lock", "fence", "fence and put", "pscw"]
RMA = [*RMA_SHORT, *RMA_RATES, *RMA_LONG, *RMA_EPOCHS]
FILE_RECORDS = [f"inter {size} {call}" for size in ("64", "4K", "64K")
                for call in ("write_all", "read_all", "write", "read")]
FILE_RATES = ["own write", "own read", "own write_all", "own read_all", *FILE_RECORDS,
              "matrix write_all", "matrix read_all"]
FILE_CALLS = ["open and close", "write_at", "read_at", "write_at_all", "iwrite_at", "write_shared",
              "write_ordered"]
FILES = [*FILE_RATES, *FILE_CALLS]
HIGHER_IS_BETTER = {"bandwidth", "message rate", "groups message rate", "groups bandwidth",
                    *RMA_RATES, *FILE_RATES}
KIB, MIB = 1024, 1024 * 1024

TARGETS = [
    Target("latency", 0.8, ranks=(2,), modes=("cached",), sizes=(0, KIB)),
    Target("latency", 1.0, ranks=(2,), sizes=(8 * KIB, 4 * MIB)),
    Target("bandwidth", 1.0, ranks=(2,), sizes=(8 * KIB, 4 * MIB)),
    Target("message rate", 1.2, ranks=(2,), modes=("cached",)),
    Target("launch", 0.1, ranks=(64, 256)),
    Target("private dirty", 400, kind="absolute", ranks=(64,)),
    Target("library's own", 150, kind="absolute", ranks=(64,)),
    *[Target(name, 0.7, ranks=(2,), sizes=(0, KIB)) for name in COLLECTIVES],
    *[Target(name, 1.0, ranks=(2,), sizes=(KIB + 1, MIB)) for name in COLLECTIVES],
    Target("barrier", 0.2, ranks=(64,)),
    Target("allreduce", 0.2, ranks=(64,), sizes=(8, 8)),
    *[Target(name, 0.25, ranks=(16, 64), sizes=(0, 4 * KIB)) for name in COLLECTIVES],
    Target("halo", 0.8, ranks=(2,)),
    Target("dup", 0.2, ranks=(8,)),
    Target("split", 0.2, ranks=(8,)),
    Target("dup memory", 512, kind="absolute", ranks=(64,)),
    Target("split memory", 512, kind="absolute", ranks=(64,)),
    Target("idle CPU", 2, kind="absolute", ranks=(64,)),
    *[Target(name, 0.8) for name in (*RMA_SHORT, *RMA_EPOCHS)],
    Target("put rate", 1.2, modes=("allocate", "shared")),
    Target("put vector", 1.0), Target("put time", 1.0), Target("get time", 1.0),
    Target("accumulate time", 0.8, sizes=(MIB, MIB)),
    *[Target(name, 1.2) for name in FILE_RATES],
    Target("open and close", 0.3), Target("write_shared", 0.5), Target("write_ordered", 0.5),
]

NAMES = ["latency", "bandwidth", "message_rate", "halo", "launch", "memory", "collectives", "pairs",
         "communicators", "idle", "stencil", "rma", "files"]


def questions(only, ranks, quick):
    """The list of questions; `ranks` replaces the usual numbers of ranks where any number goes."""
    asked = []
    sizes = "0,8,1K,8K,64K,1M,4M"
    large = "8K,64K,1M,4M"
    short = ["--seconds", "0.1"]
    normal = ["--seconds", "0.4"]
    for mode in ([], ["--written"]):
        asked.append(Question("latency", "latency", 2, ["--sizes", sizes, *mode, *normal],
                              ["--sizes", sizes, *mode, *short]))
        asked.append(Question("bandwidth", "bandwidth", 2, ["--sizes", large, *mode, *normal],
                              ["--sizes", large, *mode, *short]))
    for mode in ([], ["--written"]):
        asked.append(Question("message_rate", "message_rate", 2, [*mode, *normal],
                              [*mode, *short]))
    asked.append(Question("halo", "halo", 2, normal, short))
    for n in ranks or ((2, 8, 64) if quick else (2, 8, 64, 256)):
        asked.append(Question("launch", "launch", n, timeout=60 + n))
    for n in ranks or ((2, 8) if quick else (2, 8, 64)):
        asked.append(Question("memory", "memory", n, timeout=60 + n))
    for n in ranks or ((2, 16) if quick else (2, 16, 64)):
        longer = ["--seconds", "0.4" if n <= 8 else "2"]
        sizes = ["--operations", "all", "--sizes",
                 "8,64,256,1K,4K,16K,64K,256K,1M" if n == 2 else "8,256,1K,4K"]
        tried = ["--operations", "all", "--sizes",
                 "8,1K,4K,64K,1M" if n == 2 else "8,4K"]
        asked.append(Question("collectives", "collectives", n,
                              [*sizes, "--seconds", "0.1" if n <= 8 else "0.5"],
                              [*tried, "--seconds", "0.03"], timeout=120 + 4 * n))
        if n > 2 and n % 2 == 0:
            asked.append(Question("pairs", "latency", n, ["--sizes", "8", *longer],
                                  ["--sizes", "8", *short], timeout=60 + 2 * n))
    for n in ranks or ((2, 8) if quick else (2, 8, 64)):
        asked.append(Question("communicators", "communicators", n, normal, short,
                              timeout=60 + 2 * n))
    for n in ranks or ((8,) if quick else (8, 64)):
        for kind in ("dup", "split"):
            asked.append(Question("communicators", "communicators", n, ["--memory", kind],
                                  ["--memory", kind, "--count", "200"], timeout=60 + 4 * n))
    for n in ranks or ((8,) if quick else (64,)):
        asked.append(Question("idle", "idle", n, ["--seconds", "3"], ["--seconds", "1"],
                              start_ranks=n + 1, timeout=60 + n))
    # Fixed total work on ever more ranks; of processes, hundreds take long.
    for n in ranks or ((2, 16) if quick else (2, 16, 64, 256)):
        asked.append(Question("stencil", "stencil", n, ["--steps", "500"], ["--steps", "100"],
                              timeout=120))
    for window in ("allocate", "create", "shared"):
        asked.append(Question("rma", "rma", 2, ["--window", window, *normal],
                              ["--window", window, *short]))
    for n in ranks or ((2,) if quick else (2, 4, 16)):
        asked.append(Question("files", "files", n, ["--seconds", "0.2"], ["--seconds", "0.05"],
                              timeout=120 + 4 * n))
    return [q for q in asked if not only or q.name in only]


def programs(asked):
    """The programs that these questions start, and the one that asks whether a library starts at all."""
    return {"latency", *(question.program for question in asked),
            *(["memory_baseline"] if any(q.program == "memory" for q in asked) else [])}
