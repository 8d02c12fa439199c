#!/usr/bin/env python3
"""What users see of mpiexec, with ordinary programs.

    behaviour.py --mpiexec M --copied PROGRAM --pieces PROGRAM [--kinds K,…] [--only PART | --case NAME]
                 [--list]
"""
import argparse
import os
import pathlib
import pty
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import cases
from cases import case, expect, wait_until


def run(*arguments, **options):
    return cases.job(args.mpiexec, *arguments, **options)


def is_sanitized():
    libraries = subprocess.run(["ldd", args.copied], capture_output=True, text=True, check=False).stdout
    return "libasan" in libraries or "libtsan" in libraries


def state_of(pid):
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]


@case
def ranks_know_rank_and_size():
    done = run("-n", "3", "sh", "-c", "echo $WARREN_RANK of $WARREN_SIZE")
    expect(sorted(done.stdout.split("\n")) == ["", "0 of 3", "1 of 3", "2 of 3"], done)


@case
def ranks_find_the_variables_of_other_launchers():
    crowd = 8 * len(os.sched_getaffinity(0)) + 3  # its processes are forked from the first
    for kind, ranks in (("processes", 3), ("processes", crowd), ("threads", 3), ("fibres", 3)):
        done = run("--ranks", kind, "-n", str(ranks), "sh", "-c",
                   "echo $OMPI_COMM_WORLD_RANK $OMPI_COMM_WORLD_LOCAL_RANK $OMPI_COMM_WORLD_NODE_RANK "
                   "$MPI_LOCALRANKID $OMPI_COMM_WORLD_SIZE $OMPI_COMM_WORLD_LOCAL_SIZE $MPI_LOCALNRANKS",
                   env=dict(os.environ, OMPI_COMM_WORLD_RANK="7", MPI_LOCALNRANKS="9"))
        expect(sorted(done.stdout.splitlines()) ==
               sorted(4 * f"{rank} " + f"{ranks} {ranks} {ranks}" for rank in range(ranks)), done)


@case
def several_programs_with_directories_and_variables():
    done = run("-genv", "BOTH", "b", "-n", "2", "-env", "A", "1", "sh", "-c",
               "echo first $WARREN_RANK $A $BOTH", ":", "-wdir", "/usr", "-x", "C=x y", "sh", "-c",
               "echo second $WARREN_RANK $A$BOTH \"$C\" $(pwd)")
    expect(sorted(done.stdout.splitlines()) ==
           ["first 0 1 b", "first 1 1 b", "second 2 b x y /usr"], done)


@case
def crowded_ranks_get_threads_that_share_processors():
    ranks = str(4 * len(os.sched_getaffinity(0)))
    show = ["sh", "-c", "echo $OMP_NUM_THREADS $OMP_WAIT_POLICY"]
    none = {name: value for name, value in os.environ.items()
            if not name.startswith(("OMP_", "KMP_", "OPENBLAS_"))}
    expect(set(run("-n", ranks, *show, env=none).stdout.splitlines()) == {"1 passive"}, ranks)
    expect(set(run("-n", ranks, "-x", "OMP_NUM_THREADS=3", *show, env=none).stdout.splitlines())
           == {"3 passive"}, "the option's number")
    mine = none | {"OMP_WAIT_POLICY": "active"}
    expect(set(run("-n", ranks, *show, env=mine).stdout.splitlines()) == {"1 active"}, "mine")
    expect(run("-n", "1", *show, env=none).stdout == "\n", "one rank")


@case
def lines_of_ranks_stay_whole():
    # With tags also when a rank pauses within a line, as on a machine with more to do.
    script = ("for i in $(seq 300); do printf \"$WARREN_RANK-\"; printf \"$i-\"; "
              "test $i = 100 && sleep 0.3; echo end; done")
    done = run("-l", "-n", "8", "sh", "-c", script)
    lines = done.stdout.splitlines()
    expect(len(lines) == 2400, len(lines))
    expect(all(re.fullmatch(r"\[(\d)\] \1-\d+-end", line) for line in lines), "a line is mixed")
    for rank in range(8):
        numbers = [int(line.split("-")[1]) for line in lines if line.startswith(f"[{rank}]")]
        expect(numbers == list(range(1, 301)), f"order of rank {rank}")


