#!/usr/bin/env python3
"""Worlds that meet and end: jobs that connect, spawn, fail and are killed.

    worlds.py --mpiexec M --partner PROGRAM [--only PART | --case NAME] [--list]
"""
import argparse
import json
import os
import pathlib
import resource
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import cases
from cases import case, expect, wait_until


STRANGER = 65534  # nobody


def command(ranks, *arguments):
    return [args.mpiexec, "-n", str(ranks), args.partner, *arguments]


def start(words):
    return subprocess.Popen(words, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            stdin=subprocess.DEVNULL)


def run(words):
    return subprocess.run(words, text=True, capture_output=True, stdin=subprocess.DEVNULL,
                          check=False, timeout=100)


def processes(mark, program=None):
    """The processes whose command line has this word, and begins with the program."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_text().split("\0") if entry.name.isdigit() else []
            if mark in words and program in (None, words[0]):
                found.append(int(entry.name))
        except OSError:
            pass
    return found


def mark():
    return f"mark.{os.getpid()}.{id(object())}"


def succeeded(job, *lines):
    expect(job.returncode == 0, f"exit code {job.returncode}: {job.stderr}")
    expect(sorted(job.stdout.split("\n")[:-1]) == sorted(lines), job.stdout)
    expect(job.stderr == "", job.stderr)


@case
def family():
    succeeded(run(command(2, "family")), "met 400", "met 900")


@case
def singleton_spawns():
    succeeded(run([args.partner, "family"]), "met 100", "met 900")


@case
def jobs_connect_by_port():
    server = start(command(2, "serve"))
    port = server.stdout.readline().strip()
    succeeded(run(command(3, "call", port)), "met 400")
    output, errors = server.communicate(timeout=60)
    expect((server.returncode, output, errors) == (0, "met 900\n", ""), f"{output}{errors}")


@case
def words_of_strangers_are_no_request_to_spawn():
    server = start(command(1, "serve"))
    port = server.stdout.readline().strip()
    for words in (b"\0" * 50, b"true\0", b"warren:0123456789abcdef:0:1\0true\0", os.urandom(40)):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as stranger:
            stranger.connect(f"\0warren.{port.split(':')[1]}.mpiexec")
            stranger.send(words)
    succeeded(run(command(1, "call", port)), "met 100")
    output, errors = server.communicate(timeout=60)
    expect((server.returncode, output, errors) == (0, "met 100\n", ""), f"{output}{errors}")


@case
def jobs_connect_by_name():
    name = mark()
    server = start(command(1, "serve", name))
    server.stdout.readline()
    succeeded(run([args.partner, "look_up", name]), "met 100")
    output, errors = server.communicate(timeout=60)
    expect((server.returncode, output, errors) == (0, "met 100\n", ""), f"{output}{errors}")


@case
def jobs_of_two_mpiexecs_connect_by_name():
    name = mark()
    server = start(command(3, "serve", name))
    server.stdout.readline()
    succeeded(run(command(2, "look_up", name)), "met 900")
    output, errors = server.communicate(timeout=60)
    expect((server.returncode, output, errors) == (0, "met 400\n", ""), f"{output}{errors}")


@case
def unknown_name_is_an_error():
    job = run(command(1, "look_up", mark()))
    expect(job.returncode != 0 and "MPI_ERR_NAME" in job.stderr, job.stderr)


@case
def dead_child_ends_its_parents():
    job = run(command(2, "child_dies"))
    expect(job.returncode != 0, "exit code 0")
    expect("SIGKILL" in job.stderr, job.stderr)
    expect(len(job.stderr.strip().split("\n")) == 1, job.stderr)


@case
def abort_of_a_child_ends_its_parents():
    job = run(command(2, "child_aborts"))
    expect(job.returncode == 7, f"exit code {job.returncode}: {job.stderr}")
    expect("MPI_Abort with code 7" in job.stderr, job.stderr)
    expect(len(job.stderr.strip().split("\n")) == 1, job.stderr)


@case
def disconnected_child_dies_alone():
    job = run(command(2, "disconnected_child_dies"))
    expect("goes on" in job.stdout, f"{job.stdout}{job.stderr}")
    expect("SIGKILL" in job.stderr, job.stderr)


def kill_and_look(number, whom):
    """Starts two worlds that wait, kills somebody, and expects that nothing remains."""
    name = mark()
    job = start(command(2, "wait", name))
    for _ in range(2):
        expect(job.stdout.readline() == "waits\n", "not both worlds wait")
    os.kill(whom(job, name), number)
    job.communicate(timeout=60)
    expect(job.returncode != 0, "exit code 0")
    wait_until(lambda: not processes(name), f"left: {processes(name)}")


@case
def killed_mpiexec_leaves_nothing():
    kill_and_look(signal.SIGKILL, lambda job, name: job.pid)


@case
def interrupted_mpiexec_leaves_nothing():
    kill_and_look(signal.SIGINT, lambda job, name: job.pid)


def children_of(pid):
    return {int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()}


def parent_rank(job, name):
    return min(children_of(job.pid) & set(processes(name, args.partner)))


@case
def killed_rank_leaves_nothing():
    kill_and_look(signal.SIGKILL, parent_rank)


def kill_while_mpiexec_is_busy(of_child):
    """The ranks of the other world notice a rank's end before the rank's mpiexec says why."""
    name = mark()
    job = start(command(2, "wait", name))
    for _ in range(2):
        expect(job.stdout.readline() == "waits\n", "not both worlds wait")
    busy = min(children_of(job.pid) & set(processes(name, "mpiexec"))) if of_child else job.pid
    victim = min(children_of(busy) & set(processes(name, args.partner)))
    os.kill(busy, signal.SIGSTOP)
    os.kill(victim, signal.SIGKILL)
    time.sleep(4)  # the ranks' two seconds, and a part of their mpiexec's
    os.kill(busy, signal.SIGCONT)
    _, errors = job.communicate(timeout=60)
    expect(job.returncode != 0, "exit code 0")
    expect("SIGKILL" in errors and errors.count("\n") == 1, errors)
    wait_until(lambda: not processes(name), f"left: {processes(name)}")


@case
def busy_mpiexec_says_why_a_child_has_ended():
    kill_while_mpiexec_is_busy(of_child=True)


@case
def busy_mpiexec_says_why_a_parent_has_ended():
    kill_while_mpiexec_is_busy(of_child=False)


@case
def children_wait_for_the_words_about_their_parent():
    """A parent's mpiexec that is busy comes later than the children that notice the parent's end."""
    name = mark()
    job = start(command(1, "late_children", name))
    for _ in range(2):
        expect(job.stdout.readline() == "late\n", "the children haven't started")
    parent = parent_rank(job, name)
    os.kill(job.pid, signal.SIGSTOP)
    os.kill(parent, signal.SIGKILL)
    time.sleep(2) # the children's pause of 1 s, and half of what they wait
    os.kill(job.pid, signal.SIGCONT)
    _, errors = job.communicate(timeout=60)
    expect("SIGKILL" in errors and len(errors.strip().split("\n")) == 1, errors)
    wait_until(lambda: not processes(name), f"left: {processes(name)}")


def look_at_states(job, name):
    warren = str(pathlib.Path(args.mpiexec).with_name("warren"))
    spawned = min(children_of(job.pid) & set(processes(name, "mpiexec")))
    headings = [f"job of mpiexec {job.pid}, 2 ranks", f"spawned world of mpiexec {spawned}, 2 ranks"]
    both_wait = "ranks 0-1: waits in MPI_Recv"

    def shown(*words):
        return run([warren, *words]).stdout

    def all_wait(text):
        return [line for line in text.split("\n") if line and line[0] != " "] == headings and text.count(both_wait) == 2

    wait_until(lambda: all_wait(shown("state", str(job.pid))), "the states of both worlds are not shown")
    text = shown("state", str(parent_rank(job, name)))
    expect(all_wait(text), text)
    text = shown("state", str(spawned))
    expect(text.startswith(f"job of mpiexec {spawned}, 2 ranks") and text.count(both_wait) == 1, text)
    text = shown("ranks", str(job.pid), "--once")
    expect(text.count("MPI_Recv") == 4 and headings[1] in text, text)
    seen = json.loads(shown("ranks", str(job.pid), "--json"))
    worlds = [(world["mpiexec"], len(world["ranks"]), len(world["spawned"])) for world in [seen, *seen["spawned"]]]
    expect(worlds == [(job.pid, 2, 1), (spawned, 2, 0)], seen)
    job.send_signal(signal.SIGUSR1)
    lines = [job.stderr.readline() for _ in range(4)]
    expect("state of the 2 ranks after" in lines[0] and both_wait in lines[1], lines)
    expect(f"state of the 2 ranks of the spawned world of mpiexec {spawned}" in lines[2] and both_wait in lines[3], lines)


@case
def states_of_all_worlds_are_shown():
    name = mark()
    job = start(command(2, "wait", name))
    try:
        for _ in range(2):
            expect(job.stdout.readline() == "waits\n", "not both worlds wait")
        look_at_states(job, name)
    finally:
        job.terminate()
        job.communicate(timeout=60)
    wait_until(lambda: not processes(name), f"left: {processes(name)}")


@case
def killed_singleton_leaves_nothing():
    name = mark()
    job = start([args.partner, "wait", name])
    for _ in range(2):
        expect(job.stdout.readline() == "waits\n", "not both worlds wait")
    job.kill()
    job.communicate(timeout=60)
    wait_until(lambda: not processes(name), f"left: {processes(name)}")


@case
def cycles_leave_nothing():
    succeeded(run(command(1, "cycles", "20")), "done")


@case
def cycles_take_no_memory():
    job = run(["env", "SHOWS_MEMORY=1", *command(1, "cycles", "400")])
    expect(job.returncode == 0, f"exit code {job.returncode}: {job.stderr}")
    words = job.stdout.split()
    # Not forgotten yet may be up to 32 processes, of 400 bytes each, and the last one's connection, of 32 kB.
    expect(int(words[0]) < 65000 and words[3] == "300", job.stdout)


@case
def child_of_a_later_session_is_noticed():
    job = run([args.partner, "sessions"])
    expect(job.returncode != 0 and "SIGKILL" in job.stderr, f"{job.stdout}{job.stderr}")


@case
def world_goes_on_after_the_last_session():
    succeeded(run([args.partner, "last_session"]), "went on")


@case
def variable_limits_the_time_to_connect():
    job = run(["env", "WARREN_CONNECT_TIMEOUT=0.1", args.partner, "not_accepted"])
    expect(job.returncode != 0 and "accepted at within 0.100 s" in job.stderr, job.stderr)
    job = run(["env", "WARREN_CONNECT_TIMEOUT=soon", args.partner, "not_accepted"])
    expect(job.returncode != 0 and 'WARREN_CONNECT_TIMEOUT is "soon"' in job.stderr, job.stderr)


@case
def refused_callers_keep_no_numbers():
    succeeded(run(command(1, "in_vain")), "refused")


@case
def killed_caller_is_not_waited_for():
    job = run([args.mpiexec, "--keep-going", "-n", "2", args.partner, "killed_caller"])
    expect(job.stdout == "alone\n", f"{job.stdout}{job.stderr}")


@case
def stopped_caller_is_not_waited_for():
    succeeded(run(command(2, "stopped_caller")), "alone", "alone")


def as_stranger(words):
    """Runs as a user who has nothing to do with the tests; None: not possible here."""
    try:
        return subprocess.run(words, text=True, capture_output=True, stdin=subprocess.DEVNULL, check=False,
                              timeout=100, user=STRANGER, group=STRANGER, extra_groups=[], cwd="/")
    except PermissionError:
        return None


# Connects to a socket without asking whose it is, and prints what comes.
KNOCKS = """
import socket, sys
with socket.socket(socket.AF_UNIX, getattr(socket, sys.argv[2])) as knocking:
    knocking.settimeout(60)
    knocking.connect(chr(0) + sys.argv[1])
    try:
        print(knocking.recv(1000))
    except ConnectionResetError:
        print(b"")
