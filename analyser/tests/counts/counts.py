"""Records programs with `warren locality record --mode counts`, hooks if their names begin so, or as the
test's name says behind @, and compares what is counted with what they are known to do.
    counts.py BUILD TEST[@MODE] PROGRAM [ARGUMENT …]
Status 77: DynamoRIO isn't built, or the processor lacks what the program needs."""

import json
import os
import pathlib
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import time

from recorded import (ALLOCATION, BYTES, COMMUNICATION, COUNT, INTERVAL, MODE, PAGE, PHASE, SKIPPED, TOUCH, Process,
                      arguments, build, command, processes_in, program, record, records, test_name)


def check_exactly(output, process, unit_bytes=PAGE):
    expected = 0
    firsts = {}
    for line in output.splitlines():
        kind, *words = line.split()
        unit = int(words[0], 16) & ~(unit_bytes - 1)
        if kind == "expect":
            thread, *sums = map(int, words[1:])
            found = process.counts.get((unit, thread), [0, 0, 0, 0])
            assert all(one in (known, -1) for one, known in zip(sums, found)), f"{line}: {found}"
            expected += 1
        elif kind == "within":
            block, life, thread, *sums = int(words[1], 16), *map(int, words[2:])
            if MODE == "hooks" and -1 in sums:
                continue  # what the C library copies, it doesn't see
            number = process.lives[block][life]
            found = process.parts.get((unit, thread, number), [0, 0, 0, 0])
            assert all(one in (known, -1) for one, known in zip(sums, found)), f"{line}: {found}"
            expected += 1
        elif kind == "untouched":  # first: it came there otherwise
            assert unit not in {at for _, _, at, *_ in process.firsts}, line
        elif kind == "first":
            firsts.setdefault(unit, []).append((int(words[1]), words[2] == "1"))
    for unit, touches in firsts.items():
        found = [(thread, flags & 2 != 0) for flags, thread, at, *_ in process.firsts if at == unit]
        if not touches[0][1]:  # by a read; a write may follow
            found = found[:1]
        elif len(touches) == 1:
            assert found[-1:] == found[:1] or not found[0][1], found
            found = found[:1] if found[0][1] else found[-1:]
        assert found == touches, f"first touches of {unit:x}: {found}, not {touches}"
    assert expected, output
    assert process.about["lost"] == [], process.about["lost"]


def exact(scratch):
    output, (process,) = record(scratch)
    check_exactly(output, process)
    assert process.about["end"] == "exit 0", process.about["end"]


def recorded(_):
    """As `exact`, of a recording and an output that are there already."""
    folder, output = arguments
    (process,) = processes_in(folder)
    check_exactly(pathlib.Path(output).read_text(), process)
    assert process.about["end"] == "exit 0", process.about["end"]


def handled(scratch):
    """What signal handlers access is counted, or told as missed."""
    output, (process,) = record(scratch)
    missed = sum(loss["count"] for loss in process.about["lost"])
    process.about["lost"] = []
    check_exactly(output, process)
    line = next(line.split() for line in output.splitlines() if line.startswith("handled"))
    first, times = int(line[1], 16), int(line[2])
    counted = sum(process.counts.get((first + page * PAGE, 0), [0, 0])[1] for page in range(64))
    assert 0 <= 64 * times - counted <= missed <= 64 * times // 10, (64 * times, counted, missed)


def huge(scratch):
    """What isn't touched of a mapping takes no time, nor is it other memory's counters."""
    output, (process,) = record(scratch, "--granularity", "64")
    check_exactly(output, process, 64)


def need_python():
    if subprocess.run([os.environ.get("WARREN_PYTHON", "python3"), "-c", "import numpy, tree_sitter"],
                      capture_output=True, check=False).returncode:
        print("skipped: Python has no numpy or tree_sitter; tools/python_packages.sh gets them")
        sys.exit(SKIPPED)


def reported(scratch):
    """The report names blocks by their variables."""
    need_python()
    record(scratch)
    subprocess.run([build / "bin/warren", "locality", "report", scratch + "/recording", "--quiet", "--json",
                    scratch + "/report.json"], check=True, timeout=60)
    structures = json.loads(pathlib.Path(scratch, "report.json").read_text())["structures"]
    named = set(zip(structures["name"], [os.path.basename(file or "") for file in structures["file"]]))
    for name in ("block", "larger", "again", *(["zeros"] if MODE != "hooks" else [])):
        assert (name, "blocks.c") in named, (name, named)


