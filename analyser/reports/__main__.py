"""`warren locality report`: see --help."""

import argparse
import contextlib
import errno
import os
import sys

STATUS_DAMAGED = 3
# Sentences about damage in an error.
MOST_TOLD = 8


def parser():
    made = argparse.ArgumentParser(
        prog="warren locality", description="Whose memory does each thread of a program touch, and "
        "what to change: reports about recordings of `warren locality record`.")
    commands = made.add_subparsers(dest="command", required=True, metavar="report")
    report = commands.add_parser(
        "report", help="what a recording says", formatter_class=argparse.RawDescriptionHelpFormatter,
        description="What a recording says: a summary, and files where options ask for them.",
        epilog="Examples:\n"
        "  warren locality report warren-locality --html report.html\n"
        "  warren locality report before --compare after --html changed.html\n"
        "  warren locality report run --what-if synthetic:'pack:2 numa:2 core:4 pu:1' --placement scatter\n"
        "\nThe exit status is 0; 3 if files of the recording are damaged, cut off or missing: then the report "
        "is of\nwhat is whole, and says what is damaged and lost; 1 if there can't be a report; 2 if the options "
        "are wrong.\n")
    report.add_argument("folder", metavar="DIR", help="the recording, or one process of it")
    files = report.add_argument_group("files")
    files.add_argument("--csv", metavar="FILE", help="a line per page: address, who allocated and "
                       "touched it where, its structure, accesses of every thread")
    files.add_argument("--json", metavar="FILE", help="all figures, and the pages up to a million")
    files.add_argument("--parquet", metavar="FILE", help="the lines of --csv (needs pyarrow)")
    files.add_argument("--html", metavar="FILE", help="one page with everything, which needs no "
                       "network: tables, heat map, matrices, source")
    choice = report.add_argument_group("what is looked at")
    choice.add_argument("--phase", metavar="NAME", help="accesses in this phase of the program only")
    choice.add_argument("--intervals", metavar="LIST", help="accesses in these intervals only: 1-3,7")
    choice.add_argument("--everything", action="store_true", help="all processes of a job, not only "
                        "its ranks")
    choice.add_argument("--compare", metavar="DIR", help="another recording, after a change")
    machine = report.add_argument_group("what if it ran elsewhere")
    machine.add_argument("--what-if", metavar="MACHINE", help="`this`, or what `warren topo` takes: "
                         "XML, image, \"synthetic:…\"; or JSON that it wrote")
    machine.add_argument("--placement", default="compact", metavar="HOW",
                         help="of threads: compact, scatter, or processors, as 0,4,8-11 (compact)")
    look = report.add_argument_group("summary")
    look.add_argument("--structures", type=int, default=15, metavar="N", help="lines of that table (15)")
    look.add_argument("--color", choices=("auto", "always", "never"), default="auto")
    look.add_argument("--width", type=int, metavar="N", help="columns (those of the terminal)")
    look.add_argument("--quiet", action="store_true", help="no summary")
    return made


def chosen_intervals(folder, phase, listed):
    """The intervals of a phase or a list; None: all."""
    from . import machine, recording
    if phase is None and listed is None:
        return None
    whole = recording.open(folder)
    if listed is not None:
        return set(machine.parse_list(listed))
    numbers, known = {}, set()
    for process in whole.processes:
        begun = {}
        for index, record in enumerate(process.phases, 1):
            name = bytes(record["name"]).split(b"\0")[0].decode("utf-8", "replace")
            begun[index] = name or f"level {record['level']}"
            known.add(begun[index])
        numbers[process.name] = {int(interval["number"]) for interval in process.intervals
                                 if begun.get(int(interval["phase"])) == phase}
    if not any(numbers.values()):
        text = f"{folder} has no accesses in a phase {phase!r}; its phases: {', '.join(sorted(known)) or 'none'}"
        told = [str(one) for one in whole.damage]
        if len(told) > MOST_TOLD:
            told[MOST_TOLD:] = [f"and {len(told) - MOST_TOLD} more"]
        raise recording.Error(". ".join([text + (". It is damaged" if told else ""), *told]))
    return numbers


def report(options):
    """Writes what the options ask for; whether anything of the recordings is damaged."""
    from . import advice, analysis, damage, machine, recording, tables, text, what_if
    intervals = chosen_intervals(options.folder, options.phase, options.intervals)
    found = analysis.Analysis.of(options.folder, intervals, options.everything)
    changes = advice.advise(found)
    results, where = [], None
    if options.what_if:
        where = machine.from_source(options.what_if)
        policies = list(what_if.POLICIES)
        if (found.trace.node >= 0).all() and found.trace.units:
            policies.insert(1, "recorded")
        results = what_if.predict(found.trace, where, options.placement, policies)
    other = None
    if options.compare:
        other = analysis.Analysis.of(options.compare, None, options.everything)
    if options.csv:
        tables.write_csv(found, options.csv)
    if options.json:
        tables.write_json(found, changes, results, options.json, other)
    if options.parquet:
        tables.write_parquet(found, options.parquet)
    if options.html:
        from . import html_report
        html_report.write(found, changes, options.html, other, where, options.placement, results)
    is_damaged = bool(found.damage or other and other.damage)
    if not options.quiet and sys.stdout is not None:
        page = text.Page(sys.stdout, options.color, options.width)
        text.summary(found, changes, page, options.structures)
        if results:
            text.what_if(where, options.placement, results, page)
        if other:
            text.comparison(found, other, page, recording.shown(options.compare))
        encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
        written(page.text().encode(encoding, "replace").decode(encoding))
    elif is_damaged:
        count = damage.places(found.damage + (other.damage if other else []))
        say(f"{count} {'files of the recording are' if count > 1 else 'file of the recording is'} damaged or "
            "missing: the report is of what is whole")
    return is_damaged


def say(text):
    """On the standard error, if there is one."""
    with contextlib.suppress(OSError, AttributeError):
        print(f"warren locality: {text}", file=sys.stderr, flush=True)


def written(text):
    """Writes to the standard output, whose reader may have seen enough."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main(arguments=None):
    options = parser().parse_args(arguments)
    try:
        import numpy
    except ImportError:
        python = sys.executable or "python3"
        say(f"{python} has no numpy. Install the packages of python/requirements.txt "
            "(./quickstart or tools/python_packages.sh does so in a source tree, pip install 'warren-mpi[analyser]' for the "
            "wheel), or name another Python in WARREN_PYTHON")
        return 1
    del numpy
    from . import machine, recording, tables
    try:
        return STATUS_DAMAGED if report(options) else 0
    except (recording.Error, machine.Error, tables.Error) as problem:
        say(problem)
        return 1
    except UnicodeError as problem:
        say(f"a name can't be written: {problem}")
        return 1
    except (OSError, MemoryError) as problem:
        if isinstance(problem, MemoryError) or problem.errno == errno.ENOMEM:  # mmap's is an OSError
            say(f"{options.folder} needs more memory than there is: {problem}")
        else:
            say(f"{problem.filename or 'the summary'}: {problem.strerror}")
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
