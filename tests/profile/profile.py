#!/usr/bin/env python3
"""mpiexec --profile of a program whose messages and waits are known (known.c).

    profile.py --mpiexec M --program P [--warren W] --kinds processes,threads,fibres [--case NAME] [--list]
"""
import argparse
import html.parser
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import cases
from cases import case, expect

RANKS = 3
LATE_S = 0.4
SMALL, LARGE, PUT = (7, 100), (3, 300000), (4, 16)


def run(*words, code=0, **more):
    """Runs mpiexec with these words; its standard error."""
    done = subprocess.run([OPTIONS.mpiexec, *words], capture_output=True, text=True, timeout=60, check=False, **more)
    expect(done.returncode == code, f"{words}: exit code {done.returncode}, not {code}: {done.stderr}")
    return done.stderr


PARTS = ("profile", "waits", "collective operations", "messages")


def table(text):
    """The rows of each part of the table, without its heading; numbers are numbers. Other lines are notes."""
    rows = {part: [] for part in PARTS} | {"notes": [], "sums": []}
    part = ""
    for line in text.splitlines():
        line = line.removeprefix("mpiexec: ")
        if line.startswith(" "):
            rows[part].append([float(w) if re.fullmatch(r"[\d.]+", w) else w for w in line.split()])
            continue
        found = next((one for one in PARTS if line.startswith(one)), "")
        part = found or part
        if not found:
            rows["notes"].append(line)
        elif found == "messages":
            rows["sums"] = [int(n) for n in re.findall(r"\d+", line)]
    for part in PARTS:
        del rows[part][:1]
    return rows


def check_counts(rows):
    calls = {row[0]: row[1] for row in rows["profile"]}
    expected = {"MPI_Send": RANKS * SMALL[0] + 1, "MPI_Irecv": RANKS * SMALL[0], "MPI_Wait": RANKS * SMALL[0],
                "MPI_Sendrecv": RANKS * LARGE[0], "MPI_Recv": 1, "MPI_Barrier": RANKS * 6, "MPI_Put": RANKS * PUT[0],
                "MPI_Allreduce": RANKS * 6, "MPI_Bcast": RANKS * 4, "MPI_Win_fence": RANKS * 2}
    for name, number in expected.items():
        expect(calls.get(name) == number, f"{name}: {calls.get(name)} calls, not {number}")
    each = SMALL[0] * SMALL[1] + LARGE[0] * LARGE[1]
    pairs = {(row[0], row[1]): row[2:] for row in rows["messages"]}
    for rank in range(RANKS):
        last = rank == RANKS - 1
        wanted = [SMALL[0] + LARGE[0] + last, each + last, PUT[0], PUT[0] * PUT[1]]
        found = pairs.get((rank, (rank + 1) % RANKS))
        expect(found == wanted, f"from {rank}: {found}, not {wanted}")
    expect(len(pairs) == RANKS, f"pairs without messages: {pairs}")
    expect(rows["sums"] == [RANKS * 10 + 1, RANKS * each + 1, RANKS * PUT[0], RANKS * PUT[0] * PUT[1]],
           f"sums: {rows['sums']}")
    sizes = {(row[0], row[1]): row[2] for row in rows["collective operations"]}
    wanted = {("MPI_Allreduce", 8): RANKS * 6, ("MPI_Bcast", 1024): RANKS * 4, ("MPI_Barrier", 0): RANKS * 6}
    expect(sizes == wanted, f"collective operations: {sizes}, not {wanted}")


def check_waits(rows):
    waits = {(row[0], row[1], row[4]): (row[2], row[3]) for row in rows["waits"]}
    last = RANKS - 1
    for rank in range(last):
        number, seconds = waits.get((rank, last, "MPI_Barrier"), (0, 0))
        expect(number >= 1 and 0.8 * LATE_S < seconds, f"rank {rank} at the barrier: {number}, {seconds} s")
    number, seconds = waits.get((0, last, "MPI_Recv"), (0, 0))
    expect(number == 1 and 0.8 * LATE_S < seconds, f"the receive: {number} waits, {seconds} s: {waits}")
    of_last = sum(seconds for (rank, _, call), (_, seconds) in waits.items() if rank == last and call == "MPI_Barrier")
    expect(of_last < LATE_S, f"the late rank has waited {of_last} s at barriers")


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.texts, self.links = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name in ("src", "href", "xlink:href")]

    def handle_data(self, data):
        self.texts.append(data.strip())


def check_page(path):
    text = pathlib.Path(path).read_text(encoding="utf-8")
    page = Page()
    page.feed(text)
    expect(text.endswith("</html>\n"), "the page is not complete")
    expect(all(link.startswith(("#", "data:,")) for link in page.links), f"the page needs {page.links}")
    expect("http" not in text, "the page has an address")
    for wanted in ("0 to 1: 901 kB", "2 to 0: 901 kB", "Who waited for whom", "MPI_Sendrecv"):
        expect(any(wanted in one for one in page.texts), f"no '{wanted}' on the page")
    expect(any(re.match(r"0 waited for 2: \d", one) for one in page.texts), "no wait of rank 0 for rank 2 on the page")