def transfers(scratch):
    """Thread 1 writes 2,000 lines, 2 reads them twice, 1 reads them, 3 writes them, 2 reads, 1 writes
    them twice. What threads exchange besides (barriers) is little."""
    _, (process,) = record(scratch, "--granularity", "64", "--communication")
    found = {}
    for _, producer, consumer, _, events, moved in records(process.folder, "communication.rec", COMMUNICATION):
        found[producer, consumer] = found.get((producer, consumer), 0) + events
        assert moved == 64 * events
    expected = {(1, 2): 2000, (1, 3): 2000, (3, 2): 2000, (3, 1): 2000}
    for pair in ((one, other) for one in range(4) for other in range(4)):
        assert 0 <= found.get(pair, 0) - expected.get(pair, 0) < 300, (pair, found)


def analysed(scratch):
    """What warren.locality makes of the recording; None: its packages aren't there."""
    top = pathlib.Path(__file__).resolve().parents[3]
    code = ("import json, sys; sys.path.insert(0, sys.argv[1])\nfrom warren.locality import trace\n"
            "t = trace.load(sys.argv[2])\n"
            "print(json.dumps({'units': t.unit_address.tolist(), 'first': t.first_thread.tolist()}))")
    python = os.environ.get("WARREN_PYTHON", "python3")
    if subprocess.run([python, "-c", "import numpy"], capture_output=True, check=False).returncode:
        return None
    done = subprocess.run([python, "-c", code, str(top / "python"), scratch + "/recording"],
                          capture_output=True, text=True, timeout=60, check=True)
    return json.loads(done.stdout)


def sampled(scratch):
    """Estimates are within four standard errors, whether a burst slows the program much or little; first
    touches are right, those of pages that no burst saw placed too; instructions are exact."""
    output, (process,) = record(scratch)
    bursts = process.about["bursts"]
    assert bursts > 20, bursts  # of the time that the program takes, which a busy machine cuts up
    lines = [line.split()[1:] for line in output.splitlines() if line.startswith("about")]
    total = sum(int(reads) + int(writes) for _, _, _, reads, writes, _ in lines)
    first = analysed(scratch)
    first_of = dict(zip(first["units"], first["first"])) if first else {}
    faults = list(pathlib.Path(scratch, "recording", "faults").glob("*/touches.rec"))
    # The kernel isn't asked for frames, even where it would tell; it tells whether pages were written.
    touches = [touch for one in faults for touch in records(one.parent, one.name, TOUCH)]
    assert not any(physical for *_, physical, _, _ in touches), touches[:10]
    assert not faults or any(flags & 2 for flags, *_ in touches), touches[:10]
    for name, begin, size, reads, writes, toucher in lines:
        begin, size = int(begin, 16), int(size)
        for index, true in ((0, int(reads)), (1, int(writes))):
            found = sum(sums[index] for (at, thread), sums in process.counts.items()
                        if begin <= at < begin + size and thread == 1)
            share = true / total
            error = total * (share * (1 - share) / bursts) ** 0.5
            assert abs(found - true) <= 4 * error + 0.01 * true, (name, index, found, true, error, bursts)
        pages = [at for at in range(begin, begin + size, PAGE) if at in first_of]
        if faults and first:
            assert pages and all(first_of[at] == int(toucher) for at in pages), (
                name, toucher, [first_of[at] for at in pages][:10])
    ended = {number: instructions for event, number, *_, instructions, _ in process.threads if event == 2}
    least = 30 * 60 * 16 * PAGE * 4
    assert least < ended[1] < 10 * least, (ended, least)


