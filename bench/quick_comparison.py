#!/usr/bin/env python3
"""usage: warren bench [--ranks N] [--rounds N] [--seconds S] [--mpi FOLDER]…
Start of a job, memory of a rank and latency: of Warren, and of each other MPI that is in PATH or where they
are usually installed. Programs are built with each library's own mpicc; libraries take turns.
  --ranks N      of the job that is started, and whose memory is asked for (16)
  --rounds N     the figures are medians of so many runs (3)
  --seconds S    for each size of messages in a run (0.2)
  --mpi FOLDER   another MPI's folder, with bin/mpiexec and bin/mpicc; only those that are named are looked for
bench/compare of the source tree asks more, with each library's best settings.
"""

import argparse
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from comparison import libraries as libs  # noqa: E402 (the path comes first)
from comparison import run  # noqa: E402
from comparison.questions import Question  # noqa: E402

PROGRAMS = ("launch", "memory", "latency")
USUAL_FOLDERS = ("/usr/lib64/openmpi/bin", "/usr/lib64/mpich/bin", "/usr/local/bin", "/opt/intel/oneapi/mpi/latest/bin")
# What a launcher says of its version, and whose settings are its.
LAUNCHERS = (("Intel", "impi-rt"), ("HYDRA", "mpich"), ("Open MPI", "openmpi"), ("OpenRTE", "openmpi"), ("PRRTE", "openmpi"))
MOST_RANKS = 100_000
ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
FIGURES = {"launch": ("start and end of {ranks} ranks", 1e3, "ms"), "private dirty": ("private memory of a rank", 1, "kB"),
           "latency": ("half round trip, {size} B", 1, "µs")}


def arguments():
    parser = argparse.ArgumentParser(prog="warren bench", usage=argparse.SUPPRESS, add_help=False)
    parser.add_argument("-h", "--help", action="store_true")
    parser.add_argument("--ranks", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.2)
    parser.add_argument("--mpi", type=Path, action="append", default=[])
    parser.add_argument("--warren", type=Path, help=argparse.SUPPRESS)  # its folder; the command gives it
    words = parser.parse_args()
    if words.help:
        print(__doc__, end="")
        sys.exit(0)
    if not 1 <= words.ranks <= MOST_RANKS or words.rounds < 1 or not 0 < words.seconds <= 60:
        parser.error(f"--ranks is 1 to {MOST_RANKS}, --rounds 1 or more, --seconds above 0, up to 60")
    for folder in words.mpi:
        if not (folder / "bin/mpiexec").exists():
            parser.error(f"--mpi {folder}: there is no {folder / 'bin/mpiexec'}")
    return words


def launchers(folders):
    """Each mpiexec with an mpicc of the same kind beside it. Names such as mpiexec.openmpi come first: the plain
    one and its mpicc may belong to different libraries, where administrators choose each."""
    known = set()
    for folder in folders:
        for path in sorted(folder.glob("mpiexec*"), key=lambda path: -len(path.name)):
            compiler = path.with_name(path.name.replace("mpiexec", "mpicc", 1))
            if compiler.exists() and os.access(path, os.X_OK) and path.resolve() not in known:
                known.add(path.resolve())
                yield path, compiler


def kind_of(launcher):
    """A key of libs.MAKERS, or what the launcher says instead."""
    try:
        said = subprocess.run([launcher, "--version"], capture_output=True, text=True, timeout=20, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired) as problem:
        return f"{problem}"
    text = said.stdout + said.stderr
    if "Warren" in text:
        return "warren"
    return next((key for sign, key in LAUNCHERS if sign in text), f"an unknown launcher: {text[:60].strip()!r}")


def find_others(words, own):
    """[(library, mpicc)] and [why a launcher was left out]."""
    folders = [folder / "bin" for folder in words.mpi]
    if not folders:
        folders = [Path(folder) for folder in [*os.environ.get("PATH", "").split(":"), *USUAL_FOLDERS] if folder]
    found, left_out = [], []
    for path, compiler in launchers(folders):
        kind = kind_of(path)
        if path.resolve() == (own / "bin/mpiexec").resolve() or kind == "warren":
            continue
        if kind not in libs.MAKERS:
            left_out.append(f"{path}: {kind}")
            continue
        prefix = path.absolute().parent.parent
        library = libs.MAKERS[kind](prefix)
        environment = dict(library.environment)
        if any((prefix / "lib").glob("libmpi*.so*")):  # of a folder that the system's loader doesn't know
            before = os.environ.get("LD_LIBRARY_PATH")
            environment["LD_LIBRARY_PATH"] = f"{prefix / 'lib'}:{before}" if before else str(prefix / "lib")
        key = f"{kind} {path}"
        found.append((replace(library, key=key, title=f"{library.title} ({path})", binaries=key, environment=environment,
                              launcher=[str(path), *library.launcher[1:]]), compiler))
    return found, left_out