"""


@case
def other_users_are_refused():
    name = mark()
    server = start(command(1, "serve", name))
    port = server.stdout.readline().strip()
    world, rank = port.split(":")[1:3]
    called = as_stranger([args.partner, "call", port])
    if called is None:
        print("other_users_are_refused: left out, since another user can't run the program")
    else:
        expect(called.returncode != 0 and "it is another user's" in called.stderr, f"{called}")
        looked = as_stranger([args.partner, "look_up", name])
        expect(looked.returncode != 0 and "MPI_ERR_NAME" in looked.stderr, f"{looked}")
        for socket, kind in ((f"warren.{world}.{rank}", "SOCK_STREAM"),
                             (f"warren.{world}.mpiexec", "SOCK_SEQPACKET")):
            knocked = as_stranger(["/usr/bin/python3", "-c", KNOCKS, socket, kind])
            expect(knocked.stdout == "b''\n", f"{knocked}")
    succeeded(run([args.partner, "call", port]), "met 100") # it is still there
    output, errors = server.communicate(timeout=60)
    expect((server.returncode, output, errors) == (0, "met 100\n", ""), f"{output}{errors}")


def limit_of(pid):
    """The number that the process's next descriptor gets if the one that mpiexec spares is closed."""
    folder = pathlib.Path(f"/proc/{pid}/fd")
    used = {int(entry.name) for entry in folder.iterdir()}
    spares = [number for number in used if number > 2 and os.readlink(folder / str(number)) == "/dev/null"]
    limit = max(spares) + 1
    expect(used >= set(range(limit)), f"descriptors {sorted(used)}")
    return limit