def seen_pieces(kind, ranks, output, errors):
    """What a job has written that waits until each of its ranks' unfinished lines has been seen."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "seen"
        with subprocess.Popen([args.mpiexec, "--ranks", kind, "-n", str(ranks), args.pieces,
                               str(file), "20", output, errors], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as job:
            texts = ["", ""]
            for index, piece in enumerate((output, errors)):
                stream = (job.stdout, job.stderr)[index].fileno()
                while texts[index].count(piece.split()[-1]) < ranks:
                    more = os.read(stream, 1000).decode()
                    expect(more and "end" not in more, (texts, more))
                    texts[index] += more
            file.touch()
            rest = job.communicate(timeout=20)
            expect(job.returncode == 0, job.returncode)
    return [text + more.decode() for text, more in zip(texts, rest)]


@case
def unfinished_lines_are_seen_while_ranks_go_on():
    for kind in args.kinds.split(","):
        for ranks in (1, 2):
            output, errors = seen_pieces(kind, ranks, "half", "part")
            for text, piece in ((output, "half"), (errors, "part")):
                joined = text if ranks == 1 else text.replace("\n", "")
                expect(joined == piece * ranks + ("seen\n" if ranks == 1 else "seenseen"), (kind, text))
        # A progress bar: each state replaces the last.
        output, errors = seen_pieces(kind, 2, "10%\r", "\r10%\r20%")
        expect(output == "10%\r" * 2 + "seen\n" * 2, (kind, output))
        expect(errors.startswith("\r10%\r") and errors.count("\r20%") + errors.count("\n20%") == 2,
               (kind, errors))


@case
def lines_with_tags_wait_for_their_end():
    for kind in args.kinds.split(","):
        for ranks in (1, 2):
            done = run("-l", "--ranks", kind, "-n", str(ranks), args.pieces, "/none", "0.5", "half",
                       "part")
            for text, piece in ((done.stdout, "half"), (done.stderr, "part")):
                expect(sorted(text.splitlines()) == [f"[{rank}] {piece}end" for rank in range(ranks)],
                       (kind, done))


@case
def output_that_does_not_fit_is_a_failure():
    for script, code in (("echo lost; echo heard >&2", 1),
                         ("echo lost; sleep 0.3; while echo more; do sleep 0.01; done", 141)):
        with open("/dev/full", "w") as full:
            done = subprocess.run([args.mpiexec, "-n", "2", "sh", "-c", script], stdout=full,
                                  stderr=subprocess.PIPE, text=True, timeout=60, check=False)
        expect(done.returncode == code and
               done.stderr.count("writing the ranks' output to the standard output: No space left "
                                 "on device") == 1, done)


@case
def output_and_errors_stay_apart():
    done = run("-n", "2", "sh", "-c", "echo out; echo err >&2")
    expect(done.stdout == "out\nout\n" and done.stderr == "err\nerr\n", done)


@case
def tags_name_the_rank_of_each_line():
    done = run("-l", "-n", "2", "sh", "-c", "echo one; printf two")
    expect(sorted(done.stdout.split()) == ["[0]", "[0]", "[1]", "[1]", "one", "one", "two", "two"], done)


@case
def bulk_output_arrives_complete():
    done = run("-n", "2", "sh", "-c", "head -c 20000000 /dev/zero | tr '\\0' x; echo")
    expect(sorted(map(len, done.stdout.split("\n"))) [-1] <= 20000000, "lengths")
    expect(done.stdout.count("x") == 40000000, done.stdout.count("x"))


@case
def binary_output_of_one_rank_is_unchanged():
    data = os.urandom(3_000_000)
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        done = subprocess.run([args.mpiexec, "-n", "1", "cat", file.name], capture_output=True,
                              check=True)
    expect(done.stdout == data, "bytes differ")


@case
def input_goes_to_rank_0():
    done = run("-n", "3", "sh", "-c", "echo $WARREN_RANK $(wc -c)", stdin=None, input="hello")
    expect(sorted(done.stdout.splitlines()) == ["0 5", "1 0", "2 0"], done)


@case
def a_terminal_is_passed_on_to_rank_0_and_questions_are_seen():
    script = "printf 'name? '; read name; echo \"hello $name\"; wc -c"
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(args.mpiexec, [args.mpiexec, "-n", "2", "sh", "-c",
                                f"test $WARREN_RANK = 1 || {{ {script}; }}"])
    seen = b""

    def has(text):
        nonlocal seen
        seen += os.read(terminal, 1000)
        return text in seen

    wait_until(lambda: has(b"name? "), "no question")
    os.write(terminal, b"you\n")
    wait_until(lambda: has(b"hello you"), "no answer")
    os.write(terminal, b"12345\n\x04")  # Ctrl-D: the end
    wait_until(lambda: has(b"\r\n6\r\n"), seen)
    expect(os.waitpid(pid, 0)[1] == 0, "exit code")


@case
def control_c_at_a_terminal_ends_the_job():
    pid, terminal = pty.fork()
    if pid == 0:
        # Not a shell: between two commands dash may lose an interrupt.
        wait = ("import signal; signal.signal(signal.SIGINT, signal.SIG_DFL);"
                "print('up', flush=True); signal.pause()")
        os.execv(args.mpiexec, [args.mpiexec, "-n", "2", sys.executable, "-c", wait])
    seen = b""
    while seen.count(b"up") < 2:
        seen += os.read(terminal, 1000)
    begin = time.monotonic()
    os.write(terminal, b"\x03")
    status = os.waitpid(pid, 0)[1]
    expect(os.waitstatus_to_exitcode(status) == 130, status)
    expect(time.monotonic() - begin < 5, "slow")


@case
def stop_and_continue_reach_the_ranks():
    with subprocess.Popen([args.mpiexec, "-n", "2", "sleep", "60"]) as job:
        children = pathlib.Path(f"/proc/{job.pid}/task/{job.pid}/children")

        def ranks():
            return [int(pid) for pid in children.read_text().split()
                    if pathlib.Path(f"/proc/{pid}/comm").read_text() == "sleep\n"]

        wait_until(lambda: len(ranks()) == 2, "no ranks")
        job.send_signal(signal.SIGTSTP)
        wait_until(lambda: all(state_of(pid) == "T" for pid in [job.pid, *ranks()]), "not stopped")
        job.send_signal(signal.SIGCONT)
        wait_until(lambda: all(state_of(pid) != "T" for pid in [job.pid, *ranks()]), "not continued")
        job.terminate()
        expect(job.wait(10) == 143, job.returncode)


@case
def the_first_failing_code_is_returned():
    done = run("-n", "4", "sh", "-c", "test $WARREN_RANK = 2 && { sleep 0.2; exit 9; }; "
               "test $WARREN_RANK = 1 && { sleep 0.5; exit 4; }; sleep 0.7; echo done")
    expect(done.returncode == 9, done)
    expect(done.stdout == "done\ndone\n", done)  # plain programs go on
    expect(re.fullmatch(r"mpiexec: rank 2 \(sh, pid \d+\) exited with code 9\n", done.stderr), done)


@case
def ranks_get_clean_descriptors_and_signals():
    done = run("-n", "1", "sh", "-c", "ls /proc/self/fd | wc -l; grep -E 'SigBlk|SigIgn' "
               "/proc/self/status")
    lines = done.stdout.split()
    # 0, 1, 2, the segment, the lifeline, the topology and its socket, and the folder that ls itself
    # reads.
    expect(lines[0] == "8", done)
    expect(lines[2] == "0" * 16 and int(lines[4], 16) & 0x7ff == 0, done)


@case
def the_limit_of_descriptors_is_raised_for_mpiexec_only():
    def few():
        resource.setrlimit(resource.RLIMIT_NOFILE, (80, 4096))
    done = run("-n", "40", "sh", "-c", "ulimit -Sn", preexec_fn=few)
    expect(done.stdout == "80\n" * 40, done)


@case
def scripts_without_interpreter_line_run():
    with tempfile.TemporaryDirectory() as folder:
        script = pathlib.Path(folder) / "script"
        script.write_text("echo plain $1\n")
        script.chmod(0o755)
        done = run("-n", "1", str(script), "word")
        expect(done.stdout == "plain word\n", done)
        script.write_text("#!/no/such/interpreter\n")
        done = run("-n", "1", str(script))
        expect(done.returncode == 127 and "interpreter" in done.stderr, done)
        done = run("-n", "1", "-wdir", folder, "./script")
        expect(done.returncode == 127, done)


@case
def a_job_can_run_inside_a_rank():
    done = run("-n", "2", args.mpiexec, "-n", "2", "sh", "-c",
               "echo $WARREN_RANK/$WARREN_SIZE/$OMPI_COMM_WORLD_RANK")
    expect(sorted(done.stdout.split()) == ["0/2/0", "0/2/0", "1/2/1", "1/2/1"] and
           done.stderr == "", done)


@case
def closed_standard_descriptors_do_no_harm():
    command = f"{args.mpiexec} -n 2 sh -c 'echo out; cat; echo err >&2' "
    for closed in ("<&-", ">&-", "<&- >&- 2>&-", "2>&-"):
        done = subprocess.run(["sh", "-c", command + closed], capture_output=True, text=True,
                              timeout=20, check=False)
        expect(done.returncode == 0, (closed, done))


@case
def a_reader_that_does_not_read_stops_no_signal():
    with subprocess.Popen([args.mpiexec, "-n", "2", "yes"], stdout=subprocess.PIPE) as job:
        time.sleep(1)
        expect(job.poll() is None, "ended")
        job.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        job.send_signal(signal.SIGTERM)
        expect(job.wait(5) == 143, job.returncode)


@case
def a_time_limit_may_come_from_the_environment():
    done = run("-n", "2", "sleep", "30", env=os.environ | {"MPIEXEC_TIMEOUT": "0.5"})
    expect(done.returncode == 124, done)
    done = run("-n", "1", "true", env=os.environ | {"MPIEXEC_TIMEOUT": "soon"})
    expect(done.returncode == 2 and "MPIEXEC_TIMEOUT needs a time" in done.stderr, done)


@case
def bindings_are_reported_and_true():
    allowed = sorted(os.sched_getaffinity(0))
    done = run("--bind-to", "hwthread", "--report-bindings", "-n", str(len(allowed)), "grep",
               "Cpus_allowed_list", "/proc/self/status")
    if "hwloc" in done.stderr and done.returncode != 0:
        return
    expect(sorted(int(line.split()[1]) for line in done.stdout.splitlines()) == allowed, done)
    expect(done.stderr.count("is bound to hardware thread") == len(allowed), done)
    done = run("--bind-to", "core", "-n", "1", "grep", "Cpus_allowed_list", "/proc/self/status",
               preexec_fn=lambda: os.sched_setaffinity(0, allowed[-1:]))
    expect(done.stdout.split()[1] == str(allowed[-1]), done)


@case
def oversubscription_needs_no_option():
    ranks = 2 * len(os.sched_getaffinity(0)) + 3
    done = run("-v", "-n", str(ranks), "true")
    expect(done.returncode == 0 and "oversubscribed" in done.stderr, done)


def copied_ranks(*options, ranks, **more):
    """What copied.c says, by rank; and whether all have the same addresses."""
    done = run(*options, "-n", str(ranks), args.copied, **more)
    expect(done.returncode == 0, done)
    lines = [line.split(None, 4) for line in done.stdout.splitlines()]
    expect(sorted(int(line[0]) for line in lines) == list(range(ranks)), done)
    expect(len({line[1] for line in lines}) == ranks and len({line[2] for line in lines}) == 1, done)
    return lines, len({line[3] for line in lines}) == 1


@case
def many_processes_are_copies_of_the_first():
    processors = len(os.sched_getaffinity(0))
    sanitized = is_sanitized()
    lines, alike = copied_ranks(ranks=2 * processors + 21)
    expect(alike != sanitized and all(line[4] == "-" for line in lines), lines)
    if not sanitized:
        lines, alike = copied_ranks(ranks=2 * processors)
        expect(not alike, "as many as the processors take are executed")
        # The user's own library stays, and what the program executes knows nothing of the copying.
        own = subprocess.run(["gcc", "-print-file-name=libgcc_s.so.1"], capture_output=True,
                             text=True, check=True).stdout.strip()
        lines, alike = copied_ranks(ranks=2 * processors + 1,
                                    env={**os.environ, "LD_PRELOAD": own})
        expect(alike and all(line[4] == own for line in lines), lines)
    ranks = 2 * processors + 3
    done = run("-wdir", "/usr", "-n", str(ranks), "sh", "-c",
               "env -u WARREN_RANK sh -c 'pwd; env' | grep -c -e ^/usr -e FORKED -e PRELOAD; cat",
               input="text\n")
    expect(sorted(done.stdout.splitlines()) == ["1"] * ranks + ["text"], done)


@case
def first_processes_that_are_not_copied():
    """A script, a static program, one that ends at once: the other ranks are executed."""
    ranks = str(2 * len(os.sched_getaffinity(0)) + 2)
    with tempfile.TemporaryDirectory() as folder:
        script = pathlib.Path(folder) / "script"
        script.write_text("#!/bin/sh\necho rank $WARREN_RANK\n")
        script.chmod(0o755)
        done = run("-n", ranks, str(script))
        expect(sorted(done.stdout.split()[1::2], key=int) == [str(r) for r in range(int(ranks))], done)
        source = pathlib.Path(folder) / "static.c"
        source.write_text("#include <stdio.h>\nint main(void) { return puts(\"here\") < 0; }\n")
        static = pathlib.Path(folder) / "static"
        subprocess.run(["gcc", "-static", str(source), "-o", str(static)], check=True)
        done = run("-n", ranks, str(static))
        expect(done.stdout == "here\n" * int(ranks), done)
        broken = pathlib.Path(folder) / "broken"
        subprocess.run(["gcc", "-Wl,--dynamic-linker=/nonexistent/ld.so", str(source), "-o",
                        str(broken)], check=True)
        # Its interpreter is missing: refused once, by whichever is found first.
        for count in range(1, int(ranks) + 1):
            done = run("-n", str(count), str(broken))
            expect(done.returncode == 127 and done.stderr.count("executing the program") == 1, done)


@case
def another_terminal_can_ask_for_the_state():
    warren = os.path.join(os.path.dirname(args.mpiexec), "warren")
    with subprocess.Popen([args.mpiexec, "-n", "2", "sleep", "60"], stderr=subprocess.DEVNULL) as job:
        def state():
            return subprocess.run([warren, "state", str(job.pid)], capture_output=True, text=True,
                                  check=False).stdout
        wait_until(lambda: "ranks 0-1: not initialised; process sleeping" in state(), state())
        job.terminate()
    done = subprocess.run([warren, "state", "1"], capture_output=True, text=True, check=False)
    expect(done.returncode == 1 and "process 1 is no mpiexec" in done.stderr, done)


@case
def processes_may_have_several_ranks():
    done = run("--ranks-per-process", "2", "-l", "-n", "4", "sh", "-c",
               "echo $WARREN_RANK $WARREN_RANKS_HERE")
    expect(sorted(done.stdout.splitlines()) == ["[0-1] 0 2", "[2-3] 2 2"], done)
    done = run("--ranks-per-process", "2", "-n", "4", "sh", "-c", "test $WARREN_RANK = 0 || kill -9 $$")
    expect(done.returncode == 137 and "ranks 2-3 (sh, pid" in done.stderr, done)
    done = run("--ranks-per-process", "3", "-n", "4", "true")
    expect(done.returncode == 2 and "4 ranks of true do not make whole" in done.stderr, done)


@case
def programs_of_other_libraries_of_the_abi_get_warrens():
    if is_sanitized():
        return  # a sanitizer's library must be the first that a program loads
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder)
        (path / "program.c").write_text("int MPI_Init(void*, void*);\nint MPI_Finalize(void);\n"
                                        "int main(void) { return MPI_Init(0, 0) || MPI_Finalize(); }\n")
        (path / "library.c").write_text("int MPI_Init(void* a, void* b) { return a == b ? 1 : 2; }\n"
                                        "int MPI_Finalize(void) { return 0; }\n")
        library = path / "libmpi_abi.so.1"
        subprocess.run(["gcc", "-shared", "-Wl,-soname,libmpi_abi.so.1", "-o", library,
                        path / "library.c"], check=True)
        tags = {"by_variable": [], "by_runpath": ["-Wl,--enable-new-dtags,-rpath," + folder],
                "by_rpath": ["-Wl,--disable-new-dtags,-rpath," + folder]}
        for name, options in tags.items():
            subprocess.run(["gcc", path / "program.c", library, "-o", path / name, *options], check=True)
        environment = {**os.environ, "LD_LIBRARY_PATH": folder}
        for name in tags:
            alone = subprocess.run([path / name], env=environment, check=False)
            expect(alone.returncode == 1, alone)
            for command in ([str(path / name)], ["sh", "-c", str(path / name)]):
                if name == "by_rpath" and command[0] == "sh":
                    continue  # only what the program itself says leads to a preload
                done = run("-n", "2", "-v", *command, env=environment)
                expect(done.returncode == 0, done)
                if command[0] != "sh":
                    expect("/standard-abi" in done.stderr and f"finds {library}" in done.stderr, done)
            done = run("--ranks", "threads", "-n", "2", str(path / name), env=environment)
            expect(done.returncode == 0, done)
        library.unlink()
        done = run("-n", "2", "-v", str(path / "by_variable"), env=environment)
        expect(done.returncode == 0 and "by itself it finds none" in done.stderr, done)


@case
def help_and_version_and_mistakes():
    expect("usage: mpiexec" in run("--help").stdout, "help")
    expect(run("--version").stdout.startswith("mpiexec (Warren) "), "version")
    done = run("-host", "localhost", "-ppn", "2", "-n", "2", "echo", "here")
    expect(done.stdout == "here\nhere\n", done)
    done = run("-n", "2", "-n", "3", "true")
    expect(done.returncode == 2 and "the number of ranks is 2 already" in done.stderr, done)
    done = run("-n", "two", "true")
    expect(done.returncode == 2 and done.stderr.count("\n") == 1 and "'two'" in done.stderr, done)
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "here"
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
        done = run("here", cwd=folder)
        expect(done.returncode == 127 and "did you mean ./here" in done.stderr, done)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--copied", required=True, type=os.path.abspath)
    parser.add_argument("--pieces", required=True, type=os.path.abspath)
    parser.add_argument("--kinds", default="processes,threads,fibres", help="of ranks")
    args = cases.parse(parser)
    sys.exit(cases.run(args))