def fill(scratch):
    """Pages that memset and memcpy touch first have the line of their caller."""
    output, (process,) = record(scratch)
    source = pathlib.Path(__file__).parent / "work.c"
    line_of = {text.split("// line ")[1].strip(): number for number, text in
               enumerate(source.read_text().splitlines(), 1) if "// line " in text}
    stacks = records(process.folder, "touch_stacks.rec", struct.Struct("<IIQ"))
    bases = {}
    for event, path_bytes, _, begin, _, offset, path_at, _, _ in records(process.folder, "modules.rec",
                                                                         struct.Struct("<IIQQQQQI20s")):
        path = (process.folder / "strings.bin").read_bytes()[path_at:path_at + path_bytes].decode()
        if event == 1 and offset == 0:
            bases[path] = begin
    base = bases[os.path.realpath(program)]
    for line in output.splitlines():
        _, begin, letter = line.split()
        begin = int(begin, 16)
        firsts = {at: stack for _, _, at, _, _, _, stack in process.firsts if begin <= at < begin + (64 << 12)}
        assert len(firsts) == 64 and all(firsts.values()), firsts
        callers = {stacks[stacks[stack - 1][1] - 1][2] for stack in firsts.values()}
        for caller in callers:
            places = subprocess.run(["addr2line", "-i", "-e", program, hex(caller - 1 - base)],
                                    capture_output=True, text=True, check=True).stdout.split("\n")
            assert any(place.split(" ")[0].endswith(f"/work.c:{line_of[letter]}") for place in places), (
                letter, places)


def faults_told(scratch):
    """Each process says whether first touches were recorded beside: then that they are gone is damage."""
    _, processes = record(scratch)
    events = [pathlib.Path(scratch, "recording", "faults").is_dir()]
    assert len(processes) == 4 and [process.about["faults"] for process in processes] == events * 4, processes
    forbids = build / "tests/locality_no_events"
    if forbids.exists():
        done = subprocess.run([forbids, "EPERM", *command(scratch + "/without"), program, *arguments], capture_output=True,
                              text=True, timeout=100, check=False)
        assert done.returncode == 0 and "first touches are known of bursts only" in done.stderr, done
        assert not os.path.exists(scratch + "/without/faults")
        assert not any(process.about["faults"] for process in processes_in(scratch + "/without"))


def known(scratch):
    """Whether pages were there when they were touched, however often others have been in their place."""
    output, (process,) = record(scratch)
    late_of = {}
    for flags, _, at, *_ in process.firsts:
        late_of.setdefault(at, []).append(flags & 4 != 0)
    expected = [line.split()[:2] for line in output.splitlines()]
    assert len(expected) >= 4, output
    for kind, unit in expected:
        found = late_of[int(unit, 16)].pop(0)
        assert found == (kind == "late"), (kind, unit, found)


def rows(scratch):
    """Of rows each access is counted, whether a burst meets them or not."""
    output, (process,) = record(scratch)
    assert process.about["bursts"] > 3, process.about["bursts"]
    for line in output.splitlines():
        _, at, reads, writes = line.split()
        found = process.counts[int(at, 16), 0]
        # Besides, there are the single bytes written in the first page, of which bursts see some.
        assert found[0] == int(reads) and 0 <= found[1] - int(writes) < 300 * 16, (line, found)


def same_instructions(scratch):
    """A program takes no other way in mode sample, nor are its instructions counted otherwise."""
    taken = {}
    for mode in ("counts", "sample"):
        subprocess.run(command(f"{scratch}/{mode}", mode=mode) + [program, *arguments], check=True, timeout=100)
        (process,) = processes_in(f"{scratch}/{mode}")
        (taken[mode],) = (one[-2] for one in process.threads if one[0] == 2 and one[1] == 0)
    assert process.about["bursts"] > 3, process.about["bursts"]
    assert abs(taken["sample"] - taken["counts"]) < taken["counts"] / 1000, taken


def rough(scratch):
    """A program that closes all descriptors, takes signals, forks and calls system() goes on."""
    _, processes = record(scratch)
    ends = sorted(process.about["end"] for process in processes)
    assert "exit 0" in ends and "exit 3" in ends and "exit 4" in ends, ends


def many_short(scratch):
    """2,000 threads that are there for a moment cost little, and some of them are counted."""
    _, (process,) = record(scratch)
    assert len({number for _, number, *_ in process.threads}) == 2001
    assert process.about["lost"] == [], process.about["lost"]
    counted = {thread for _, thread in process.counts}
    assert 1 < len(counted), counted