def set_limit(pid, limit):
    return resource.prlimit(pid, resource.RLIMIT_NOFILE, (limit, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


def seconds_of_processor(pid):
    words = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


@case
def mpiexec_without_descriptors_refuses_to_spawn():
    job = subprocess.Popen(command(1, "by_line"), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           stdin=subprocess.PIPE)

    def ask():
        job.stdin.write("\n")
        job.stdin.flush()

    expect(job.stdout.readline() == "ready\n", "not ready")
    before = set_limit(job.pid, limit_of(job.pid))[0]
    ask()
    answer = job.stdout.readline()
    expect("no descriptor left" in answer, answer)
    # Not even one to refuse with: it waits, without polling, until there is one.
    set_limit(job.pid, 3)
    used = seconds_of_processor(job.pid)
    ask()
    time.sleep(0.7)
    used = seconds_of_processor(job.pid) - used
    set_limit(job.pid, before)
    expect(job.stdout.readline() == "met 100\n", "not met")
    expect(job.stdout.readline() == "met 100\n", "not met")
    expect(used < 0.35, f"mpiexec has used {used} s")
    output, errors = job.communicate(timeout=60)
    expect((job.returncode, output, errors) == (0, "", ""), f"{output}{errors}")


parser = argparse.ArgumentParser()
parser.add_argument("--partner", required=True)
args = cases.parse(parser)
sys.exit(cases.run(args))
