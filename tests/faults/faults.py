#!/usr/bin/env python3
"""Fault tests: something is killed, refused or missing on purpose.

Every case runs a job, does its harm, and checks that mpiexec ends in time, with the right exit code
and a message that names the cause, and that nothing is left: no process of the job (known by a mark
in its environment, which every child inherits), no file in /tmp or /dev/shm.

    faults.py --mpiexec M --fake F [--traffic T --refuse R] [--runs N] [--only PART | --case NAME]
              [--list]
"""
import argparse
import os
import random
import re
import resource
import signal
import subprocess
import sys
import time

from fault_jobs import (END_WITHIN_S, SKIP, Fault, Job, args, be_alone, processes_with,
                        with_memory_limit)

CASES = {}

# What ranks are, these tests say.
os.environ.pop("WARREN_RANKS", None)


def case(function):
    CASES[function.__name__] = function
    return function


# --- the launcher alone ----------------------------------------------------------------------------

@case
def rank_is_killed():
    job = Job(["-n", "4", args.fake, "none", "wait"])
    job.wait_for_ranks(4)
    victim = random.randrange(4)
    job.harm(job.ranks()[victim])
    job.ends(137, rf"rank {victim} \(.*fake_rank, pid \d+\) was killed by SIGKILL")


@case
def mpiexec_is_killed():
    job = Job(["-n", "4", args.fake, "none", "stubborn"])
    job.wait_for_ranks(4)
    job.harm(job.process.pid)
    job.ends(-9, r"mpiexec \(pid \d+\) was killed")


@case
def mpiexec_is_killed_with_wrappers_around_the_ranks():
    # A child in the background, one in a process group of its own, one in a session of its own.
    job = Job(["-n", "2", "sh", "-c", "sleep 60 & timeout 60 sleep 60 & setsid sleep 60 & "
               f"{args.fake} none wait; true"])
    job.wait_for_ranks(2)
    time.sleep(0.2)
    job.harm(job.process.pid)
    job.ends(-9, r"mpiexec \(pid \d+\) was killed")


@case
def mpiexec_is_killed_while_it_starts_ranks():
    job = Job(["-n", "200", "sleep", "60"])
    job.wait_for_ranks(random.randrange(1, 150))
    job.harm(job.process.pid)
    job.ends(-9)


@case
def guardian_is_killed():
    job = Job(["-n", "3", args.fake, "none", "wait"])
    job.wait_for_ranks(3)
    job.harm(job.guardian())
    job.ends(1, "the guardian process .* was killed by SIGKILL")


@case
def guardian_and_mpiexec_are_killed():
    job = Job(["-n", "3", "sleep", "60"])
    job.wait_for_ranks(3)
    guardian = job.guardian()
    os.kill(job.process.pid, signal.SIGSTOP)
    os.kill(guardian, signal.SIGKILL)
    job.harm(job.process.pid)
    job.ends(-9, messages=0)


@case
def rank_aborts():
    Job(["-n", "4", args.fake, "2", "abort", "7"]).ends(
        7, r"rank 2 \(.*fake_rank\) called MPI_Abort with code 7: the density is negative")


@case
def rank_below_a_wrapper_aborts():
    Job(["-n", "3", "sh", "-c", f"{args.fake} 1 abort 7; sleep 60"]).ends(
        7, r"rank 1 \(sh\) called MPI_Abort with code 7")


@case
def abort_with_code_0_is_a_failure():
    Job(["-n", "2", args.fake, "0", "abort", "0"]).ends(1, "MPI_Abort with code 0")


@case
def others_keep_going():
    text = Job(["--keep-going", "-n", "2", args.fake, "1", "crash", "4",
                ":", "-n", "1", "sh", "-c", "sleep 0.5; echo went on"]).ends(132, "rank 1 .*SIGILL")
    if "went on" not in text:
        raise Fault(f"rank 2 did not go on: {text}")


@case
def waits_for_a_lost_rank_end():
    for call in ("recv", "wait", "test", "send", "ssend", "many_sends", "probe", "mprobe", "waitall", "waitany",
                 "sendrecv", "persistent", "any_source", "ibarrier", "iprobe", "freed", "precv", "psend"):
        # The others wait when it ends, or it has ended before.
        for delay in (0, 200000):
            ranks = random.randint(2, 5)
            text = Job(["--keep-going", "--timeout", "60", "-n", str(ranks), args.survivors, call, str(delay)]).ends(
                137, rf"rank {ranks - 1} .*SIGKILL")
            if "all go on" not in text:
                raise Fault(f"{ranks} ranks, {call}, {delay} µs: {text}")