def sample_killed(scratch):
    """A killed program leaves what it did, and ends the recorder; a killed recorder leaves the program."""
    for victim in ("program", "recorder"):
        folder = f"{scratch}/{victim}"
        with subprocess.Popen(command(folder, "--save", "0.1") + [program, *arguments],
                              stdout=subprocess.PIPE, text=True) as running:
            page = int(running.stdout.readline().split()[1], 16)
            (process,) = processes_in(folder)
            pid = process.about["pid"]
            try:
                limit = time.monotonic() + 60
                while sum(processes_in(folder)[0].writes(page).values()) < 50000:
                    assert time.monotonic() < limit, "nothing was saved"
                    time.sleep(0.05)
                faults = pathlib.Path(folder, "faults")  # none, if the kernel doesn't tell
                while faults.exists() and not any(
                        one.stat().st_size > 1024 for one in faults.glob("*/touches.rec")):
                    assert time.monotonic() < limit, "first touches wait"
                    time.sleep(0.05)
                if victim == "recorder":
                    running.kill()
                    running.wait(timeout=60)
                    before = sum(processes_in(folder)[0].writes(page).values())
                    while sum(processes_in(folder)[0].writes(page).values()) <= before:
                        assert time.monotonic() < limit, "it doesn't go on"
                        time.sleep(0.05)
            finally:
                os.kill(pid, signal.SIGKILL)
            assert running.wait(timeout=60) == -signal.SIGKILL
        assert not any(process.about["end"] for process in processes_in(folder))


def recorder_killed(scratch):
    """A recorder that is killed before there is anything to write of first touches was stopped: nothing is damaged."""
    folder = scratch + "/recording"
    with subprocess.Popen(command(folder) + ["sleep", "1"]) as running:
        limit = time.monotonic() + 60
        while not list(pathlib.Path(folder).glob("process-*/process.json")):
            assert time.monotonic() < limit, "nothing is recorded"
            time.sleep(0.01)
        running.kill()
    faults = pathlib.Path(folder, "faults")
    if not faults.exists():
        print("skipped: the kernel tells no first touches")
        sys.exit(SKIPPED)
    while (process := processes_in(folder)[0]).about["end"] is None:
        assert time.monotonic() < limit, "it doesn't go on"
        time.sleep(0.05)
    assert process.about["end"] == "exit 0" and process.about["faults"], process.about
    (about,) = faults.glob("*/process.json")
    assert about.parent.name == process.folder.name and json.loads(about.read_text())["end_ns"] is None
    need_python()
    report = subprocess.run([build / "bin/warren", "locality", "report", folder], capture_output=True, text=True,
                            timeout=60, check=False)
    assert report.returncode == 0 and "the recorder was stopped" in " ".join(report.stdout.split()), report


