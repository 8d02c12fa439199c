"""Unmodified programs with their heap by attribute: `warren run`."""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
import cases  # pylint: disable=wrong-import-position
from cases import case, expect  # pylint: disable=wrong-import-position


def run(*words, program=None, **options):
    return subprocess.run([args.warren, "run", *words, *(program or [args.user])],
                          capture_output=True, text=True, check=False, timeout=100,
                          stdin=subprocess.DEVNULL, **options)


def run_by(rules, *words, program=None):
    """A run with a file of these rules."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "own.rules")
        file.write_text(rules)
        return run("--rules", file, *words, program=program)


def served(done):
    """{rule: (blocks, bytes, not served)} of all processes together."""
    sums = {}
    for rule, *counts in re.findall(r"^warren run: \d+: (.*): (\d+) blocks, (\d+) bytes, (\d+) not",
                                    done.stderr, re.M):
        old = sums.get(rule, (0, 0, 0))
        sums[rule] = tuple(one + int(other) for one, other in zip(old, counts))
    return sums


@case
def a_program_has_all_functions_threads_and_children():
    for criteria in ("bandwidth", "latency,capacity full=strict", "capacity page=4k"):
        done = run("--memory", criteria)
        expect(done.returncode == 0 and "good, child 5" in done.stdout and not done.stderr, done)
        done = run("--memory", criteria, "--report")
        blocks, size, _ = served(done)["--memory"]
        expect(done.returncode == 0 and blocks > 10_000 and size > 20_000_000, done)


@case
def programs_that_it_starts_by_option():
    done = run("--children", "--report", "--memory=capacity")
    expect(done.returncode == 0 and "good, child 4" in done.stdout, done)
    expect(len(re.findall("--memory: ", done.stderr)) >= 2, done)


@case
def the_report_goes_to_the_standard_error_that_was():
    for way in ("os.close(2)", "os.close(2); os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)"):
        with tempfile.NamedTemporaryFile() as file:
            done = run("--memory", "capacity", "--report", program=[
                sys.executable, "-c", f"import os, sys; {way}; block = bytearray(1 << 20)", file.name])
            expect(done.returncode == 0 and served(done)["--memory"][0] > 0, done)
            expect(os.path.getsize(file.name) == 0, "it wrote into the program's file")


@case
def sizes_decide():
    done = run_by("size<4k -> system\nsize=4k..8k -> latency\nsize>8k -> capacity\n", "--report",
                  program=[args.user, "sites"])
    counts = served(done)
    expect(done.returncode == 0 and 600 <= counts["line 2"][0] < 900, done)
    expect(counts["line 3"][0] < 20 and "no rule" not in counts, done)


@case
def places_decide():
    program = [args.user, "sites"]
    done = run_by("function=shop::Shelf::fill size=5000 -> capacity\n"
                  "function=fill_cel* -> latency\n"
                  "library=libc.so.* size=5000 -> capacity full=strict\n"
                  "library=heap_user -> bandwidth\n", "--report", program=program)
    counts = served(done)
    expect(done.returncode == 0, done)
    expect([counts[f"line {line}"][0] for line in (1, 2, 3)] == [200, 200, 200], done)
    expect(counts["line 4"][0] >= 200, done) # the strings
    done = run_by("file=memory/heap_user.cpp size=5000 -> capacity\n"
                  "file=memory/other.cpp -> capacity\n", "--report", program=program)
    counts = served(done)
    expect(done.returncode == 0 and 400 <= counts["line 1"][0] <= 600, done)
    expect(counts["line 2"][0] == 0 and counts["no rule"][0] > 0, done)


@case
def strict_memory_that_is_full_is_no_memory():
    done = run("--memory", "capacity full=strict", "--report", program=[args.user, "strict"])
    blocks, size, refused = served(done)["--memory"]
    expect(done.returncode == 3 and refused == 1 and blocks > 0 and size < 1 << 40, done)


@case
def strict_memory_of_a_place_is_so_for_operator_new():
    done = run_by("function=is_refused_everything -> capacity full=strict\n",
                  program=[args.user, "strict_new"])
    expect(done.returncode == 3, done)


@case
def a_program_keeps_operators_of_its_own():
    done = run("--memory", "capacity", "--report", program=[args.own_operators])
    expect(done.returncode == 0 and served(done)["--memory"][0] >= 3, done)


@case
def wrong_rules_are_refused_with_line_and_reason():
    done = run_by("# one\nsize>1M => capacity\n")
    expect(done.returncode == 1 and "own.rules:2: there is no ->" in done.stderr, done)
    done = run_by("size>1M -> sweetness\n")
    expect(done.returncode == 1 and "own.rules:1: " in done.stderr, done)
    done = run("--memory", "sweetness")
    expect(done.returncode == 1 and "--memory: " in done.stderr, done)
    done = run("--rules", "/no/such/file")
    expect(done.returncode == 1 and "can't be read" in done.stderr, done)


@case
def what_can_not_be_done_is_refused():
    expect(run("--memory", "capacity", program=["/no/such/program"]).returncode == 127, "missing")
    expect(run("--memory", "capacity", program=["/etc/passwd"]).returncode == 126, "no program")
    expect(run(program=["true"]).returncode == 2, "no criteria")
    expect(run("--memory", program=[]).returncode == 2, "no value")
    expect(run("--colour", "red").returncode == 2, "no option")
    busybox = shutil.which("busybox")
    if busybox and subprocess.run(["ldd", busybox], capture_output=True, check=False).returncode != 0:
        done = run("--memory", "capacity", program=[busybox, "true"])
        expect(done.returncode == 126 and "statically" in done.stderr, done)


@case
def python_runs():
    done = run("--memory", "capacity", "--report", program=[sys.executable, "-c", """
