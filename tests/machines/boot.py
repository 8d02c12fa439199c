#!/usr/bin/env python3
"""Boots a virtual machine with memories of several kinds and runs one command on it.

    boot.py --list
    boot.py fig1-2020 -- lstopo-no-graphics --memattrs
    boot.py --limit 60 --set NAME=VALUE xeon-2lm -- ./program argument

QEMU emulates the processors, so what takes how long on the machine means nothing; discovery, placement and migration of memory are true. The command sees this computer's
files, read-only; /run can be written to. Its output and its exit status become this program's.
Exit status 77: there is no QEMU or no kernel here, and the reason is said; 124: the limit passed;
125: the machine did not come up. Nothing is left behind, also when this program is killed.
"""

import argparse
import ctypes
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import tempfile
import time

import kernel
import machines

SKIPPED, LATE, FAILED = 77, 124, 125

# A machine whose command has not begun after so many seconds (5 on an idle computer) will not come
# up: emulated processors have been seen to wait for each other for good. It is booted anew.
LONGEST_BOOT = 60
BOOTS = 3


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="the machines' names")
    parser.add_argument("--limit", type=float, default=100, help="seconds for all (100)")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE",
                        help="a variable of the command's environment")
    parser.add_argument("--scratch", type=pathlib.Path, default=kernel.cache_folder(),
                        help="folder for the unpacked kernel")
    parser.add_argument("--console", action="store_true", help="show the kernel's messages")
    parser.add_argument("machine", nargs="?", choices=list(machines.MACHINES))
    parser.add_argument("command", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    if given.command[:1] == ["--"]:
        del given.command[0]
    if not given.list and not given.command:
        parser.error("a machine and a command are needed")
    return given


def script(given):
    lines = [f"cd {shlex.quote(os.getcwd())}",
             f"export PATH={shlex.quote(os.environ['PATH'])}",
             "export HOME=/run TMPDIR=/run XDG_CACHE_HOME=/run XDG_CONFIG_HOME=/run TERM=dumb"]
    lines += [f"export {shlex.quote(setting)}" for setting in given.set]
    return "\n".join([*lines, shlex.join(given.command), ""]).encode()


def run(given, scratch):
    machine = machines.MACHINES[given.machine]()
    qemu = kernel.find_program("qemu-system-x86_64")
    kernel_file, first = kernel.prepared(given.scratch)
    command = kernel.archive({"command": (kernel.PROGRAM, script(given))})
    beginning = first.read_bytes()
    (scratch / "first").write_bytes(beginning + bytes(-len(beginning) % 512) + command)
    options = [qemu, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
               # Without fast strings the kernel clears and copies pages in loops of long words, which
               # emulated processors do several times as fast as those instructions.
               "-machine", "q35,hmat=on", "-cpu", "max,-erms,-fsrm", "-accel", "tcg,thread=multi",
               "-kernel", str(kernel_file), "-initrd", str(scratch / "first"),
               # Checks and waits of the kernel that make no sense on an emulated processor. The time
               # is the processor's counter: for any other clock all of them would stop one another.
               "-append", "console=ttyS0 quiet panic=-1 8250.nr_uarts=3 nokaslr mitigations=off "
                          "tsc=reliable no_timer_check random.trust_cpu=on audit=0 "
                          "rcupdate.rcu_expedited=1 numa_balancing=disable "
                          + machine.get("kernel", ""),
               "-serial", f"file:{scratch}/console",
               "-chardev", "stdio,id=output,signal=off", "-serial", "chardev:output",
               "-serial", f"file:{scratch}/status",
               "-virtfs", "local,path=/,mount_tag=host,security_model=none,readonly=on,"
                          "multidevs=remap",
               *machines.qemu_options(machine)]
    end = time.monotonic() + given.limit
    for number in range(1, BOOTS + 1):
        ended, said = boot(options, scratch, end)
        status = said[-1] if said else ""
        if given.console or not status.isdigit():
            for name in ("errors", "console"):
                if (scratch / name).exists():
                    sys.stderr.write((scratch / name).read_text(errors="replace")[-6000:])
        if said or ended or time.monotonic() >= end:
            break
        print(f"boot.py: boot {number} of {given.machine} stood still", file=sys.stderr)
    if status.isdigit():
        return int(status)
    if not ended and time.monotonic() >= end:
        print(f"boot.py: {given.machine}: the limit of {given.limit:g} s passed", file=sys.stderr)
        return LATE
    print(f"boot.py: {given.machine} did not come up", file=sys.stderr)
    return FAILED


def boot(options, scratch, end):
    """(whether the machine ended of itself, the words that it left of its state: that the command has
    begun, and its status)."""
    state = scratch / "status"
    state.unlink(missing_ok=True)

    def said():
        return state.read_text().split() if state.exists() else []

    longest = time.monotonic() + LONGEST_BOOT
    with open(scratch / "errors", "w", encoding="utf-8") as errors:
        with subprocess.Popen(options, stdin=subprocess.DEVNULL, stderr=errors,
                              preexec_fn=die_with_parent) as process:
            while True:
                try:
                    process.wait(0.5)
                    return True, said()
                except subprocess.TimeoutExpired:
                    now = time.monotonic()
                    if now >= end or (now >= longest and not said()):
                        process.kill()
                        process.wait()
                        return False, said()


def main():
    given = arguments()
    if given.list:
        print("\n".join(machines.MACHINES))
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        with tempfile.TemporaryDirectory(prefix="warren-machine.") as scratch:
            return run(given, pathlib.Path(scratch))
    except kernel.Missing as reason:
        print(f"skipped: {reason}")
        return SKIPPED


if __name__ == "__main__":
    sys.exit(main())
