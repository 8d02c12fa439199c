#!/usr/bin/env python3
"""MPI between nodes that are network namespaces, and what becomes of a job whose ranks are lost or abort.
Namespaces need root; without it, the cases that want them say that they are skipped.

    network.py --mpiexec M --ring PROGRAM --files PROGRAM --lingering PROGRAM --program P… [--kinds K,…]
               [--only PART | --case NAME] [--list]
"""
import argparse
import contextlib
import os
import pathlib
import random
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import cases
from cases import case, expect

FORK = ("--launcher", "fork", "--hosts", "a:2,b:2")
END_WITHIN = 10  # seconds


def ip(*words, check=True):
    return subprocess.run(["ip", *words], check=check, capture_output=True, text=True)


@contextlib.contextmanager
def namespaces(count):
    """Namespaces on one bridge; gives their names, or None where there can't be any."""
    tag = f"w{os.getpid() % 100000}"
    names = [f"{tag}n{number}" for number in range(count)]
    hub = f"{tag}hub"
    try:
        try:
            ip("netns", "add", hub)
            ip("-n", hub, "link", "add", "br0", "type", "bridge")
            ip("-n", hub, "link", "set", "br0", "up")
            for number, name in enumerate(names):
                ip("netns", "add", name)
                ip("link", "add", f"v{number}", "netns", hub, "type", "veth", "peer", "name", "eth0",
                   "netns", name)
                ip("-n", hub, "link", "set", f"v{number}", "master", "br0", "up")
                ip("-n", name, "addr", "add", f"10.77.0.{number + 1}/24", "dev", "eth0")
                ip("-n", name, "link", "set", "lo", "up")
                ip("-n", name, "link", "set", "eth0", "up")
        except (OSError, subprocess.CalledProcessError) as problem:
            print(f"SKIPPED: no network namespaces here: {getattr(problem, 'stderr', problem)}")
            yield None
        else:
            yield names
    finally:
        with contextlib.suppress(FileNotFoundError):
            for name in [*names, hub]:
                ip("netns", "delete", name, check=False)


def in_namespaces(names, each):
    # (The agents reach mpiexec by a socket of the file system.)
    return ["--launcher", "ip netns exec {host}", "--hosts", ",".join(f"{name}:{each}" for name in names)]


@contextlib.contextmanager
def running(*arguments):
    job = subprocess.Popen([args.mpiexec, *arguments], text=True, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    try:
        yield job
    finally:
        job.kill()
        job.communicate()


def pids_of(job, ranks):
    pids = {}
    while len(pids) < ranks:
        line = job.stdout.readline()
        expect(line, "the job ended before all its ranks were there")
        rank, _, pid = line.split()
        pids[int(rank)] = int(pid)
    return pids


def expect_end(job, pids, *words):
    begin = time.monotonic()
    _, text = job.communicate(timeout=60)
    expect(time.monotonic() - begin < END_WITHIN, "it took longer to end")
    expect(job.returncode != 0, "it failed")
    for word in words:
        expect(word in text, (word, text))
    for pid in pids.values():
        expect(not pathlib.Path(f"/proc/{pid}").exists(), f"{pid} is left")


@case
def a_number_goes_round():
    for kind in args.kinds.split(","):
        done = cases.job(args.mpiexec, "--ranks", kind, *FORK, args.ring, "200")
        expect(done.returncode == 0 and "all right\n" in done.stdout, (kind, done))


@case
def what_was_sent_arrives_at_who_comes_late():
    """Each provider keeps some of it: until the connection is there, or the receiver takes it."""
    for provider in ("tcp", "tcp;ofi_rxm", "udp;ofi_rxd"):
        done = cases.job(args.mpiexec, "--launcher", "fork", "--hosts", "a:1,b:1", args.lingering, "0.2",
                         env=os.environ | {"WARREN_NETWORK": provider})
        if "no network" in done.stderr:
            print(f"SKIPPED: libfabric has no {provider} here")
            continue
        expect(done.returncode == 0, (provider, done))


@case
def the_network_is_named():
    done = cases.job(args.mpiexec, "-v", *FORK, args.ring, "1")
    expect(done.stderr.count("network: ") == 4, done)
    done = cases.job(args.mpiexec, *FORK, args.ring, "1", env=os.environ | {"WARREN_NETWORK": "tcp,nowhere"})
    expect(done.returncode != 0 and "nowhere" in done.stderr, done)


def listening(pid):
    """The addresses where a process listens for TCP."""
    sockets = set()
    for entry in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            sockets.add(os.readlink(entry))
    found = []
    for line in pathlib.Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]:
        _, local, _, state, *_ = words = line.split()
        if state == "0A" and f"socket:[{words[9]}]" in sockets:
            address, port = local.split(":")
            found.append((socket.inet_ntoa(struct.pack("<I", int(address, 16))), int(port, 16)))
    return found