import json, os, subprocess, threading
def work():
    return json.loads(json.dumps({str(i): [i] * 20 for i in range(3000)}))
threads = [threading.Thread(target=work) for _ in range(3)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
big = bytearray(50_000_000)
big.extend(b"x" * 1000)
child = os.fork()
if child == 0:
    work()
    os._exit(7)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
print(status, len(big), subprocess.run(["sh", "-c", "echo $LD_PRELOAD"], capture_output=True).stdout)
"""])
    expect(done.returncode == 0 and done.stdout == "7 50001000 b'\\n'\n", done)
    expect(served(done)["--memory"][1] > 50_000_000, done)


@case
def a_compiler_runs():
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "one.c")
        source.write_text("#include <stdio.h>\nint main(void) { return puts(\"works\") < 0; }\n")
        done = run("--memory", "latency", "--children", "--report",
                   program=["cc", "-O2", "-o", f"{folder}/one", source])
        expect(done.returncode == 0 and served(done)["--memory"][0] > 1000, done)
        done = run("--memory", "latency", program=[f"{folder}/one"])
        expect(done.stdout == "works\n", done)


@case
def ranks_run():
    done = cases.job(args.mpiexec, "-n", "4", args.warren, "run", "--memory", "bandwidth",
                     "--report", *args.ranks.split())
    expect(done.returncode == 0, done)
    expect(len(re.findall("warren run: [0-9]+: --memory: [1-9]", done.stderr)) == 4, done)


@case
def a_rank_has_one_share_for_malloc_and_criteria():
    done = cases.job(args.mpiexec, "-n", "2", args.share, "--begin", "32", args.warren, "run",
                     "--memory", "capacity full=strict", args.share, "32")
    expect(done.returncode == 0, done)
    expect(len(re.findall("^0 by malloc, 1[4-6] by criteria, 0 more", done.stdout, re.M)) == 2, done)


@case
def openmp_runs():
    if args.openmp:
        done = run("--memory", "bandwidth", "--report", program=[args.openmp])
        expect(done.returncode == 0 and served(done)["--memory"][0] > 0, done)


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--warren", required=True)
parser.add_argument("--user", required=True, help="heap_user")
parser.add_argument("--own-operators", required=True, help="own_operators")
parser.add_argument("--ranks", default="", help="a program of MPI with its arguments")
parser.add_argument("--share", default="", help="heap_share")
parser.add_argument("--openmp", default="", help="a program of OpenMP")
args = cases.parse(parser)
sys.exit(cases.run(args))