@case
def several_nodes_do_not_keep_going():
    Job(["--keep-going", "--launcher", "fork", "--hosts", "a:1,b:1", "true"]).ends(2, "--keep-going is for a job of one")


@case
def rank_crashes():
    Job(["-n", "4", args.fake, "3", "crash", "4"]).ends(132, r"rank 3 .*SIGILL \(Ill")


@case
def rank_ends_without_finalize():
    Job(["-n", "3", args.fake, "1", "leave", "0"]).ends(1, r"rank 1 .*without calling MPI_Finalize")


@case
def rank_ends_without_init():
    Job(["-n", "3", args.fake, "0", "skip", "0"]).ends(1, r"rank 0 .*without calling MPI_Init")


@case
def failing_rank_ends_without_init():
    Job(["-n", "3", args.fake, "0", "skip", "5"]).ends(5, r"rank 0 .* exited with code 5")


@case
def rank_fails_after_finalize_and_others_wait():
    job = Job(["-n", "3", args.fake, "1", "finish", "3"])
    job.ends(3, r"rank 1 .* exited with code 3", "rank 0 waits for what rank 1, which has "
             "finalised and failed, will not do", messages=2)


@case
def rank_fails_after_finalize_and_others_go_on():
    text = Job(["-n", "1", args.fake, "0", "finish", "3", ":", "-n", "1", "sh", "-c",
                "sleep 2; echo went on"]).ends(3, r"rank 0 .* exited with code 3")
    if "went on" not in text:
        raise Fault(f"rank 1 did not go on: {text}")


@case
def rank_leaves_a_child_and_the_job_fails():
    Job(["-n", "2", args.fake, "1", "fork_and_leave", "3"]).ends(3, "without calling MPI_Finalize")


@case
def failed_job_with_stubborn_ranks():
    job = Job(["-n", "3", args.fake, "none", "stubborn", ":", "-n", "1", args.fake, "all", "stubborn"])
    job.wait_for_ranks(4)
    time.sleep(0.2)
    job.harm(job.ranks()[1])
    job.ends(137, "rank 1 .*SIGKILL")


@case
def interrupt_is_passed_on():
    job = Job(["-n", "3", args.fake, "none", "wait"])
    job.wait_for_ranks(3)
    job.harm(job.process.pid, signal.SIGINT)
    job.ends(130, r"SIGINT \(Interrupt\) was passed on")


@case
def second_interrupt_kills():
    job = Job(["-n", "3", args.fake, "all", "stubborn"])
    job.wait_for_ranks(3)
    time.sleep(0.5)
    os.kill(job.process.pid, signal.SIGINT)
    time.sleep(0.2)
    job.harm(job.process.pid, signal.SIGINT)
    job.ends(130, "ended by SIGINT")


@case
def terminate_reaches_ranks_outside_the_group():
    job = Job(["-n", "2", "timeout", "60", "sleep", "60"])
    job.wait_for_ranks(2)
    time.sleep(0.2)
    job.harm(job.process.pid, signal.SIGTERM)
    job.ends([124, 143], r"SIGTERM \(Terminated\) was passed on")


@case
def time_limit_shows_what_ranks_wait_for():
    text = Job(["-n", "3", "--timeout", "1", args.fake, "none", "wait"]).ends(
        124, "state of the 3 ranks", r"rank 1 \(pid \d+\): waits in MPI_Recv, peer 2, tag 42",
        "communicator MPI_COMM_WORLD", "3 posted", "time limit of 1 s", messages=2)
    if "for 0." not in text and "for 1." not in text:
        raise Fault(f"no time in: {text}")


@case
def user_signal_shows_states():
    job = Job(["-n", "2", "sleep", "2"])
    job.wait_for_ranks(2)
    job.wait_for_sleep()
    job.harm(job.process.pid, signal.SIGUSR1)
    job.ends(0, r"ranks 0-1: not initialised; process sleeping")


@case
def background_child_of_a_good_job_is_cleaned_up():
    Job(["-n", "2", "sh", "-c", "sleep 60 & exit 0"]).ends(0, messages=0)


