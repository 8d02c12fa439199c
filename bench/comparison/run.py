"""Runs jobs under time limits and collects their figures.

A job that fails or hangs is recorded and ended with everything that it started: this process
adopts orphans (PR_SET_CHILD_SUBREAPER), so that only its own descendants are ever killed. Children
that it had before, of a shell that has become this process, and their session are left alone.
"""

import ctypes
import json
import math
import os
import re
import signal
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from .questions import HIGHER_IS_BETTER


_left_alone = set()  # process ids and sessions


def adopt_orphans():
    for pid in _children():
        _left_alone.update({pid, os.getsid(pid)})
    pr_set_child_subreaper = 36
    ctypes.CDLL(None).prctl(pr_set_child_subreaper, 1, 0, 0, 0)


def _children():
    """Process ids of this process's children, adopted ones included, that are its own to end."""
    result = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", encoding="latin-1") as file:
                    parent, _, session = map(int, file.read().rpartition(")")[2].split()[1:4])
                if parent == os.getpid() and not _left_alone & {int(entry), session}:
                    result.append(int(entry))
            except OSError:
                pass
    return result


def end_leftovers():
    """Kills and reaps what a job left behind; returns how many processes it was."""
    killed = set()
    for _ in range(100):
        living = _children()
        if not living:
            break
        for pid in living:
            try:
                if os.waitpid(pid, os.WNOHANG)[0] == 0:
                    os.kill(pid, signal.SIGKILL)
                    killed.add(pid)
            except OSError:
                pass
        time.sleep(0.01)
    return len(killed)


def _end(process):
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def run_text(command, environment, timeout, files=""):
    """(output, error or None); the texts of files in the working folder that match follow the output."""
    with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
        environment = {**environment, "TMPDIR": scratch}
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                       env=environment, start_new_session=True, cwd=scratch)
            error = None
            try:
                process.wait(timeout)
            except subprocess.TimeoutExpired:
                error = f"no end after {timeout:.0f} s"
            finally:  # also when this program is interrupted
                _end(process)
                end_leftovers()
            out.seek(0)
            err.seek(0)
            text = out.read().decode(errors="replace")
            complaint = err.read().decode(errors="replace").strip()
        for path in sorted(Path(scratch).glob(files)) if files else []:
            text += path.read_text(errors="replace")
    if error is None and process.returncode != 0:
        error = f"exit code {process.returncode}"
    if error is not None and complaint:
        error += ": " + " ".join(re.sub(r"-{10,}", " ", complaint).split())[:400]
    return text, error


def run_job(command, environment, timeout):
    """(output lines that are JSON, error or None)"""
    text, error = run_text(command, environment, timeout)
    lines = []
    for line in text.splitlines():
        if line.startswith("{"):
            try:
                lines.append(json.loads(line))
            except ValueError:
                error = error or f"unreadable line: {line[:80]}"
    return lines, error