def build(compiler, environment, folder):
    """Compiles the programs; why that failed, or None."""
    folder.mkdir(parents=True)
    environment = {**environment, "TMPDIR": str(folder)}  # of a compiler that is killed nothing is left
    for program in (*PROGRAMS, "memory_baseline"):
        plain = shutil.which("cc") or "gcc"
        command = [plain if program == "memory_baseline" else str(compiler), "-std=gnu11", "-O2", "-w", "-pthread",
                   str(HERE / f"{program}.c"), "-o", str(folder / program)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
        except (OSError, subprocess.TimeoutExpired) as problem:
            return f"{program}.c is not built: {problem}"
        if done.returncode != 0:
            return f"{program}.c is not built: {(done.stderr or done.stdout).strip()[-300:]}"
    return None


def questions(words):
    latency = ["--sizes", "0,8,1K,64K", "--seconds", str(words.seconds)]
    return [Question("launch", "launch", words.ranks, timeout=60 + words.ranks),
            Question("memory", "memory", words.ranks, timeout=60 + words.ranks),
            Question("latency", "latency", 2, latency, latency)]


def ask(runner, asked, libraries, rounds):
    """{(figure, size): {library key: [value of each run]}}; titles are those that libraries give themselves."""
    values = {}
    failed = set()
    for number in range(rounds):
        turn = number % len(libraries)
        for question in asked:
            for library in libraries[turn:] + libraries[:turn]:
                if (question.name, library.key) in failed:
                    continue
                variant = library.variants[runner.situation(question)][0]
                lines = runner.job(library, question, variant, quick=True)
                if not lines:
                    failed.add((question.name, library.key))
                for line in lines:
                    library.version = line.get("library", library.version)
                    if line["figure"] in FIGURES:
                        values.setdefault((line["figure"], line.get("size")), {}).setdefault(library.key, []).append(
                            line["median"])
    return values


def short_name(library):
    """"MPICH 4.0.2" of "MPICH Version:      4.0.2"."""
    name = re.sub(r"\s+", " ", library.version or library.title).replace("Version: ", "").split(",")[0]
    return re.sub(r" \(.*", "", name)[:22]


def table(values, libraries, ranks):
    width = max(12, *(len(short_name(library)) + 2 for library in libraries))
    yield f"{'':36}" + "".join(f"{short_name(library):>{width}}" for library in libraries)
    for (figure, size), found in values.items():
        text, factor, unit = FIGURES[figure]
        row = f"{text.format(ranks=ranks, size=size)}, {unit}"
        cells = (f"{factor * statistics.median(found[library.key]):.3g}" if library.key in found else "failed"
                 for library in libraries)
        yield f"{row:36}" + "".join(f"{cell:>{width}}" for cell in cells)


def end(number, _):
    """As an exception, so that the job and the scratch folder end on its way."""
    for one in ENDS:
        signal.signal(one, signal.SIG_IGN)
    if number == signal.SIGINT:
        print("\nwarren bench: interrupted", file=sys.stderr)
    sys.exit(128 + number)


def main():
    words = arguments()
    run.adopt_orphans()
    for number in ENDS:
        if signal.getsignal(number) != signal.SIG_IGN:  # as nohup leaves SIGHUP
            signal.signal(number, end)
    own = (words.warren or HERE.parent.parent.parent).resolve()
    for needed in ("bin/mpiexec", "bin/mpicc"):
        if not (own / needed).exists():
            sys.exit(f"warren bench: there is no {own / needed}: install all of Warren (Debian: warren-dev)")
    warren = libs.warren(own)
    others, left_out = find_others(words, own)
    with tempfile.TemporaryDirectory(prefix="warren-bench-") as scratch:
        folders, libraries = {}, []
        for number, (library, compiler) in enumerate([(replace(warren, binaries="warren"), own / "bin/mpicc"), *others]):
            folder = Path(scratch) / str(number)
            problem = build(compiler, library.run_environment(library.variants["startup"][0]), folder)
            if problem is None:
                folders[library.binaries] = folder
                libraries.append(library)
            elif library.key == "warren":
                sys.exit(f"warren bench: {compiler}: {problem}")
            else:
                left_out.append(f"{library.title}: {problem}")
        runner = run.Runner(folders, len(os.sched_getaffinity(0)), "first", True, 0, lambda text: print(text.strip(), flush=True))
        values = ask(runner, questions(words), libraries, words.rounds)
    print("\n".join(table(values, libraries, words.ranks)))
    for library in libraries[1:]:
        print(f"{short_name(library)}: {library.launcher[0]}")
    if len(libraries) == 1:
        print("no other MPI found" + ("" if words.mpi else " in PATH; --mpi FOLDER names one"))
    for reason in left_out:
        print(f"left out: {reason}")
    return 1 if any(failure["library"] == "warren" for failure in runner.failures) else 0


if __name__ == "__main__":
    sys.exit(main())