@case
def nobody_reads_the_output():
    job = Job([])  # for its mark and files
    job.process.wait()
    pipeline = f"{args.mpiexec} -n 2 yes | head -1"
    environment = dict(os.environ)
    environment.update([job.mark.split("=")])
    begin = time.monotonic()
    done = subprocess.run(["sh", "-c", pipeline], env=environment, capture_output=True, timeout=10)
    if done.stdout != b"y\n" or time.monotonic() - begin > END_WITHIN_S:
        raise Fault(f"{done}")
    deadline = time.monotonic() + END_WITHIN_S
    while (left := processes_with(job.mark)) and time.monotonic() < deadline:
        time.sleep(0.02)
    if left:
        raise Fault(f"left behind: {left}")


# --- limits ----------------------------------------------------------------------------------------

@case
def memory_limit_is_too_small():
    return with_memory_limit(24 << 20, ["-n", "600", args.fake, "all", "finish"], [],
                             "node segment of 600 ranks needs .* kB, which do not fit the memory "
                             r"limit of 24576 kB \(/sys/fs/cgroup")


@case
def memory_limit_is_too_small_and_cannot_be_read():
    hidden = "mount -t tmpfs none /sys/fs/cgroup && exec \"$@\""
    wrapper = ["unshare", "-m", "sh", "-c", hidden, "sh"]
    if subprocess.run([*wrapper, "true"], capture_output=True, check=False).returncode != 0:
        return SKIP
    return with_memory_limit(24 << 20, ["-n", "600", args.fake, "all", "finish"], wrapper,
                             "node segment of 600 ranks needs .* kB, which do not fit the memory")


def with_limit(kind, value, *patterns, ranks=100):
    def limit():
        resource.setrlimit(kind, (value, value))
    Job(["-n", str(ranks), args.fake, "all", "finish"], preexec_fn=limit).ends(1, *patterns)


@case
def file_size_limit_is_too_small():
    with_limit(resource.RLIMIT_FSIZE, 1 << 20, r"limit of file sizes of 1024 kB \(ulimit -f\)")


@case
def address_space_limit_is_too_small():
    if args.sanitized:
        return SKIP  # the sanitizer itself needs terabytes of addresses
    with_limit(resource.RLIMIT_AS, 20 << 20, r"limit of address space is 20480 kB \(ulimit -v\)",
               ranks=600)
    return None


@case
def descriptor_limit_is_too_small():
    with_limit(resource.RLIMIT_NOFILE, 100, r"3\d\d file descriptors are needed.*\(ulimit -Hn\)")


@case
def program_is_missing():
    Job(["-n", "2", "no-such-program"]).ends(127, "program 'no-such-program' is not in PATH")
    Job(["-n", "2", "/no/such/program"]).ends(127, "program '/no/such/program': No such file")
    Job(["-n", "2", "/etc/passwd"]).ends(126, "'/etc/passwd' is not executable")
    Job(["-n", "2", "-wdir", "/no/such", "true"]).ends(2, "working directory '/no/such'")
    Job(["--no-such-option", "true"]).ends(2, "unknown option '--no-such-option'")


@case
def proc_is_missing():
    wrapper = ["unshare", "-m", "sh", "-c", 'umount -l /proc && exec "$@"', "sh"]
    if subprocess.run([*wrapper, "true"], capture_output=True, check=False).returncode != 0:
        return SKIP
    for kind in ("processes", "threads", "fibres"):
        Job(["--ranks", kind, "-n", "2", "true"], wrapper).ends(1, "/proc is not mounted here")
    return None


# --- with the MPI library --------------------------------------------------------------------------

@case
def traffic_and_a_rank_is_killed():
    job = Job(["-n", "4", args.traffic, "none", "-1", "0"])
    job.wait_for_ranks(4)
    time.sleep(random.uniform(0, 0.5))
    victim = random.randrange(4)
    job.harm(job.ranks()[victim])
    job.ends(137, rf"rank {victim} .*SIGKILL")


def kill_in_collectives(ranks):
    job = Job(["-n", str(ranks), args.traffic, "collectives", "-1", "0"])
    job.wait_for_ranks(ranks)
    time.sleep(random.uniform(0, 0.3))
    victim = random.randrange(ranks)
    job.harm(job.ranks()[victim])
    job.ends(137, rf"rank {victim} .*SIGKILL")


