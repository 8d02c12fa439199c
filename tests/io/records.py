#!/usr/bin/env python3
"""Atomic writes of killed ranks: the file has all of a write or nothing.

    records.py --mpiexec M --records PROGRAM [--kills N] [--seed S] [CASE…]
"""
import argparse
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import cases
from cases import expect

RANKS = 3
VICTIM = 1


class Job:
    def __init__(self, folder, layout, record, count, options=(), stops_after=None, prefix=()):
        self.file = folder / "data"
        self.layout, self.record, self.count = layout, record, count
        words = [args.mpiexec, "--timeout", "60", "-n", str(RANKS), *options, *prefix, args.records, str(self.file),
                 layout, str(record), str(count), "0.5" if "--keep-going" in options else "60", str(VICTIM)]
        words += [str(stops_after)] if stops_after is not None else []
        self.job = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
        self.pids, self.lines = {}, []
        self.read_until(lambda line: line == ("STOPPED" if stops_after is not None else "GO"), RANKS)

    def read_until(self, is_last, pids=0):
        seen = False
        for line in self.job.stderr:
            self.lines.append(line.rstrip())
            if found := re.search(r"PID (\d+) (\d+)", line):
                self.pids[int(found[1])] = int(found[2])
            seen = seen or is_last(line.rstrip().split("] ")[-1])
            if seen and len(self.pids) >= pids:
                return
        expect(False, f"the job has ended early: {self.lines}")

    def kill(self, victim=VICTIM):
        os.kill(self.pids[victim], signal.SIGKILL)
        return self.end()

    def end(self):
        self.lines += [line.rstrip() for line in self.job.stderr]
        code = self.job.wait()
        expect(not [line for line in self.lines if "TORN" in line], f"a rank has read: {self.lines}")
        return code

    def parts(self):
        """The bytes of each write that is whole."""
        data = self.file.read_bytes()
        total = self.record * self.count
        if self.layout == "same":
            return [data]
        if self.layout == "view":
            records = [data[at:at + self.record] for at in range(0, len(data), self.record)]
            return [b"".join(records[rank::RANKS]) for rank in range(RANKS)]
        return [data[at:at + total] for at in range(0, len(data), total)]

    def expect_whole(self, only_records=False):
        for number, part in enumerate(self.parts()):
            step = self.record if only_records else len(part)
            for at in range(0, len(part), step):
                values = set(part[at:at + step])
                expect(len(values) == 1, f"part {number} of the file is torn, at byte {at}: {values}")


# Layout, bytes of a record, records, and how many bytes the third call has written when it stops.
STOPS = {
    "across a page": ("contiguous", 100, 45, 3692),
    "several pages": ("contiguous", 100, 300, 8192),
    "small pieces": ("view", 100, 300, 4096),
    "long pieces": ("view", 3000, 20, 6500),
    "by a helper": ("nonblocking", 100, 300, 8192),
    "the same bytes": ("same", 100, 300, 8192),
}


def stop(folder, name, options=(), prefix=()):
    layout, record, count, bytes_ = STOPS[name]
    return Job(folder, layout, record, count, options, bytes_, prefix)


def each_stop(options, code):
    for name in STOPS:
        with tempfile.TemporaryDirectory(dir=".") as folder:
            job = stop(pathlib.Path(folder).resolve(), name, options)
            seen = job.kill()
            expect(seen == code, f"{name}: exit code {seen}: {job.lines}")
            job.expect_whole()


@cases.case
def what_a_killed_rank_was_writing_is_finished():
    each_stop([], 137)


@cases.case
def survivors_find_the_write_finished():
    each_stop(["--keep-going"], 137)


@cases.case
def agents_finish_what_ranks_of_their_node_were_writing():
    each_stop(["--launcher", "fork", "--hosts", "a:1,b:2"], 137)


@cases.case
def the_guardian_finishes_when_mpiexec_is_killed():
    with tempfile.TemporaryDirectory(dir=".") as folder:
        job = stop(pathlib.Path(folder).resolve(), "several pages")
        job.job.kill()
        job.end()  # the last of all has closed the pipe
        job.expect_whole()


@cases.case
def records_of_large_writes_are_whole():
    for layout in ("contiguous", "external32"):
        with tempfile.TemporaryDirectory(dir=".") as folder:
            job = Job(pathlib.Path(folder).resolve(), layout, 1000, 200, [], 704 + 24 * 4096)
            job.kill()
            job.expect_whole(only_records=True)


def expect_told(job, reason, who=f"rank {VICTIM}"):
    told = f"mpiexec: the last write of {who} to {job.file} may be there in part only: {reason}"
    expect(told in job.lines, f"{told}: not in {job.lines}")


@cases.case
def jobs_with_another_users_process_get_no_help():
    if os.geteuid() != 0:
        return  # only root may start one
    for killed in ("rank", "mpiexec"):
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o777)
            job = stop(pathlib.Path(folder).resolve(), "several pages", [],
                       ["setpriv", "--reuid=65534", "--clear-groups"])
            if killed == "mpiexec":
                job.job.kill()
                job.end()
            else:
                job.kill()
            expect_told(job, "a process of the job had another user",
                        "a rank" if killed == "mpiexec" else f"rank {VICTIM}")


@cases.case
def nothing_happens_to_deleted_files_and_to_others_in_their_place():
    with tempfile.TemporaryDirectory(dir=".") as folder:
        job = stop(pathlib.Path(folder).resolve(), "several pages")
        job.file.unlink()
        job.kill()
        expect(not job.file.exists(), "the file is there again")
        expect_told(job, "No such file or directory")
        job = stop(pathlib.Path(folder).resolve(), "several pages")
        job.file.rename(job.file.with_name("moved"))
        job.file.write_bytes(b"another")
        job.kill()
        expect(job.file.read_bytes() == b"another", "another file has been written to")
        expect_told(job, "another file has its name")


def kill_at_random(options):
    chance = random.Random(args.seed)
    torn = []
    for turn in range(args.kills):
        layout, record, count = (("contiguous", 100, 300), ("view", 100, 300), ("contiguous", 100, 41),
                                 ("same", 100, 300), ("contiguous", 100, 3000))[turn % 5]
        with tempfile.TemporaryDirectory(dir=".") as folder:
            job = Job(pathlib.Path(folder).resolve(), layout, record, count, options)
            time.sleep(chance.random() * 0.1)
            try:
                job.kill()
                job.expect_whole(only_records=record * count > 65536)
            except AssertionError as problem:
                torn.append(f"{turn} ({layout}, {count} records): {problem}")
    expect(not torn, f"{len(torn)} of {args.kills} kills: " + "; ".join(torn))


@cases.case
def random_kills_of_processes():
    kill_at_random([])


@cases.case
def random_kills_of_processes_that_others_survive():
    kill_at_random(["--keep-going"])


@cases.case
def random_kills_of_threads():
    kill_at_random(["--ranks", "threads"])


@cases.case
def random_kills_of_fibres():
    kill_at_random(["--ranks", "fibres"])


parser = argparse.ArgumentParser()
parser.add_argument("--records", required=True)
parser.add_argument("--kills", type=int, default=10)
parser.add_argument("--seed", type=int, default=1)
args = cases.parse(parser)
sys.exit(cases.run(args))