def small_files(scratch):
    """A limit of the program's files cuts the recording, and doesn't end the program."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))
    said = []
    _, (process,) = record(scratch, said=said)
    assert process.about["end"] == "exit 0", process.about["end"]
    assert "counts are lost: " in said[0] and "counts.rec: it can't be written" in said[0], said
    assert "counts" in {one["what"] for one in process.about["lost"]}, process.about["lost"]


def line_bytes(scratch):
    """Which bytes of two lines threads 1 to 3 use, and that a report calls the first shared falsely."""
    output, (process,) = record(scratch, "--granularity", "64")
    pages = int(output.split()[-1], 16)
    found = {}
    for _, thread, unit, _, _, read, written, instruction in records(process.folder, "bytes.rec", BYTES):
        if pages <= unit < pages + 128 and thread:
            before = found.get((unit - pages, thread), (0, 0))
            found[unit - pages, thread] = before[0] | read, before[1] | written
            assert instruction
    own = {(0, thread): (0, 0xff << 8 * (thread - 1)) for thread in (1, 2, 3)}
    met = {(64, thread): (0xf << at, 0xf << at) for thread, at in ((1, 0), (2, 0), (3, 20))}
    assert found == own | met, found
    if subprocess.run([os.environ.get("WARREN_PYTHON", "python3"), "-c", "import numpy, tree_sitter"],
                      capture_output=True, check=False).returncode:
        return
    done = subprocess.run([build / "bin/warren", "locality", "report", scratch + "/recording"], check=True,
                          timeout=60, capture_output=True, text=True)
    said = " ".join(done.stdout.split())
    assert "falsely: no thread was seen at bytes that another writes" in said, done.stdout
    assert "threads.c:" in said and "T1 writes 0-7" in said or "T1 writes 0-3" in said, done.stdout


def phases(scratch):
    """100 accesses outside, 200 in the phase `outer`, of which 40 in `inner`, 7 at a level of MPI_Pcontrol."""
    output, (process,) = record(scratch)
    page = int(output.split()[-1], 16)
    names = [name.split(b"\0")[0].decode() or str(level)
             for _, _, _, level, _, name in records(process.folder, "phases.rec", PHASE)]
    phase_of = {number: names[phase - 1] if phase else "" for number, phase, *_ in
                records(process.folder, "intervals.rec", INTERVAL)}
    found = {}
    for interval, _, unit, _, _, _, writes, *_ in records(process.folder, "counts.rec", COUNT):
        if unit == page:
            found[phase_of[interval]] = found.get(phase_of[interval], 0) + writes
    assert found == {"": 100, "outer": 160, "inner": 40, "3": 7}, found


def ranks(scratch):
    """Two ranks in one process, each of which writes a page of its own 307 times."""
    kind, *rest = arguments
    output, processes = record(scratch, words=[str(build / "bin/mpiexec"), "--ranks", kind, "-n", "2",
                                               program, *rest])
    pages = [int(line.split()[1], 16) for line in output.splitlines() if line.startswith("page")]
    assert len(set(pages)) == 2, output
    host = max(processes, key=lambda process: len(process.counts))
    # What the page has besides is of smaller blocks that were there before.
    writes = [{thread: sums[1] for (at, thread, number), sums in host.parts.items()
               if at == page and number == host.lives[page][-1]} for page in pages]
    if MODE == "sample":  # ranks that wait may have used up their first bursts
        assert host.about["bursts"] >= 2 and all(len(one) <= 1 for one in writes), writes
        return
    assert [sum(one.values()) for one in writes] == [307, 307], writes
    if kind == "threads":
        assert len(writes[0]) == len(writes[1]) == 1 and writes[0].keys() != writes[1].keys(), writes


def processes(scratch):
    """Two ranks, each a folder of its own, behind the launcher and before it."""
    launcher = [str(build / "bin/mpiexec"), "-n", "2"]
    recorder = command(scratch + "/behind")
    subprocess.run([*launcher, *recorder, program, *arguments], check=True, timeout=100, capture_output=True)
    output, before = record(scratch, words=[*launcher, program, *arguments])
    behind = [Process(folder) for folder in sorted(pathlib.Path(scratch, "behind").iterdir())]
    before = [process for process in before if process.folder.name.startswith("rank-")]
    for found in (before, behind):
        assert [process.folder.name for process in found] == ["rank-00000", "rank-00001"], found
        assert all(process.about["size"] == 2 and process.about["lost"] == [] for process in found)
    pages = {int(line.split()[1], 16) for line in output.splitlines() if line.startswith("page")}
    for process in before:  # 300, and 7 behind MPI_Pcontrol, if there is an MPI library
        assert any(process.writes(page) in ({0: 300}, {0: 307}) for page in pages), (pages, process.counts)


def lines(scratch):
    output, (process,) = record(scratch, "--granularity", "64")
    check_exactly(output, process, 64)


def example(scratch):
    """Page A: 20, 5 and 10 accesses, page B: 0, 1 and 10; the first touches are thread 1's and 2's."""
    output, (process,) = record(scratch)
    pages = int(output.split()[-1], 16)
    local, total, right = [], [], 0
    for page in (pages, pages + PAGE):
        accesses = {thread: sums[0] + sums[1] for (at, thread), sums in process.counts.items() if at == page}
        first = next(thread for flags, thread, at, *_ in process.firsts if at == page)
        local.append(accesses[first])
        total.append(sum(accesses.values()))
        right += accesses[first] == max(accesses.values())
    assert (local, total) == ([20, 1], [35, 11]), (local, total)
    shares = [local[0] / total[0], local[1] / total[1], sum(local) / sum(total), right / 2]
    assert [round(100 * share, 1) for share in shares] == [57.1, 9.1, 45.7, 50.0], shares


def killed(scratch):
    with subprocess.Popen(command(scratch + "/recording", "--save", "0.1") + [program, *arguments],
                          stdout=subprocess.PIPE, text=True) as running:
        try:
            page = int(running.stdout.readline().split()[1], 16)
            (folder,) = pathlib.Path(scratch, "recording").iterdir()
            limit = time.monotonic() + 60
            while Process(folder).writes(page) != {0: 1000}:
                assert time.monotonic() < limit, "nothing was saved"
                time.sleep(0.05)
            about = folder / "process.json"  # whatever moment the end comes at, it is whole
            assert all(about.stat().st_size for _ in range(100000))
        finally:
            running.send_signal(signal.SIGKILL)
    process = Process(folder)
    assert process.writes(page) == {0: 1000}
    assert process.about["end"] is None and process.about["end_ns"] is None, process.about
    # A young process is saved as well, long before the 600 s are over.
    with subprocess.Popen(command(scratch + "/young", "--save", "600") + [program, *arguments],
                          stdout=subprocess.PIPE, text=True) as running:
        try:
            page = int(running.stdout.readline().split()[1], 16)
            (folder,) = pathlib.Path(scratch, "young").iterdir()
            limit = time.monotonic() + 60
            while Process(folder).writes(page) != {0: 1000}:
                assert time.monotonic() < limit, "nothing was saved"
                time.sleep(0.05)
        finally:
            running.send_signal(signal.SIGKILL)
    # What is not saved yet has its code and threads nevertheless.
    with subprocess.Popen(command(scratch + "/unsaved", "--save", "0") + [program, *arguments],
                          stdout=subprocess.PIPE, text=True) as running:
        running.stdout.readline()
        running.send_signal(signal.SIGKILL)
    process = Process(*pathlib.Path(scratch, "unsaved").iterdir())
    assert process.modules >= 3 and len(process.threads) == 1, (process.modules, process.threads)


def children(scratch):
    output, processes = record(scratch)
    page = int(output.split()[1], 16)
    ends = {process.about["end"]: process for process in processes}
    assert sorted(ends) == ["exec", "exit 0", "exit 3", "exit 4"], sorted(ends)
    assert ends["exit 0"].writes(page) == {0: 1}
    assert ends["exit 3"].writes(page) == {0: 2000}  # nothing of its parent's
    assert all(process.about["end_ns"] for process in processes)
    assert all(process.modules >= 3 for process in processes), [process.modules for process in processes]
    assert len({process.about["pid"] for process in processes}) == 3


def many(scratch):
    output, (process,) = record(scratch)
    page = int(output.split()[1], 16)
    writes = process.writes(page)
    assert len(writes) == 200 and set(writes.values()) == {10}, writes
    assert len({number for _, number, *_ in process.threads}) == 201
    assert MODE == "hooks" or all(instructions for event, *_, instructions, _ in process.threads if event == 2)


def ends(scratch):
    _, (process,) = record(scratch, words=[program, "exit", "7"], status=7)
    assert process.about["end"] == "exit 7"
    os.makedirs(scratch + "/2")
    output, (process,) = record(scratch + "/2", words=[program, "signal", str(int(signal.SIGTERM))],
                                status=-signal.SIGTERM)
    page = int(output.split()[1], 16)
    assert process.writes(page) == {0: 500}, process.writes(page)
    if MODE != "hooks":  # which sees no system calls
        os.makedirs(scratch + "/3")
        output, (process,) = record(scratch + "/3", words=[program, "signal", str(int(signal.SIGKILL))],
                                    status=-signal.SIGKILL)
        page = int(output.split()[1], 16)
        assert process.writes(page) == {0: 500} and process.modules >= 3, process.writes(page)


def refusals(scratch):
    folder = scratch + "/recording"

    def refused(words, status, text):
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == status and text in done.stderr, (words, done.returncode, done.stderr)

    refused(command(folder, "--granularity", "100") + [program], 2, "power of two")
    refused(command(folder, "--granularity", "4M") + [program], 2, "power of two")
    refused(command(folder, "--save", "-1") + [program], 2, "no number of seconds")
    refused(command(folder, "--limit", "1K") + [program], 2, "less than 1M")
    refused(command(folder, "--colour", "red") + [program], 2, "--colour")
    refused(command(folder), 2, "no program")
    refused(command(folder) + ["/nonexistent/program"], 125, "No such file")
    refused(command(folder) + [scratch], 125, "no program")
    os.makedirs(folder)
    pathlib.Path(folder, "file").touch()
    refused(command(folder) + [program], 125, "not empty")
    script = pathlib.Path(scratch, "script")
    script.write_text("#!/bin/sh\nexit 5\n")
    script.chmod(0o755)
    refused(command(scratch + "/of a script") + [str(script)], 5, "")
    rank = scratch + "/rank-folder/job"  # whose name is not that of a rank's recording
    os.makedirs(rank)
    os.environ["SLURM_PROCID"] = "1"  # also of what srun starts that is no rank
    refused(command(rank) + [str(script)], 5, "")
    (only,) = (Process(path) for path in pathlib.Path(rank).iterdir())
    assert only.folder.name.startswith("process-") and only.about["rank"] is None, only.about
    refused(command(rank) + [str(script)], 125, "not empty")
    os.environ["PMI_RANK"] = "2"
    refused(command(rank) + [str(script)], 5, "")
    refused(command(rank) + [str(script)], 125, "recording of rank 2 already")


def words(_):
    def said(*options):
        done = subprocess.run([str(build / "bin/warren"), "locality", "record", *options],
                              capture_output=True, text=True, timeout=60, check=False)
        return done.returncode, done.stdout + done.stderr

    for options in (["--mode", "counts", "--help"], ["--help", "--mode=counts"], ["--granularity", "64", "--mode",
                                                                                  "counts", "--help"]):
        status, text = said(*options)
        assert status == 0 and "--granularity" in text, text
    for options in (["--help"], ["--mode", "first-touch", "--help"]):
        status, text = said(*options)
        assert status == 0 and "--threshold" in text and "--mode" in text, text
    status, text = said("--mode", "first-touch")
    assert status == 2 and "no program" in text, text
    status, text = said("--mode", "exact", "true")
    assert status == 2 and "there is no mode 'exact', but first-touch, counts, sample and hooks" in text, text
    status, text = said("--mode", "sample", "--communication", "true")
    assert status == 2 and "needs all accesses" in text, text


def hook_words(scratch):
    """Flags for one step and for two; what is said of programs that don't count."""
    def said(*options):
        done = subprocess.run([str(build / "bin/warren"), "locality", *options], capture_output=True, text=True,
                              timeout=60, check=False)
        return done.returncode, done.stdout + done.stderr

    assert said("flags", "--help")[0] == 0 and said("flags", "--red")[0] == 2
    both = said("flags")[1].split()
    parts = [said("flags", part)[1].split() for part in ("--compile", "--link")]
    assert parts[0][0] == parts[1][0] == both[0] == "-fsanitize=thread", parts
    assert parts[0] + parts[1][1:] == both, (parts, both)
    assert "-fno-sanitize-link-runtime" in said("flags", "--clang")[1]
    status, text = said("record", "--mode", "hooks", "-o", scratch + "/1", "true")
    assert status == 125 and "nothing was recorded" in text and not os.path.exists(scratch + "/1"), text
    status, text = said("record", "--mode", "hooks", "-o", scratch + "/1", "sh", "-c", "exit 7")
    assert status == 7 and "nothing was recorded" in text, text
    status, text = said("record", "--mode", "hooks", "-o", scratch + "/2", program)
    assert status == 0 and os.listdir(scratch + "/2"), text
    hollow = scratch + "/installation"  # where nobody has built DynamoRIO
    os.makedirs(hollow + "/bin")
    os.makedirs(hollow + "/lib")
    for name in ("bin/warren",):
        pathlib.Path(hollow, name).write_bytes((build / name).read_bytes())
        pathlib.Path(hollow, name).chmod(0o755)
    (pathlib.Path(hollow, "lib")).rmdir()
    pathlib.Path(hollow, "lib").mkdir()
    for library in (build / "lib").glob("libwarren.so*"):
        pathlib.Path(hollow, "lib", library.name).symlink_to(library)
    done = subprocess.run([hollow + "/bin/warren", "locality", "record", "--mode", "counts", program],
                          capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 125 and "warren locality flags" in done.stderr, done.stderr


def main():
    parts = build / "lib/warren"
    if MODE == "hooks":
        pass
    elif not (parts / "libwarren-counts.so").exists() or not (parts / "dynamorio/libdynamorio.so").exists():
        print("skipped: DynamoRIO isn't there; analyser/dynamorio/build builds it")
        return SKIPPED
    tests = {test.__name__: test for test in (sampled, faults_told, same_instructions, known, small_files, fill, rough, rows, sample_killed, recorder_killed, many_short, exact, recorded, handled, hook_words, line_bytes, processes, huge, transfers, phases, reported, ranks, lines, example, killed, children, many, ends, refusals, words)}
    with tempfile.TemporaryDirectory() as scratch:
        tests[test_name](scratch)
    return 0


sys.exit(main())