@case
def traffic_of_collectives_and_a_rank_is_killed():
    for _ in range(3):
        kill_in_collectives(2)


@case
def traffic_of_collectives_and_one_of_many_ranks_is_killed():
    for ranks in (5, 32):
        kill_in_collectives(ranks)


@case
def traffic_of_collectives_and_mpiexec_is_killed():
    job = Job(["-n", "8", args.traffic, "collectives", "-1", "0"])
    job.wait_for_ranks(8)
    time.sleep(random.uniform(0, 0.3))
    job.harm(job.process.pid)
    job.ends(-9, r"mpiexec \(pid \d+\) was killed")


@case
def traffic_and_mpiexec_is_killed():
    job = Job(["-n", "4", args.traffic, "none", "-1", "0"])
    job.wait_for_ranks(4)
    time.sleep(random.uniform(0, 0.5))
    job.harm(job.process.pid)
    job.ends(-9, r"mpiexec \(pid \d+\) was killed")


@case
def traffic_and_a_rank_aborts():
    who = random.randrange(4)
    Job(["-n", "4", args.traffic, "abort", str(who), str(random.randrange(300))]).ends(
        7, rf"rank {who} .*MPI_Abort with code 7")


@case
def traffic_and_a_part_is_aborted():
    who = random.choice((1, 3, 5))
    text = Job(["--keep-going", "-n", "6", args.traffic, "part", str(who), "0"]).ends(
        7, rf"rank {who} called MPI_Abort with code 7 on a communicator of 3 ranks",
        rf"mpiexec: rank {who} .* exited with code 7 without calling MPI_Finalize")
    if text.count("went on") != 3:
        raise Fault(f"others did not go on: {text}")
    Job(["-n", "6", args.traffic, "part", str(who), "0"]).ends(
        7, rf"rank {who} .*MPI_Abort with code 7")


@case
def traffic_and_a_rank_leaves():
    who = random.randrange(4)
    Job(["-n", "4", args.traffic, "leave", str(who), str(random.randrange(300))]).ends(
        1, rf"rank {who} .*without calling MPI_Finalize")


@case
def traffic_and_a_rank_crashes():
    if args.sanitized:
        return SKIP  # the sanitizer makes an exit of it
    who = random.randrange(4)
    Job(["-n", "4", args.traffic, "crash", str(who), str(random.randrange(300))]).ends(
        139, rf"rank {who} .*SIGSEGV")
    return None


@case
def traffic_and_a_message_that_nobody_receives():
    # A busy machine may need longer until the rank waits: the account of what it does before that
    # says nothing.
    for seconds in (2, 10, 50):
        text = Job(["-n", "3", "--timeout", str(seconds), args.traffic, "forget", "1", "0"]).ends(
            124, messages=2, within=seconds + END_WITHIN_S)
        if re.search(r"rank 1 \(pid \d+\): waits in MPI_Finalize", text):
            return
    raise Fault(f"rank 1 does not come to wait in MPI_Finalize: {text}")


@case
def traffic_and_the_owner_of_a_lock_is_killed():
    who = random.randrange(3)
    job = Job(["-n", "3", args.traffic, "lock", str(who), "0"])
    job.wait_for_ranks(3)
    job.wait_for_sleep()
    job.harm(job.ranks()[who])
    job.ends(137, rf"rank {who} .*SIGKILL")


@case
def traffic_and_it_is_told_who_holds_a_lock():
    for seconds in (2, 10, 50):
        text = Job(["-n", "2", "--timeout", str(seconds), args.traffic, "lock", "1", "0"]).ends(
            124, messages=2, within=seconds + END_WITHIN_S)
        if re.search(r"rank 0 \(pid \d+\): waits in MPI_Win_lock, peer 0, "
                     r"communicator a window, held by rank 1;", text):
            return
    raise Fault(f"nobody is told that rank 1 holds the lock: {text}")


@case
def traffic_of_two_programs_in_one_rank():
    twice = f"{args.traffic} finish 0 0 && {args.traffic} finish 0 0"
    Job(["-n", "2", "sh", "-c", twice]).ends(
        1, r"rank \d of this job has been process \d+ already")


