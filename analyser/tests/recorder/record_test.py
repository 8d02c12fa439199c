"""`warren locality record` in its first-touch mode: programs that place memory in known ways, and
what happens to them.

    record_test.py --warren …/bin/warren --programs FOLDER --python …/python --mpiexec …
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tests" / "support"))
import cases  # noqa: E402
from cases import case, expect  # noqa: E402

PAGE = 4096
UNKNOWN = -2  # whoever
NOBODY = -1


class Folder:
    """A folder for recordings that goes away."""

    def __enter__(self):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="warren-record-"))
        self.path.chmod(0o777)
        return self.path / "made"

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)


def command(folder, *program, options=()):
    return [args.warren, "locality", "record", "-o", str(folder), *options, "--", *program]


def recorded(folder, *program, options=(), before=(), status=0, **more):
    done = subprocess.run([*before, *command(folder, *program, options=options)], text=True,
                          capture_output=True, timeout=100, check=False,
                          stdin=subprocess.DEVNULL, **more)
    expect(done.returncode == status, f"status {done.returncode}: {done.stderr}{done.stdout}")
    return done


def program(name):
    return str(pathlib.Path(args.programs) / name)


def opened(folder):
    whole = recording.open(folder)
    for process in whole.processes:
        expect(process.info["lost"] == [], process.info["lost"])
    return whole


def near(process, page):
    """The records of allocations that are about a page, in their order."""
    all_of = process.allocations
    size = np.maximum(all_of["size"], np.uint64(1))
    return all_of[(all_of["address"] < page + PAGE) & (page < all_of["address"] + size)]


def placer(process, page, until=1 << 63):
    """Who has placed a page, by the definition (format.hpp), looking at every record."""
    begin = None
    emptied = 0
    for one in near(process, page):
        if one["time_ns"] > until:
            break
        if one["event"] == recording.ALLOCATION_BEGAN:
            begin = one
        elif one["size"] and recording.KINDS[one["what"]] != "stack" and one["event"] in (
                recording.ALLOCATION_DISCARDED, recording.ALLOCATION_ENDED):
            emptied = max(emptied, int(one["time_ns"]))
    since = int(begin["time_ns"]) if begin is not None else 0
    since = max(since, emptied)
    touches = process.touches
    size = np.maximum(touches["bytes"], np.uint64(PAGE))
    first = touches["address"] & ~(size - 1)
    shared = begin is not None and recording.KINDS[begin["what"]] in ("shared", "shmem")
    reads = 0 if shared else recording.TOUCH_READ
    chosen = ((first <= page) & (page < first + size) & (touches["flags"] & reads == 0) &
              (touches["time_ns"] >= emptied) & (touches["time_ns"] <= until))
    events = [(int(one["time_ns"]), int(one["thread"])) for one in touches[chosen]]
    events += [(int(one["time_ns"]), int(one["thread"])) for one in near(process, page)
               if one["event"] == recording.ALLOCATION_FILLED and one["time_ns"] <= until]
    events.sort()
    within = [thread for when, thread in events if when >= since]
    if within:
        return within[0]
    if begin is not None and begin["previous"]:
        moved = int(begin["address"]) - int(begin["previous"])
        if moved % PAGE == 0 and moved:
            return placer(process, page - moved, since)
    before = [thread for when, thread in events if when < since]
    return before[-1] if before else NOBODY


def compare(process, told):
    """The pieces that a program has told of, against its recording."""
    wrong = []
    count = 0
    for line in told:
        words = line.split()
        if words[0] != "piece":
            continue
        name, address = words[1], int(words[2], 16)
        expect(int(words[3]) == PAGE * len(words[4:]), line[:60])
        for index, word in enumerate(words[4:]):
            owner = int({"-": NOBODY, "?": UNKNOWN}.get(word, word))
            found = placer(process, address + index * PAGE)
            count += 1
            if owner not in (UNKNOWN, found):
                wrong.append(f"{name} page {index}: thread {found}, not {owner}")
    expect(not wrong, f"{len(wrong)} of {count} pages: {wrong[:5]}")
    return count


def check_pattern(what, *words, least=1, **more):
    with Folder() as folder:
        done = recorded(folder, program("locality_patterns"), what, *words, **more)
        process, = opened(folder).processes
        expect(process.info["end"] == "exit 0", process.info["end"])
        expect(compare(process, done.stdout.splitlines()) >= least, done.stdout)
        return process, done


@case
def heap_blocks_placed_by_one_and_by_many_and_read_before():
    check_pattern("heap", least=150)


@case
def statics_mappings_shared_memory_discarded_pages_and_stacks():
    check_pattern("other", least=100)


@case
def blocks_that_move_and_memory_that_is_used_again():
    check_pattern("moves", least=4000)


@case
def huge_pages():
    check_pattern("huge", least=0)


@case
def touches_within_system_calls():
    check_pattern("calls", least=40)


@case
def threads_get_their_numbers_when_there_are_thousands():
    process, _ = check_pattern("threads", "1000", least=4)
    began = process.threads[process.threads["event"] == recording.THREAD_BEGAN]
    expect(len(began) == 1002 and began["thread"].tolist() == list(range(1002)), len(began))
    ended = process.threads[process.threads["event"] == recording.THREAD_ENDED]
    expect(len(ended) == 1002 and (ended["cpu_ns"] > 0).mean() > 0.99, "threads without time")


@case
def threads_loads_are_their_processor_time():
    with Folder() as folder:
        done = recorded(folder, program("locality_patterns"), "loads")
        opened(folder)
        found = analysis.Analysis.of(folder).balance
        told = {int(line.split()[1]): int(line.split()[2]) for line in done.stdout.splitlines()
                if line.startswith("load ")}
        for thread, load in told.items():
            off = abs(found.loads[thread] - load)
            expect(off < 0.02 * load + 2e6, f"thread {thread}: {found.loads[thread]}, not {load}")
        loads = np.array([*told.values(), *found.loads[:1][found.worker[:1]]], float)
        imbalance = loads.max() / loads.mean() - 1
        expect(len(told) == 5 and found.kind == "processor time" and found.worker[1:].all() and
               abs(found.imbalance - imbalance) < 0.03, f"{found.imbalance}, not {imbalance}")


@case
def the_description_has_the_sums_of_all_files_and_its_own():
    with Folder() as folder:
        recorded(folder, program("locality_patterns"), "marks")
        process, = opened(folder).processes
        there = {path.name: path.read_bytes() for path in process.folder.iterdir()}
        text = there.pop("process.json")
        expect(process.info["files"] == {name: {"bytes": len(data), "crc32": zlib.crc32(data)}
                                         for name, data in there.items()}, process.info["files"])
        expect({"touches.rec", "strings.bin", "allocations.rec", "phases.rec"} <= set(there), there.keys())
        expect(process.info["sum"] == zlib.crc32(text[:text.index(b',\n "sum"')]), process.info["sum"])


@case
def phases_and_names_are_the_programs():
    process, done = check_pattern("marks", least=10)
    expect("recording 1" in done.stdout, done.stdout)
    expect([(int(one["event"]), one["name"]) for one in process.phases] ==
           [(recording.PHASE_BEGAN, b"set up"), (recording.PHASE_ENDED, b"set up"),
            (recording.PHASE_PCONTROL, b"")] and process.phases["level"][2] == 2, process.phases)
    named, = process.names
    block = process.allocations[process.allocations["address"] == named["address"]]
    expect((named["name"], named["size"], len(block)) == (b"field", 10 * PAGE, 1), named)
    plain = subprocess.run([program("locality_patterns"), "marks"], capture_output=True, text=True,
                           check=True)
    expect("recording 0" in plain.stdout, plain.stdout)


@case
def forked_and_executed_processes_have_recordings_of_their_own():
    with Folder() as folder:
        done = recorded(folder, program("locality_patterns"), "children")
        processes = opened(folder).processes
        told, pids = [], []
        for line in done.stdout.splitlines():
            if line.startswith("process"):
                pids.append(int(line.split()[1]))
                told.append([])
            else:
                told[-1].append(line)
        expect(len(processes) == 3 and pids[1] == pids[2], done.stdout)
        expect([process.info["pid"] for process in processes] == pids, pids)
        expect([process.info["end"] for process in processes] == ["exit 0", "exec", "ended"],
               [process.info["end"] for process in processes])
        expect(processes[1].info["parent"] == pids[0], processes[1].info)
        expect(processes[2].info["command"][1:] == ["heap"], processes[2].info)
        for process, lines in zip(processes, told):
            expect(compare(process, lines) > 5, process.name)


@case
def children_end_when_they_do_and_leave_no_folder_of_before_they_execute():
    with Folder() as folder:
        recorded(folder, "/bin/sh", "-c", "for one in 1 2 3; do /bin/true; done; sleep 0.5")
        processes = opened(folder).processes
        commands = [process.info["command"][0] for process in processes]
        expect(sorted(commands) == ["/bin/sh"] + 3 * ["/bin/true"] + ["sleep"], commands)
        end = {process.info["command"][0]: process.info["end_ns"] for process in processes}
        expect(end["/bin/true"] + 4e8 < end["/bin/sh"], end)


@case
def a_program_that_is_aborted_is_recorded_to_its_end():
    with Folder() as folder:
        done = recorded(folder, program("locality_patterns"), "abort", status=-signal.SIGABRT)
        process, = opened(folder).processes
        expect(process.info["end"].startswith("signal 6"), process.info["end"])
        compare(process, done.stdout.splitlines())


def until_ready(running):
    lines = []
    while not lines or lines[-1] != "ready\n":
        lines.append(running.stdout.readline())
        expect(lines[-1], f"the program has ended: {lines}")
    return lines


@case
def a_program_that_is_killed_is_recorded_up_to_then():
    with Folder() as folder:
        with subprocess.Popen(command(folder, program("locality_patterns"), "wait", "/nonexistent"),
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
            lines = until_ready(running)
            time.sleep(0.1)
            os.kill(int(lines[0].split()[1]), signal.SIGKILL)
            expect(running.wait(30) == -signal.SIGKILL, running.returncode)
        process, = opened(folder).processes
        expect(process.info["end"].startswith("signal 9"), process.info["end"])
        compare(process, lines)
        began = process.allocations["event"] == recording.ALLOCATION_BEGAN
        expect(began.sum() > 5, "allocations are missing")


@case
def a_killed_recorder_leaves_a_recording_and_a_program_that_goes_on():
    with Folder() as folder:
        end = folder.parent / "end"
        with subprocess.Popen(command(folder, program("locality_patterns"), "wait", str(end)),
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
            lines = until_ready(running)
            time.sleep(0.3)
            running.send_signal(signal.SIGKILL)
            running.wait(30)
            time.sleep(0.05)
            end.touch()
            expect(running.stdout.readline() == "went on\n", "the program has ended")
        whole = recording.open(folder)
        process, = whole.processes
        expect(process.info["end"] is None and "no end" in "\n".join(whole.warnings), whole.warnings)
        compare(process, lines)


@case
def an_interrupt_ends_both_and_leaves_no_process():
    with Folder() as folder:
        with subprocess.Popen(command(folder, program("locality_patterns"), "wait", "/nonexistent"),
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              start_new_session=True) as running:
            lines = until_ready(running)
            os.killpg(running.pid, signal.SIGINT)
            expect(running.wait(30) == -signal.SIGINT, running.returncode)
        cases.wait_until(lambda: not pathlib.Path("/proc", lines[0].split()[1]).exists(),
                         "the program runs on")
        expect(opened(folder).processes[0].info["end"].startswith("signal 2"), "the end is unknown")


@case
def ranks_have_folders_of_their_own_whoever_starts_them():
    outside = ["--", args.mpiexec, "-n", "3", program("locality_patterns"), "heap"]
    inside = [args.mpiexec, "-n", "3", args.warren, "locality", "record", "-o"]
    with Folder() as folder:
        recorded(folder, *outside[1:])
        ranks = opened(folder).ranks
        expect([process.name for process in ranks] == ["rank-00000", "rank-00001", "rank-00002"],
               [process.name for process in ranks])
    with Folder() as folder:
        words = [*inside, str(folder), "--", program("locality_patterns"), "heap"]
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=100)
        expect(done.returncode == 0, done.stderr)
        whole = opened(folder)
        expect([(process.info["rank"], process.info["size"], process.info["rank_source"])
                for process in whole.processes] == [(rank, 3, "Warren") for rank in range(3)],
               [process.info for process in whole.processes])
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=100)
        expect(done.returncode != 0 and "has a recording of rank" in done.stderr, done.stderr)


@case
def ranks_that_are_threads_are_recorded_with_their_process():
    with Folder() as folder:
        words = ["--ranks", "threads", "-n", "2"]
        done = recorded(folder, args.mpiexec, *words, program("locality_patterns"), "heap")
        whole = opened(folder)
        expect(whole.ranks == [], whole.ranks)
        host, = [process for process in whole.processes if len(process.allocations) and
                 "rank-host" in process.info["executable"]]
        pieces = [line.split() for line in done.stdout.splitlines() if " serial " in line]
        blocks = {int(one["address"]) for one in host.allocations}
        expect(len(pieces) == 2 and {int(words[2], 16) for words in pieces} <= blocks, done.stdout)
        done = subprocess.run([args.mpiexec, *words, args.warren, "locality", "record", "-o",
                               str(folder) + "2", "--", program("locality_patterns"), "heap"],
                              capture_output=True, text=True, check=False, timeout=100)
        expect(done.returncode != 0 and "threads of one process" in done.stderr, done.stderr)


@case
def ranks_of_other_libraries_are_known_by_their_launchers_variables():
    for variables, rank, size, source in (
            ({"PMI_RANK": "4", "PMI_SIZE": "8"}, 4, 8, "PMI"),
            ({"PMIX_RANK": "5"}, 5, None, "PMIx"),
            ({"OMPI_COMM_WORLD_RANK": "6", "OMPI_COMM_WORLD_SIZE": "7", "PMIX_RANK": "6"}, 6, 7,
             "Open MPI"),
            ({"PMI_RANK": "x"}, None, None, ""),
            ({"WARREN_RANK": "1", "WARREN_SIZE": "4", "WARREN_RANKS_HERE": "2"}, None, None, "")):
        with Folder() as folder:
            recorded(folder, "/usr/bin/env", *(f"{name}={value}" for name, value in variables.items()),
                     "/bin/true")
            info, = [process.info for process in opened(folder).processes
                     if process.info["command"] == ["/bin/true"]]
            expect((info["rank"], info["size"], info["rank_source"]) == (rank, size, source), info)


@case
def what_cannot_be_recorded_is_refused_with_the_reason():
    with Folder() as folder:
        scratch = folder.parent
        text = scratch / "text"
        text.write_text("hello\n")
        static = pathlib.Path(program("locality_static"))
        wrong = scratch / "arm"
        content = bytearray(static.read_bytes())
        content[18:20] = b"\xb7\x00"
        wrong.write_bytes(content)
        wrong.chmod(0o755)
        script = scratch / "script"
        script.write_text(f"#!{static}\n")
        script.chmod(0o755)
        refusals = [
            (["/nonexistent/program"], "does not exist"), (["no-such-program"], "in PATH"),
            ([str(text)], "is no program"), ([str(static)], "is static"), ([str(script)], "is static"),
            ([str(wrong)], "another kind of processor")]
        if os.geteuid() == 0:
            other = scratch / "setuid"
            shutil.copy("/bin/true", other)
            os.chown(other, 65534, 65534)
            other.chmod(0o4755)
            refusals.append(([str(other)], "other privileges"))
        for words, reason in refusals:
            done = recorded(folder, *words, status=125)
            expect(reason in done.stderr, done.stderr)
            expect(not folder.exists(), f"{words} leaves a folder")
        folder.mkdir()
        (folder / "something").touch()
        expect("not empty" in recorded(folder, "/bin/true", status=125).stderr, "not refused")
        for options, reason in ((["--threshold", "x"], "no number"), (["--limit", "5"], "less than 1M"),
                                (["--stack-depth", "65"], "more than 64"), (["--nothing"], "no option")):
            done = recorded(folder, "/bin/true", options=options, status=2)
            expect(reason in done.stderr, done.stderr)
        expect(recorded(folder.parent / "new", "/bin/sh", "-c", "exit 7", status=7), "")


@case
def where_events_are_forbidden_it_says_so_and_starts_nothing():
    paranoid = int(pathlib.Path("/proc/sys/kernel/perf_event_paranoid").read_text())
    for error in "EPERM", "EACCES":
        by_rule = error == "EACCES" and paranoid > 2
        with Folder() as folder:
            done = recorded(folder, "/bin/echo", "ran", status=125,
                            before=[program("locality_no_events"), error])
            expect("--mode counts" in done.stderr and
                   ("and 2 would do" if by_rule else "seccomp") in done.stderr, done.stderr)
            expect("ran" not in done.stdout and not folder.exists(), done.stdout)


@case
def the_limit_of_the_disk_is_kept_and_said():
    with Folder() as folder:
        done = recorded(folder, program("locality_patterns"), "much", "60000",
                        options=["--limit", "1M"])
        expect("done" in done.stdout and "limit" in done.stderr, done.stderr)
        process, = recording.open(folder).processes
        lost = {loss["what"]: loss["count"] for loss in process.info["lost"]}
        not_there = lost["touches"] + lost.get("events of all processes", 0)
        expect(not_there + len(process.touches) >= 60000, lost)
        size = sum(path.stat().st_size for path in process.folder.iterdir())
        expect(size <= 1 << 20, size)


@case
def what_comes_faster_than_it_is_read_is_counted_as_lost():
    if tuple(map(int, os.uname().release.split(".")[:2])) < (6, 0):
        return  # the kernel doesn't tell
    pages = 20000
    with Folder() as folder:
        words = command(folder, program("locality_patterns"), "much", str(pages), "when told")
        # On one processor, as each has a buffer of its own.
        one = {min(os.sched_getaffinity(0))}
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                              stderr=subprocess.PIPE,
                              preexec_fn=lambda: os.sched_setaffinity(0, one)) as running:
            try:
                until_ready(running)
                running.send_signal(signal.SIGSTOP)  # the recorder; the program goes on
                running.stdin.write("\n")
                running.stdin.flush()
                expect(running.stdout.readline() == "done\n", "the program stopped, too")
            finally:
                running.send_signal(signal.SIGCONT)
            _, told = running.communicate(timeout=60)
        expect("buffer was full" in told, told)
        process, = recording.open(folder).processes
        lost, = process.info["lost"]
        expect(len(process.touches) < pages <= len(process.touches) + lost["count"], lost)


@case
def a_full_disk_is_said_and_what_is_there_can_be_read():
    if os.geteuid() != 0:
        return
    with Folder() as folder:
        folder.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(folder)],
                          capture_output=True, check=False).returncode != 0:
            return
        try:
            done = recorded(folder, program("locality_patterns"), "much", "60000")
            expect("done" in done.stdout and "No space left" in done.stderr, done.stderr)
            process, = recording.open(folder).processes
            lost = {loss["what"]: loss["count"] for loss in process.info["lost"]}
            expect(len(process.touches) > 1000 and process.info["end"] == "exit 0", lost)
            # (On a busy machine the kernel's buffer loses some, too.)
            expect(lost["touches"] + lost.get("events of all processes", 0) + len(process.touches) >= 60000, lost)
            expect(f" {len(process.touches)} first touches" in done.stderr and
                   f"; {lost['touches']} more are lost" in done.stderr, done.stderr)
            expect(process.info["files"]["touches.rec"]["bytes"] ==
                   (process.folder / "touches.rec").stat().st_size, process.info["files"])
        finally:
            subprocess.run(["umount", "-l", str(folder)], check=False)


@case
def a_disk_that_is_full_from_the_start_leaves_what_is_lost_counted():
    if os.geteuid() != 0:
        return
    with Folder() as folder:
        folder.mkdir()
        # A block for each of the tracker's files, none for the touches: whichever comes first.
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "none", str(folder)],
                          capture_output=True, check=False).returncode != 0:
            return
        try:
            done = recorded(folder, program("locality_patterns"), "much", "60000")
            expect("done" in done.stdout and "No space left" in done.stderr, done.stderr)
            kept, lost = re.search(r": (\d+) first touches .*; (\d+) more are lost", done.stderr).groups()
            expect(done.stderr.count("No space left") == 1, done.stderr)
            process, = recording.open(folder).processes
            what = {loss["what"]: loss["count"] for loss in process.info["lost"]}
            found = int(kept) + int(lost) + what.get("events of all processes", 0)
            expect(int(kept) < 1000 and found >= 60000, done.stderr)
            expect(what["touches"] == int(lost) and what["allocations"] == 0, what)
            expect("all allocations were lost" in "\n".join(process.warnings), process.warnings)
        finally:
            subprocess.run(["umount", "-l", str(folder)], check=False)


@case
def a_limit_of_the_programs_files_cuts_the_recording_only():
    with Folder() as folder:
        done = recorded(folder, program("locality_patterns"), "much", "60000",
                        before=["prlimit", "--fsize=16384"])
        expect("done" in done.stdout and "File too large" in done.stderr, done.stderr)
        process, = recording.open(folder).processes
        expect(process.info["end"] == "exit 0" and process.info["lost"], process.info)


@case
def what_processes_share_has_the_same_place_in_all():
    maps = ("import mmap, sys; file = open(sys.argv[1], 'r+b'); "
            "mmap.mmap(file.fileno(), 1 << 20, offset=int(sys.argv[2]))[0] = 1")
    with Folder() as folder:
        one, other = folder.parent / "one", folder.parent / "other"
        for path in (one, other):
            path.write_bytes(bytes(2 << 20))
        python = os.path.realpath(sys.executable)
        runs = "; ".join(f'"{python}" -I -c "{maps}" {path} {offset}'
                         for path, offset in ((one, 0), (one, 4 * PAGE), (other, 0)))
        recorded(folder, "/bin/sh", "-c", runs)
        shared = recording.KINDS.index("shared")
        found = [one for process in opened(folder).processes for one in process.allocations
                 if one["event"] == recording.ALLOCATION_BEGAN and one["what"] == shared
                 and one["size"] == 1 << 20]
        places = [int(one["previous"]) for one in sorted(found, key=lambda one: one["time_ns"])]
        expect(len(places) == 3 and places[0] != 0, places)
        expect(places[1] == (places[0] + 4 * PAGE) % 2**64, places)
        expect(abs(places[2] - places[0]) >= 2 << 20, places)


@case
def mappings_of_a_device_are_not_called_shared_pages():
    maps = ("import mmap; file = open('/dev/zero', 'r+b', buffering=0); "
            "mmap.mmap(file.fileno(), 1 << 20)[0] = 1")
    with Folder() as folder:
        recorded(folder, os.path.realpath(sys.executable), "-I", "-c", maps)
        shared = recording.KINDS.index("shared")
        found = [one for process in opened(folder).processes for one in process.allocations
                 if one["event"] == recording.ALLOCATION_BEGAN and one["what"] == shared
                 and one["size"] == 1 << 20]
        expect(len(found) == 1 and found[0]["previous"] == 0, found)


@case
def an_ordinary_user_records_as_well():
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        return
    before = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    if subprocess.run([*before, "test", "-x", args.warren], check=False).returncode != 0:
        return  # the build is not for others
    paranoid = int(pathlib.Path("/proc/sys/kernel/perf_event_paranoid").read_text())
    if paranoid > 2:
        with Folder() as folder:
            tried = subprocess.run([*before, *command(folder, "/bin/echo", "ran")], text=True,
                                   capture_output=True, timeout=100, check=False)
        if tried.returncode != 0:  # kernels without distributions' rule know no more than 2
            expect("perf_event_paranoid is" in tried.stderr and "--mode counts" in tried.stderr and
                   "ran" not in tried.stdout, tried.stderr)
            return
    for what in ("heap", "other", "calls", "huge"):
        process, _ = check_pattern(what, before=before, least=0)
        if paranoid >= 2:
            expect("system calls" in "\n".join(process.info["missing"]), process.info["missing"])


def main():
    global analysis, args, np, recording
    parser = argparse.ArgumentParser()
    parser.add_argument("--warren", required=True)
    parser.add_argument("--programs", required=True)
    parser.add_argument("--python", required=True)
    args = cases.parse(parser)
    sys.path.insert(0, args.python)
    import numpy
    from warren.locality import analysis as analyses, recording as module
    analysis, np, recording = analyses, numpy, module
    with Folder() as folder:
        try_out = subprocess.run(command(folder, "/bin/true"), capture_output=True, text=True,
                                 check=False)
        if "performance events" in try_out.stderr and not args.list:
            print(f"skipped: {try_out.stderr}")
            sys.exit(77)
    sys.exit(cases.run(args))


if __name__ == "__main__":
    main()
