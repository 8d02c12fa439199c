#!/usr/bin/env python3
"""Runs the C programs of MPICH's own test suite on Warren.

The suite is not part of Warren: CHECKOUT is the folder test/mpi of MPICH's sources. A program is built
by its line in Makefile.am and run by each of its lines in testlist, once per kind of ranks. The end
says how many runs were right; the exit status is 1 when one was not.

    tests/suites/mpich.py CHECKOUT [--build build/release] [--ranks processes,threads,fibres] [--mpicc MPICC] FOLDER...

With MPICH's own mpicc the programs have MPICH's ABI.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile

# What the suite's configure would find here.
CONFIGURATION = """
#include <stdarg.h>
#define HAVE_STDARG_H 1
#define HAVE_STDLIB_H 1
#define HAVE_STRING_H 1
#define HAVE_STRINGS_H 1
#define HAVE_STDINT_H 1
#define HAVE_INTTYPES_H 1
#define HAVE_UNISTD_H 1
#define HAVE_ERRNO_H 1
#define HAVE_SYS_TYPES_H 1
#define HAVE_SYS_STAT_H 1
#define HAVE_SYS_TIME_H 1
#define HAVE_SYS_SOCKET_H 1
#define HAVE_NETDB_H 1
#define HAVE_NETINET_IN_H 1
#define HAVE_NETINET_TCP_H 1
#define HAVE_SETENV 1
#define HAVE_USLEEP 1
#define HAVE_STRDUP 1
#define HAVE_STRERROR 1
#define HAVE_SNPRINTF 1
#define HAVE_H_ADDR_LIST 1
#define HAVE_LONG_DOUBLE 1
#define HAVE_LONG_LONG 1
#define HAVE_LONG_LONG_INT 1
#define HAVE__BOOL 1
#define HAVE_FLOAT__COMPLEX 1
#define HAVE_DOUBLE__COMPLEX 1
#define HAVE_LONG_DOUBLE__COMPLEX 1
#define HAVE_INT8_T 1
#define HAVE_INT16_T 1
#define HAVE_INT32_T 1
#define HAVE_INT64_T 1
#define HAVE_UINT8_T 1
#define HAVE_UINT16_T 1
#define HAVE_UINT32_T 1
#define HAVE_UINT64_T 1
#define HAVE_MPI_WIN_CREATE 1
#define HAVE_MPI_SPAWN 1
#define HAVE_MPI_IO 1
#define MPIO_USES_MPI_REQUEST 1
/* Nothing beyond the standard */
#define USE_STRICT_MPI 1
#define THREAD_PACKAGE_NONE 0
#define THREAD_PACKAGE_INVALID 1
#define THREAD_PACKAGE_POSIX 2
#define THREAD_PACKAGE_SOLARIS 3
#define THREAD_PACKAGE_WIN 4
#define THREAD_PACKAGE_UTI 5
#define THREAD_PACKAGE_ARGOBOTS 6
#define THREAD_PACKAGE_QTHREADS 7
#define THREAD_PACKAGE_NAME THREAD_PACKAGE_POSIX
"""
MUST_FAIL = {"TestStatus", "TestErrFatal"}
# Seconds that a connect without an accept waits: a test of the suite wants its end.
CONNECT_TIMEOUT = "10"


class Run:
    """One line of a test list."""

    def __init__(self, line):
        words = shlex.split(re.sub(r"^@[^@]*@", "", line), comments=True)
        self.program, self.ranks = words[0], int(words[1])
        self.arguments, self.environment = [], {}
        self.seconds, self.must_fail, self.may_fail, self.needs_mpich = 600, False, False, False
        for word in words[2:]:
            key, _, value = word.partition("=")
            if key == "arg":
                self.arguments.append(value)
            elif key == "env":
                name, _, setting = value.partition("=")
                self.environment[name] = setting
            elif key == "timeLimit":
                self.seconds = max(self.seconds, int(value))
            elif key == "resultTest":
                self.must_fail = value in MUST_FAIL
            elif key == "xfail":
                self.may_fail = True
            elif key == "mpiexecarg" or word.lower() == "strict=false":
                self.needs_mpich = True
            elif key.startswith("-"):
                self.arguments.append(word)

    def __str__(self):
        return " ".join([self.program, str(self.ranks)] + self.arguments)


def runs_of(folder):
    for name in ("testlist.in", "testlist"):
        path = folder / name
        if path.exists():
            lines = (line.strip() for line in path.read_text().splitlines())
            return [Run(line) for line in lines
                    if re.match(r"(@[^@]*@)?[A-Za-z0-9_]+\s+\d+(\s|$)", line)]
    raise SystemExit(f"mpich.py: {folder} has no testlist")


class Makefile:
    """What Makefile.am says of a folder's programs."""

    def __init__(self, folder):
        text = (folder / "Makefile.am").read_text().replace("\\\n", " ")
        self.values = {}
        for name, value in re.findall(r"^\s*(\w+)\s*\+?=\s*(.*)$", text, re.MULTILINE):
            self.values[name] = (self.values.get(name, "") + " " + value).strip()
        self.threads = "Makefile_threads.mtest" in text

    def sources(self, program):
        return [word for word in self.values.get(program + "_SOURCES", program + ".c").split()
                if not word.endswith(".h")]

    def definitions(self, program):
        return [word for word in self.values.get(program + "_CPPFLAGS", "").split() if word.startswith("-D")]