@case
def traffic_and_a_rank_fails_after_finalize():
    # Programs with a sanitizer's library can't be images.
    for kind in ("processes",) if args.sanitized else ("processes", "threads"):
        Job(["--ranks", kind, "-n", "3", args.traffic, "depart", "2", "0"]).ends(
            5, r"rank 2 .* exited with code 5",
            "ranks 0-1 wait for what rank 2, which has finalised and failed, will not do",
            messages=2)
    if args.sanitized:
        return
    # A host of fibres sees by itself that nobody goes on.
    Job(["--ranks", "fibres", "-n", "3", args.traffic, "depart", "2", "0"]).ends(
        5, r"rank 2 .* exited with code 5", messages=2)


@case
def traffic_in_a_child_of_a_rank():
    """Without the rank's descriptors, as Python starts children."""
    child = "import subprocess, sys; sys.exit(subprocess.run(sys.argv[1:]).returncode != 0)"
    deed = [args.traffic, "finish", "0", "0"]
    Job(["-n", "2", sys.executable, "-c", child, *deed]).ends(
        1, r"this process was started by rank [01] of a job", "not the rank and can't use MPI")
    for kind in ("threads", "fibres"):
        Job(["--ranks", kind, "-n", "2", "sh", "-c", " ".join(deed) + "; exit $(($? != 0))"]).ends(
            1, r"this process was started by rank [01] of a job", "not the rank and can't use MPI")
    for kind in ("processes", "threads", "fibres"):
        command = f"{args.mpiexec} -n 2 " + " ".join(deed)
        Job(["--ranks", kind, "-n", "2", "sh", "-c", command]).ends(0, messages=0)


@case
def traffic_below_a_shell_that_uses_descriptors():
    script = "exec " + " ".join(f"{number}>&1" for number in range(3, 10)) + "; "
    Job(["-n", "2", "sh", "-c", script + args.traffic + " finish 0 0; exit $?"]).ends(0, messages=0)


@case
def traffic_in_too_little_memory():
    return with_memory_limit(24 << 20, ["-n", "600", args.traffic, "finish", "0", "0"], [],
                             "node segment of 600 ranks needs .* memory limit of 24576 kB")


@case
def traffic_where_cma_is_refused():
    Job(["-n", "4", args.refuse, args.traffic, "finish", "0", "0"]).ends(0, messages=0, within=30)
    # A filter on mpiexec holds for all ranks, one on a rank only for that one.
    Job(["-n", "1", args.refuse, args.traffic, "finish", "0", "0", ":", "-n", "3", args.traffic,
         "finish", "0", "0"]).ends(0, messages=0, within=30)
    Job(["-n", "4", args.traffic, "finish", "0", "0"], [args.refuse]).ends(
        0, messages=0, within=30)


@case
def traffic_without_dev_shm():
    for hide in ("umount -l /dev/shm", "mount -t tmpfs -o ro,size=4k none /dev/shm"):
        wrapper = ["unshare", "-m", "sh", "-c", hide + " && exec \"$@\"", "sh"]
        if subprocess.run([*wrapper, "true"], capture_output=True, check=False).returncode != 0:
            return SKIP
        Job(["-n", "4", args.traffic, "finish", "0", "0"], wrapper).ends(0, messages=0, within=30)
    return None


def main():
    for name, function in CASES.items():
        if args.list:
            print(name)
            continue
        if args.only not in name or (args.case and args.case != name):
            continue
        if name.startswith("traffic") and not args.traffic:
            print(f"{name:55} skipped: no --traffic", flush=True)
            continue
        begin = time.monotonic()
        for run in range(args.runs):
            try:
                result = function()
            except Fault as fault:
                print(f"{name}: run {run + 1}: {fault}", flush=True)
                return 1
            if result == SKIP:
                break
        word = "skipped: not possible here" if result == SKIP else f"passed {args.runs} times"
        print(f"{name:55} {word} ({time.monotonic() - begin:.1f} s)", flush=True)
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--mpiexec", default="mpiexec")
    parser.add_argument("--fake", help="the fake_rank program")
    parser.add_argument("--traffic", help="the traffic program")
    parser.add_argument("--survivors", help="the survivors program")
    parser.add_argument("--refuse", help="the refuse_cma program")
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--only", default="", help="part of the names of the cases to run")
    parser.add_argument("--case", help="the name of the case to run")
    parser.add_argument("--sanitized", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.parse_args(namespace=args)
    be_alone()
    sys.exit(main())