class Runner:
    """All runs of one comparison."""

    def __init__(self, folders, processors, variants, quick, timeout, say):
        self.folders = folders
        self.processors = processors
        self.which_variants = variants
        self.quick = quick
        self.timeout = timeout
        self.say = say
        self.samples = {}  # (figure key, library key, variant name) -> [line of each run]
        self.failures = []
        self.trials = []  # lines of all trials of settings
        self.kept = {}  # (question index, library key) -> [Variant]

    def situation(self, question):
        if question.program in ("launch", "memory"):
            return "startup"
        return "fits" if question.started() <= self.processors else "oversubscribed"

    def job(self, library, question, variant, quick):
        """One run: the figures, or [] after recording the failure."""
        folder = self.folders[library.binaries]
        program = str(folder / question.program)
        launcher = library.command(question.started(), self.situation(question), variant)
        limit = self.timeout or question.timeout
        if question.program == "launch":
            repeat = 5 if question.ranks <= 8 and not quick else 1
            command = [program, "--time", str(repeat), "--limit", str(int(limit)), "--", *launcher,
                       program]
            limit = limit * repeat + 10
        else:
            arguments = question.quick_arguments if quick else question.arguments
            command = [*launcher, program, *arguments, *library.program_options(question)]
        lines, error = run_job(command, library.run_environment(variant), limit)
        wrong = [line for line in lines
                 if not line.get("library", library.expected).startswith(library.expected)]
        if wrong:
            error = f"ran with another library: {wrong[0]['library']}"
        if error is None and not lines:
            error = "no figures printed"
        if error is not None:
            self.record_failure(library, question, variant, command, error)
            return []
        for line in lines:
            line["ranks"] = question.ranks
        return lines

    def record_failure(self, library, question, variant, command, error):
        self.say(f"    {library.title} ({variant.name}) FAILED: {error[:150]}")
        failure = {"library": library.key, "question": question.name, "ranks": question.ranks,
                   "variant": variant.name, "command": command, "error": error}
        for known in self.failures:
            if all(known[name] == failure[name] for name in failure if name != "error"):
                known["times"] += 1
                return
        self.failures.append({**failure, "times": 1})

    def trial(self, index, question, library):
        """Tries all settings of a library shortly; keeps those near the best in any figure."""
        variants = library.variants[self.situation(question)]
        if self.which_variants == "first" or len(variants) == 1:
            self.kept[index, library.key] = variants[:1]
            return
        if self.which_variants == "all":
            self.kept[index, library.key] = variants
            return
        results = {}
        for variant in variants:
            lines = self.job(library, question, variant, quick=True)
            self.trials += lines
            results[variant.name] = lines
        border = machine_states({None: self.trials})
        for name, lines in results.items():
            results[name] = {(figure_key(line), state): cost(line["figure"], median)
                             for line in lines for state, median, _ in by_state(line, border)}
        keep = set()
        for key in {key for figures in results.values() for key in figures}:
            best = min(figures[key] for figures in results.values() if key in figures)
            keep |= {name for name, figures in results.items()
                     if figures.get(key, float("inf")) <= 1.1 * best}
        # The usual settings stay: the report tells the ratio to them as well.
        self.kept[index, library.key] = [v for v in variants
                                         if v.name in keep or v is variants[0]]
        self.say(f"    {library.title}: best settings: {'; '.join(sorted(keep)) or 'none works'}")

    def round(self, number, asked, libraries):
        for index, question in enumerate(asked):
            turn = number % len(libraries)
            self.say(f"  round {number + 1}: {question.name}, {question.ranks} ranks "
                     f"{' '.join(question.arguments)}")
            for library in libraries[turn:] + libraries[:turn]:
                if (index, library.key) not in self.kept:
                    self.trial(index, question, library)
                for variant in self.kept[index, library.key]:
                    self.sample(library, question, variant)

    def sample(self, library, question, variant):
        for line in self.job(library, question, variant, self.quick):
            key = (figure_key(line), library.key, variant.name)
            self.samples.setdefault(key, []).append(line)

    def fill(self, asked, libraries, attempts):
        """Repeats what was seen in fewer states of the machine than others were."""
        for index, question in enumerate(asked):
            if self.situation(question) != "fits":
                continue
            for _ in range(attempts):
                lacking = self.lacking(index, question, libraries)
                if not lacking:
                    break
                self.say(f"  once more, for the machine's other state: {question.name} "
                         f"{' '.join(question.arguments)}: "
                         + ", ".join(f"{lib.title} ({v.name})" for lib, v in lacking))
                for library, variant in lacking:
                    self.sample(library, question, variant)

    def lacking(self, index, question, libraries):
        """[(library, variant)] that miss a state for a figure of the question."""
        mode = "written" if "--written" in question.arguments else "cached"
        summary = {key: found for key, found in summarise(self.samples).items()
                   if key[4] and key[0] in question.figures and key[3] == question.ranks
                   and key[1] in ("", mode)}
        result = []
        for library in libraries:
            for variant in self.kept.get((index, library.key), []):
                seen = [key for key, found in summary.items()
                        if variant.name in found.get(library.key, {})]
                if seen and len(seen) < len(summary):
                    result.append((library, variant))
        return result


def figure_key(line):
    return (line["figure"], line["mode"], line.get("size"), line["ranks"])


def cost(figure, value):
    """Smaller is better for every figure."""
    if figure in HIGHER_IS_BETTER:
        return 1 / value if value else float("inf")
    return value


def machine_states(samples):
    """The time of a bare cache line that divides two states of the machine, or None.

    A virtual machine's two processors may be hyperthreads of one core now and different cores a
    second later; libraries are compared within one state only.
    """
    lines = sorted(pair[0] for found in samples.values() for line in found
                   for pair in line.get("batch", []))
    if len(lines) < 20:
        return None
    low, high = lines[len(lines) // 20], lines[len(lines) - 1 - len(lines) // 20]
    return math.sqrt(low * high) if high > 1.8 * low else None


def by_state(line, border):
    """[(state, median, best)] of one run; states with only a few batches are left out."""
    batches = line.get("batch")
    if border is None or not batches:
        return [("", line["median"], line["best"])]
    rate = line["figure"] in HIGHER_IS_BETTER
    result = []
    for state, chosen in (("near", [v for at, v in batches if at < border]),
                          ("far", [v for at, v in batches if at >= border])):
        if len(chosen) >= 8:
            result.append((state, statistics.median(chosen), (max if rate else min)(chosen)))
    return result


def summarise(samples):
    """{(*figure key, state): {library key: {variant name: {median, best, runs, …}}}}

    Medians over the runs' medians, and the best batch of all runs.
    """
    border = machine_states(samples)
    result = {}
    for (key, library, variant), lines in samples.items():
        rate = key[0] in HIGHER_IS_BETTER
        states = {}
        for line in lines:
            for state, median, best in by_state(line, border):
                states.setdefault(state, []).append((median, best))
        for state, values in states.items():
            found = result.setdefault((*key, state), {}).setdefault(library, {})
            found[variant] = {"median": statistics.median(value[0] for value in values),
                              "best": (max if rate else min)(value[1] for value in values),
                              "runs": len(values), "unit": lines[0]["unit"],
                              "pinned": all(line.get("pinned", 0) for line in lines)}
    return result