class Suite:
    def __init__(self, checkout, build, mpicc, work, jobs):
        self.checkout, self.build, self.mpicc, self.work = checkout, build, mpicc, work
        self.pool = concurrent.futures.ThreadPoolExecutor(jobs)
        self.include = work / "include"
        self.include.mkdir(parents=True)
        (self.include / "mpitestconf.h").write_text(CONFIGURATION)
        (work / "dtpoolsconf.h").write_text("") # named as ../dtpoolsconf.h
        (self.include / "mtest_mpix.h").write_text("")
        self.flags = ["-w", "-O1", f"-I{self.include}", f"-I{checkout / 'include'}",
                      f"-I{checkout / 'dtpools/include'}", "-include", "mpitestconf.h"]
        self.objects = {}

    def compiler(self, *arguments):
        return subprocess.run([self.mpicc, *self.flags, *arguments], capture_output=True, text=True,
                              timeout=300)

    def common_objects(self, threads):
        """The suite's own helpers, compiled once for programs with and without threads."""
        if threads not in self.objects:
            folder = self.work / ("common_threads" if threads else "common")
            folder.mkdir()
            sources = [self.checkout / "util" / name for name in ("mtest.c", "mtest_common.c", "dtypes.c")]
            sources.append(self.checkout / "util" / ("mtest_thread.c" if threads else "mtest_single.c"))
            sources += sorted((self.checkout / "dtpools/src").glob("*.c"))
            objects = []
            for source in sources:
                objects.append(folder / (source.stem + ".o"))
                made = self.compiler("-c", *(["-DMTEST_USE_THREAD"] if threads else []), source, "-o", objects[-1])
                if made.returncode:
                    raise SystemExit(f"mpich.py: {source} can't be compiled:\n{made.stderr}")
            self.objects[threads] = objects
        return self.objects[threads]

    def compile(self, name, makefile, program):
        """None, or why the program can't be built."""
        folder = self.checkout / name
        target = self.work / name / program
        definitions = makefile.definitions(program) + (["-DMTEST_USE_THREAD"] if makefile.threads else [])
        sources = [folder / source for source in makefile.sources(program)]
        # A function that a program of many tests can call has its main elsewhere.
        if any("MULTI_TESTS" in source.read_text(errors="replace") for source in sources if source.exists()):
            sources.append(self.checkout / "util/run_mpitests.c")
        made = self.compiler(f"-I{folder}", *definitions, *sources,
                             *self.common_objects(makefile.threads), "-lpthread", "-lm", "-o", target)
        return made.stderr if made.returncode else None

    def execute(self, name, run, ranks):
        """None, or what was wrong."""
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.work / name))
        try:
            (folder / run.program).symlink_to(self.work / name / run.program)
            command = [self.build / "bin/mpiexec", "--ranks", ranks, "-n", str(run.ranks), "./" + run.program]
            process = subprocess.Popen(command + run.arguments, cwd=folder, stdin=subprocess.DEVNULL,
                                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
                                       env={**os.environ, "WARREN_CONNECT_TIMEOUT": CONNECT_TIMEOUT,
                                            **run.environment})
            try:
                output = process.communicate(timeout=run.seconds)[0].decode(errors="replace")
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                return f"no end in {run.seconds} s\n" + process.communicate()[0].decode(errors="replace")[-2000:]
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        if run.must_fail:
            return None if process.returncode else "ended with 0\n" + output[-2000:]
        if process.returncode == 0 and re.search(r"^\s*No Errors\s*$", output, re.MULTILINE):
            return None
        return f"ended with {process.returncode}\n{output[-2000:]}"

    def folder(self, name, kinds):
        """Runs a folder's programs; gives runs and failures of each kind."""
        makefile = Makefile(self.checkout / name)
        runs = runs_of(self.checkout / name)
        (self.work / name).mkdir(parents=True)
        self.common_objects(makefile.threads)
        programs = sorted({run.program for run in runs})
        built = dict(zip(programs, self.pool.map(lambda program: self.compile(name, makefile, program), programs)))
        for program, problem in built.items():
            if problem:
                print(f"{name}/{program} can't be built:\n{problem[-1500:]}", flush=True)
        result = {}
        for kind in kinds:
            chosen = [run for run in runs if not built[run.program] and not run.needs_mpich]
            problems = list(self.pool.map(lambda run: self.execute(name, run, kind), chosen))
            failures = 0
            for run, problem in zip(chosen, problems):
                if problem:
                    failures += not run.may_fail
                    print(f"{'FAILED as MPICH does' if run.may_fail else 'FAILED'} {kind} {name}/{run}: {problem}",
                          flush=True)
            result[kind] = len(chosen), failures
            print(f"{name} {kind}: {len(chosen)} runs, {failures} failures", flush=True)
        return result