def kinds():
    return OPTIONS.kinds.split(",")


@case
def known():
    for kind in kinds():
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "page.html")
            rows = table(run("--ranks", kind, "-n", str(RANKS), f"--profile={path}", OPTIONS.program))
            check_counts(rows)
            check_waits(rows)
            check_page(path)


@case
def ended():
    for kind in kinds():
        for way, code in (("abort", 3), ("kill", 137)):
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "page.html")
                rows = table(run("--ranks", kind, "-n", str(RANKS), f"--profile={path}", OPTIONS.program, way, code=code))
                check_counts(rows)
                check_page(path)


@case
def stuck():
    """Waits that the end of the job has ended."""
    for kind in kinds():
        text = run("--ranks", kind, "-n", str(RANKS), "--timeout", "3", "--profile", OPTIONS.program, "stuck", code=124)
        rows = table(text[text.index("mpiexec: profile of"):])
        present = {row[0]: row for row in rows["waits"] if row[1] == "others" and row[4] == "MPI_Recv" and row[3] > 0.5}
        expect(sorted(present) == list(range(RANKS - 1)), f"waits of {kind}: {rows['waits']}")
        waiting = {row[0]: row[4] for row in rows["profile"]}
        expect(waiting["MPI_Recv"] > 0.5 * (RANKS - 1), f"calls of {kind}: {rows['profile']}")


@case
def live():
    """What warren ranks shows of a job that runs."""
    if OPTIONS.warren is None:
        return
    ask = [OPTIONS.warren, "ranks", "--profile", "--once"]
    for options, wanted in (((), "has no profile"), (("--profile",), "3 of them have not left MPI")):
        with subprocess.Popen([OPTIONS.mpiexec, *options, "-n", str(RANKS), OPTIONS.program, "stay"],
                              stderr=subprocess.DEVNULL) as job:
            try:
                end = time.monotonic() + 45
                while True:
                    done = subprocess.run([*ask, str(job.pid)], capture_output=True, text=True, timeout=30, check=False)
                    rows = table(done.stdout)["profile"] if done.returncode == 0 else []
                    seen = wanted in done.stdout + done.stderr and (not options or ["MPI_Barrier", 18] in [r[:2] for r in rows])
                    expect(seen or time.monotonic() < end, f"{options}: {done.stdout}{done.stderr}")
                    if seen:
                        break
                    time.sleep(0.1)
                expect(done.returncode == (0 if options else 1), f"{options}: exit code {done.returncode}")
            finally:
                job.terminate()


@case
def without():
    text = run("-n", "2", OPTIONS.program)
    expect(text == "", f"without the option: {text}")


@case
def many():
    """More ranks than columns: neighbours share them, and sums are right."""
    rows = table(run("--ranks", kinds()[-1], "-n", "300", "--profile", OPTIONS.program)) if "fibres" in kinds() else None
    if rows is not None:
        each = SMALL[0] * SMALL[1] + LARGE[0] * LARGE[1]
        expect(rows["sums"][:2] == [300 * 10 + 1, 300 * each + 1], f"sums: {rows['sums']}")
        expect("peers are 2 ranks each, named by the first" in rows["notes"], f"no word on columns: {rows['notes']}")


@case
def refused():
    with tempfile.TemporaryDirectory() as folder:
        for place, reason in ((folder, "no file that can be replaced"), (folder + "/none/page", "can't be written: No such"),
                              (folder + "/", "no file"), ("", "needs the name of a file")):
            text = run("-n", "2", f"--profile={place}", OPTIONS.program, code=2)
            expect(reason in text and "profile of" not in text, f"{place}: {text}")
        text = run("--host", "a:1,b:1", "--launcher", "fork", "--profile", OPTIONS.program, code=2)
        expect("one node" in text, text)
        text = run("-n", "2", f"--profile={folder}/page", "true")
        expect("no rank has called MPI_Init" in text and not os.listdir(folder), f"without MPI: {text}")


@case
def no_room():
    """A full file system: the reason is told, and no page stays."""
    with tempfile.TemporaryDirectory() as folder:
        unshare = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--mount"]
        mount = f"mount -t tmpfs -o size=4k none {folder} && "
        if subprocess.run([*unshare, "sh", "-c", mount + "true"], capture_output=True, check=False).returncode != 0:
            print("no file system of 4 kB can be made here")
            return
        command = f"{OPTIONS.mpiexec} -n {RANKS} --profile={folder}/page {OPTIONS.program}; echo $?; ls {folder}"
        done = subprocess.run([*unshare, "sh", "-c", mount + command], capture_output=True, text=True, timeout=60, check=False)
        expect("could not be written: No space left on device" in done.stderr, done.stderr)
        expect(done.stdout.split() == ["1"], f"exit code, files: {done.stdout}")


OPTIONS = None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--kinds", default="processes")
    parser.add_argument("--warren")
    global OPTIONS
    OPTIONS = cases.parse(parser)
    return cases.run(OPTIONS)


if __name__ == "__main__":
    sys.exit(main())
