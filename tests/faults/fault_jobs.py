"""Jobs that harm is done to, and what has to be gone afterwards; for faults.py."""
import argparse
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import uuid

# faults.py's options.
args = argparse.Namespace()

END_WITHIN_S = 5.0
SKIP = "skip"
ALONE = "FAULT_TEST_ALONE"


class Fault(Exception):
    """What a case found wrong."""


def processes_with(mark):
    """Pids of living processes that carry the mark in their environment."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if mark.encode() in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                pass
    return found


def rank_of(pid):
    """The rank that a process is or belongs to, or None."""
    try:
        environment = pathlib.Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return None
    match = re.search(rb"(?:^|\0)WARREN_RANK=(\d+)\0", environment)
    return int(match[1]) if match else None


def parent_of(pid):
    try:
        status = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return int(status.rsplit(")", 1)[1].split()[1])


def process_state(pid):
    """The letter in /proc, behind the name in parentheses."""
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        return file.read().rpartition(")")[2].split()[0]


class Job:
    """One mpiexec with the mark; its output goes to files, so that no pipe is held open."""

    def __init__(self, arguments, wrapper=(), **options):
        self.mark = "FAULT_TEST_MARK=" + uuid.uuid4().hex
        environment = dict(os.environ)
        environment.update([self.mark.split("=")])
        self.files = shared_files()
        self.output = tempfile.TemporaryFile()
        self.process = subprocess.Popen([*wrapper, args.mpiexec, *arguments], env=environment,
                                        stdin=subprocess.DEVNULL, stdout=self.output,
                                        stderr=subprocess.STDOUT, **options)
        self.since = time.monotonic()

    def ranks(self):
        """pid by rank, of mpiexec's direct children."""
        return {rank_of(pid): pid for pid in processes_with(self.mark)
                if rank_of(pid) is not None and parent_of(pid) == self.process.pid}

    def guardian(self):
        for pid in processes_with(self.mark):
            try:
                if pathlib.Path(f"/proc/{pid}/comm").read_text().strip() == "warren-guardian":
                    return pid
            except OSError:
                pass
        raise Fault("no guardian")

    def wait_for_ranks(self, count, seconds=20):
        deadline = time.monotonic() + seconds
        while len(self.ranks()) < count:
            if self.process.poll() is not None:
                raise Fault(f"mpiexec ended early with {self.process.returncode}: {self.text()}")
            if time.monotonic() > deadline:
                raise Fault(f"only {len(self.ranks())} of {count} ranks after {seconds} s")
            time.sleep(0.01)
        self.since = time.monotonic()

    def wait_for_sleep(self, seconds=20):
        """Until all ranks have started and sleep."""
        deadline = time.monotonic() + seconds
        while any(process_state(pid) != "S" for pid in self.ranks().values()):
            if time.monotonic() > deadline:
                raise Fault(f"the ranks don't sleep after {seconds} s")
            time.sleep(0.01)

    def harm(self, pid, number=signal.SIGKILL):
        self.since = time.monotonic()
        os.kill(pid, number)

    def text(self):
        self.output.seek(0)
        return self.output.read().decode(errors="replace")

    def ends(self, codes, *patterns, messages=1, within=END_WITHIN_S):
        """Checks the end: exit code, what the output must have, what must be gone."""
        try:
            code = self.process.wait(timeout=within + 5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise Fault(f"mpiexec does not end: {self.text()}") from None
        took = time.monotonic() - self.since
        text = self.text()
        if code not in ([codes] if isinstance(codes, int) else codes):
            raise Fault(f"exit code {code}, not {codes}: {text}")
        if took > within:
            raise Fault(f"took {took:.1f} s: {text}")
        # The guardian's part comes after the death of mpiexec.
        deadline = time.monotonic() + END_WITHIN_S
        while (left := processes_with(self.mark)) and time.monotonic() < deadline:
            time.sleep(0.02)
        if left:
            commands = [pathlib.Path(f"/proc/{pid}/cmdline").read_bytes() for pid in left]
            raise Fault(f"left behind: {left} {commands}: {text}")
        text = self.text()
        for pattern in patterns:
            if not re.search(pattern, text):
                raise Fault(f"no '{pattern}' in: {text}")
        said = [line for line in text.splitlines() if line.startswith("mpiexec: ")]
        if len(said) != messages:
            raise Fault(f"{len(said)} messages, not {messages}: {text}")
        new = shared_files() - self.files
        if new:
            raise Fault(f"new files: {sorted(new)}")
        return text


def shared_files():
    """Files that a job could have left behind: where others have files too, those with our name."""
    own = os.environ.get(ALONE, "").split(":")
    return {str(path) for folder in ("/tmp", "/dev/shm") if os.path.isdir(folder)
            for path in pathlib.Path(folder).iterdir() if folder in own or "warren" in path.name}


def be_alone():
    """Starts this script again with a /dev/shm and, unless it is installed there, a /tmp of its own,
    if the machine lets it: nobody else's files come and go in them."""
    if ALONE in os.environ:
        return
    folders = ["/dev/shm"]
    if not os.path.realpath(args.mpiexec).startswith("/tmp/"):
        folders.append("/tmp")
    mounts = " && ".join(f"mount -t tmpfs none {folder}" for folder in folders)
    wrapper = ["unshare", "-m", "sh", "-c", mounts + ' && exec "$@"', "sh"]
    possible = subprocess.run([*wrapper, "true"], capture_output=True, check=False).returncode == 0
    os.environ[ALONE] = ":".join(folders) if possible else "none"
    if possible:
        os.execvp(wrapper[0], [*wrapper, sys.executable, *sys.argv])


def in_memory_group(limit_bytes):
    """A control group with a memory limit: (folder, function that joins it), or None."""
    for root, name in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
                       ("/sys/fs/cgroup", "memory.max")):
        folder = pathlib.Path(root) / f"warren-fault-{os.getpid()}"
        try:
            folder.mkdir()
        except OSError:
            continue
        try:
            (folder / name).write_text(str(limit_bytes))
            return folder, lambda: (folder / "cgroup.procs").write_text(str(os.getpid()))
        except OSError:
            folder.rmdir()
    return None


def with_memory_limit(limit_bytes, arguments, wrapper, *patterns):
    group = in_memory_group(limit_bytes)
    if group is None:
        return SKIP
    folder, join = group
    try:
        Job(arguments, wrapper, preexec_fn=join).ends(1, *patterns)
    finally:
        for _ in range(50):
            try:
                folder.rmdir()
                break
            except OSError:
                time.sleep(0.1)
    return None