def main():
    parser = argparse.ArgumentParser(description="Runs the C programs of MPICH's test suite on Warren.")
    parser.add_argument("checkout", type=pathlib.Path, help="the folder test/mpi of MPICH's sources")
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/release"))
    parser.add_argument("--ranks", default="processes,threads,fibres", help="kinds of ranks, with commas")
    parser.add_argument("--mpicc", type=pathlib.Path, help="compiles the programs (mpicc of the build)")
    parser.add_argument("--jobs", type=int, default=1,
                        help="programs at a time: more than one publish the same name or file, and fail")
    parser.add_argument("folders", nargs="+", metavar="FOLDER")
    options = parser.parse_args()
    kinds = options.ranks.split(",")
    unknown = set(kinds) - {"processes", "threads", "fibres"}
    if unknown:
        parser.error(f"there is no kind of ranks {', '.join(sorted(unknown))}")
    mpicc = options.mpicc or options.build / "bin/mpicc"
    for needed in (options.checkout / "util/mtest.c", options.build / "bin/mpiexec", mpicc):
        if not needed.exists():
            parser.error(f"{needed} doesn't exist")
    total = failed = 0
    with tempfile.TemporaryDirectory(prefix="mpich-suite-") as work:
        suite = Suite(options.checkout.resolve(), options.build.resolve(), mpicc.absolute(),
                      pathlib.Path(work), options.jobs)
        for name in options.folders:
            for runs, failures in suite.folder(name, kinds).values():
                total += runs
                failed += failures
    print(f"all: {total} runs, {failed} failures")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