@case
def strangers_at_the_ports_do_no_harm():
    """Noise, the beginnings of frames, and connections that say nothing, while ranks talk."""
    noise = random.Random(7)
    with running(*FORK, args.ring, "0") as job:
        pids = pids_of(job, 4)
        places = [place for pid in pids.values() for place in listening(pid)]
        expect(len(places) >= len(pids), ("ports", places))
        silent = []
        for turn in range(30):
            for place in places:
                stranger = socket.create_connection(place, timeout=5)
                with contextlib.suppress(OSError):  # it may have been refused by now
                    if turn % 3 == 0:
                        stranger.sendall(noise.randbytes(noise.randrange(1, 5000)))
                    elif turn % 3 == 1:
                        stranger.sendall(b"1MFW" + noise.randbytes(28))
                (silent if turn == 2 else []).append(stranger)
                if turn != 2:
                    stranger.close()
            expect(job.poll() is None, "the job goes on")
        before = [work_of(pid) for pid in pids.values()]
        wait_for_work = time.monotonic() + END_WITHIN
        while any(work_of(pid) <= work for pid, work in zip(pids.values(), before)):
            expect(time.monotonic() < wait_for_work, "the number goes on round all ranks")
            time.sleep(0.05)
        for stranger in silent:
            stranger.close()


def work_of(pid):
    """Ticks of a process's own work."""
    return sum(int(word) for word in pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13])


@case
def a_killed_rank_ends_the_job():
    for victim in (0, 3):
        with running(*FORK, args.ring, "0") as job:
            pids = pids_of(job, 4)
            os.kill(pids[victim], signal.SIGKILL)
            expect_end(job, pids, f"rank {victim}")


@case
def an_abort_ends_all_nodes():
    for kind in args.kinds.split(","):
        done = cases.job(args.mpiexec, "--ranks", kind, *FORK, args.abort, timeout=END_WITHIN)
        expect(done.returncode == 9 and "MPI_Abort" in done.stderr, (kind, done))


@case
def namespaces_are_nodes():
    kinds = args.kinds.split(",")
    for count, each, its_kinds in ((2, 2, kinds), (4, 1, kinds[:1])):
        with namespaces(count) as names:
            if names is None:
                return
            for program in args.program:
                for kind in its_kinds:
                    done = cases.job(args.mpiexec, "--ranks", kind, *in_namespaces(names, each), *program.split())
                    expect(done.returncode == 0, (program, kind, done))


def files_on(hosts, launcher, name):
    done = cases.job(args.mpiexec, "--launcher", launcher, "--hosts", hosts, args.files, name)
    expect(done.returncode == 0, done)
    return sorted(done.stdout.splitlines())


@case
def nodes_open_files_of_a_shared_file_system_only():
    with tempfile.TemporaryDirectory() as folder:
        name = f"{folder}/disk/file"
        os.mkdir(f"{folder}/disk")
        expect(files_on("a:2,b:2", "fork", name) == [f"rank {rank}: right" for rank in range(4)], "shared")
        # Each node has a disk of its own there, with a file or without.
        for content, word in ((":", "is there at the first rank, but not"), (f": > {name}", "is another file here")):
            script = pathlib.Path(folder) / "launch"
            script.write_text("#!/bin/sh\nshift; exec unshare --mount sh -c "
                              f"'mount -t tmpfs disk {folder}/disk && {content} && exec \"$@\"' sh \"$@\"\n")
            script.chmod(0o755)
            if subprocess.run([script, "a", "true"], check=False, capture_output=True).returncode != 0:
                print("SKIPPED: nobody may mount here")
                return
            lines = files_on("a:2,b:2", f"{script} {{host}}", name)
            expect(len(lines) == 4 and word in lines[2] and word in lines[3] and "shared file system" in lines[3],
                   lines)
            expect("another rank" in lines[0] and "another rank" in lines[1], lines)


@case
def a_node_that_does_not_answer_ends_the_job():
    with namespaces(2) as names:
        if names is None:
            return
        # Each has talked to the other node; all wait, then, or send to who is away.
        for down in names:
            with running(*in_namespaces(names, 2), args.ring, "0") as job:
                pids = pids_of(job, 4)
                time.sleep(0.5)
                ip("-n", down, "link", "set", "eth0", "down")
                expect_end(job, pids, "the connection to", "node " + names[0][:-1], "(ranks ")
            ip("-n", down, "link", "set", "eth0", "up")


@case
def a_killed_rank_of_another_namespace_ends_the_job():
    with namespaces(2) as names:
        if names is None:
            return
        with running(*in_namespaces(names, 2), args.ring, "0") as job:
            pids = pids_of(job, 4)
            os.kill(pids[2], signal.SIGKILL)
            expect_end(job, pids, "rank 2")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--ring", required=True)
    parser.add_argument("--abort", required=True, help="aborts with 9 on its last rank while others wait")
    parser.add_argument("--lingering", required=True, help="computes after it has sent")
    parser.add_argument("--files", required=True, help="opens the file of a name")
    parser.add_argument("--program", nargs="*", default=[], help="to run on namespaces, with its arguments")
    parser.add_argument("--kinds", default="processes,threads,fibres", help="of ranks")
    return cases.parse(parser)


if __name__ == "__main__":
    args = main()
    sys.exit(cases.run(args))
