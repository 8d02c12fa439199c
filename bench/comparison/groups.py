"""What two groups of threads are to MPI: the ways of bench/groups, its figures and its table."""

from dataclasses import dataclass, fields

from .libraries import Library, Variant
from .questions import GROUPS, HIGHER_IS_BETTER, Question
from .report import number, size_text

PROCESSES, THREADS = "processes", "threads, THREAD_MULTIPLE"
THREAD_RANKS, PRIVATE = "thread ranks", "private library per thread"

# Way, what it is measured against, the ratio of times that it may have at most.
TARGETS = [("warren-thread-ranks", "warren", 1.0), ("mpich-private", "mpich", 1.05)]


@dataclass
class Way(Library):
    """A library, and what a thread is to it."""

    kind: str = PROCESSES

    def command(self, ranks, situation, variant):
        return super().command(2 if self.kind == THREADS else ranks, situation, variant)

    def program_options(self, question):
        return ["--threads", str(question.ranks // 2)] if self.kind == THREADS else []


def _way(library, kind, ending="", **changes):
    values = {entry.name: getattr(library, entry.name) for entry in fields(Library)}
    values.update(key=library.key + ending, title=f"{library.title}, {kind}", kind=kind)
    return Way(**{**values, **changes})


def _more_for_threads(library):
    """The peers' settings, and those that are made for threads that call at once."""
    separate = {"I_MPI_THREAD_SPLIT": "1", "I_MPI_THREAD_RUNTIME": "generic",
                "I_MPI_THREAD_MAX": "8"}
    bound = {"I_MPI_PIN": "1", "I_MPI_PIN_DOMAIN": "core"}
    interfaces = [Variant("8 VCIs", {"MPIR_CVAR_CH4_NUM_VCIS": "8"}),
                  Variant("8 VCIs, no global progress", {"MPIR_CVAR_CH4_NUM_VCIS": "8",
                                                         "MPIR_CVAR_CH4_GLOBAL_PROGRESS": "0"})]
    more = {("mpich", "fits"): interfaces, ("mpich", "oversubscribed"): interfaces,
            ("impi-rt", "fits"): [Variant("thread split", {**separate, **bound})],
            ("impi-rt", "oversubscribed"): [Variant("thread split", {**separate,
                                                                    "I_MPI_PIN": "0"})]}
    return {situation: [*known, *more.get((library.key, situation), [])]
            for situation, known in library.variants.items()}


def _polling_less(variants):
    """MPICH gives way after a thousand polls; on shared processors fewer may be better."""
    soon = Variant("no-device-collectives, soon yield",
                   {"MPIR_CVAR_DEVICE_COLLECTIVES": "none", "MPIR_CVAR_POLLS_BEFORE_YIELD": "10"})
    return {**variants, "oversubscribed": [*variants["oversubscribed"], soon]}


def ways(warren, peers):
    """All of them: processes of all libraries, then threads, then what Warren makes of threads."""
    libraries = [warren, *peers]
    mpich = next((library for library in peers if library.key == "mpich"), None)
    if mpich:
        mpich.variants = _polling_less(mpich.variants)
    found = [_way(library, PROCESSES) for library in libraries]
    found += [_way(library, THREADS, "-threads", variants=_more_for_threads(library))
              for library in libraries]
    found.append(_way(warren, THREAD_RANKS, "-thread-ranks",
                      launcher=[*warren.launcher, "--ranks", "threads"]))
    if mpich:
        # Warren's launcher and MPICH's settings; binding is written in the launcher's own way.
        settings = {situation: [Variant(v.name, v.environment,
                                        ["--bind-to", "core"] if v.options else [])
                                for v in variants]
                    for situation, variants in mpich.variants.items()}
        library = str(mpich.library_path() / "libmpi_abi.so.1")
        found.append(_way(warren, PRIVATE, key="mpich-private", title=f"MPICH, {PRIVATE}",
                          expected=mpich.expected, variants=settings,
                          launcher=[*warren.launcher, "--ranks", "threads", "--library", library]))
    return found


def questions(threads, seconds):
    return [Question("groups", "groups", n, ["--seconds", str(seconds)], ["--seconds", "0.1"],
                     timeout=60) for n in threads]


def rows(summary):
    """One row per figure, number of threads and state of the machine, as bench/compare's."""
    result = []
    place = lambda key: (GROUPS.index(key[0]), key[3], key[4])  # noqa: E731
    for key in sorted(summary, key=place):
        rate = key[0] in HIGHER_IS_BETTER
        entries = {}
        for way, variants in summary[key].items():
            name = (max if rate else min)(variants, key=lambda name: variants[name]["median"])
            entries[way] = {**variants[name], "variant": name}
        row = {"figure": key[0], "mode": key[1], "size": key[2], "ranks": key[3], "state": key[4],
               "unit": next(iter(entries.values()))["unit"], "libraries": entries,
               "variants": summary[key], "ratios": {}}
        for way, other, limit in TARGETS:
            if way in entries and other in entries and entries[other]["median"] > 0:
                ratio = entries[way]["median"] / entries[other]["median"]
                met = 1 / ratio <= limit if rate and ratio > 0 else not rate and ratio <= limit
                row["ratios"][way] = {"to": other, "ratio": ratio, "met": met, "limit": limit}
        result.append(row)
    return result


def table(found, compared):
    """Lines of text: for each figure a block with a line per way and a column per number."""
    lines = []
    titles = {way.key: way.title for way in compared}
    width = max(len(title) for title in titles.values()) + 4
    for figure in GROUPS:
        columns = [row for row in found if row["figure"] == figure]
        if not columns:
            continue
        head = [f"{row['ranks']} threads" + (f", {row['state']}" if row["state"] else "")
                for row in columns]
        lines += ["", f"{figure.removeprefix('groups ')}, {size_text(columns[0]['size'])}, "
                  f"{columns[0]['unit']}".ljust(width) + "".join(text.rjust(18) for text in head)]
        lines.append("-" * len(lines[-1]))
        for way in compared:
            cells = [row["libraries"].get(way.key) for row in columns]
            texts = [f"{number(cell['median'])} [{number(cell['best'])}]" if cell else "–"
                     for cell in cells]
            lines.append(way.title.ljust(width) + "".join(text.rjust(18) for text in texts))
        for key, other, limit in TARGETS:
            cells = [row["ratios"].get(key) for row in columns]
            if not any(cells):
                continue
            texts = [f"{cell['ratio']:.2f} ×{'' if cell['met'] else ' !'}" if cell else "–"
                     for cell in cells]
            text = f"  {titles[key].split(', ')[1]} / {titles[other]}"
            lines.append(text.ljust(width) + "".join(text.rjust(18) for text in texts))
    lines += ["", "median of the runs' medians [best batch of all]; latency: half round trip of "
              "each pair while all play; rates: of all pairs together", "!: slower than processes "
              "by more than the target (thread ranks: not at all; private library: 5 %)"]
    return lines[1:]
