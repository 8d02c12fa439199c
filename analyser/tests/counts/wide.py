#!/usr/bin/env python3
"""Runs a program of AVX-512 code, recorded by `warren locality record --mode counts`, on a processor that
Bochs emulates, and compares what is counted with what the program is known to do.
    wide.py BUILD PROGRAM [ARGUMENT …]
Bochs does an instruction at a time, boot and all: about two minutes. Status 77: DynamoRIO isn't built, or
tests/machines/prepare hasn't fetched an emulator and a kernel."""

import base64
import io
import os
import pathlib
import pty
import re
import select
import signal
import subprocess
import sys
import tarfile
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[2] / "tests" / "machines"))

import boot  # noqa: E402
import kernel  # noqa: E402

SKIPPED = 77
# Seconds from this program's start. On an idle computer the command begins after 25, and all is done after 100.
LIMIT = int(os.environ.get("WARREN_BOCHS_LIMIT", "540"))
BEGIN_LIMIT = 240
STARTED = time.monotonic()

# AVX-512 and no saving of registers in an order that Debian's kernel and Bochs see differently.
CONFIGURATION = """
cpu: model=corei7_skylake_x, count=1, ips=50000000
memory: guest=768, host=768
romimage: file={bios}
vgaromimage: file={video}
ata0: enabled=1, ioaddr1=0x1f0, ioaddr2=0x3f0, irq=14
ata0-master: type=cdrom, path={scratch}/disc.iso, status=inserted
boot: cdrom
com1: enabled=1, mode=file, dev={scratch}/serial
clock: sync=none
display_library: term
log: {scratch}/log
panic: action=fatal
"""
BOOT = """default machine
prompt 0
timeout 1
label machine
 kernel vmlinuz
 append initrd=first console=ttyS0 quiet panic=-1 nokaslr mitigations=off noxsaves clearcpuid=xsavec nosmp no_timer_check random.trust_cpu=on audit=0 tsc=reliable lpj=1000000
"""
INIT = """#!/bin/busybox sh
/bin/busybox mount -t proc none /proc
/bin/busybox mount -t devtmpfs none /dev
/bin/busybox mount -t tmpfs none /run
echo 1 > /proc/sys/kernel/printk
exec > /dev/ttyS0 2>&1
cd /run
echo BEGIN
{command} > output
echo STATUS $?
/bin/busybox tar c output recording | /bin/busybox gzip | /bin/busybox base64
echo END
/bin/busybox sleep 1
/bin/busybox poweroff -f
"""


def first(*paths):
    for path in map(pathlib.Path, paths):
        if path.exists():
            return path
    raise kernel.Missing(f"{paths[0]} is not there; tests/machines/prepare installs it")


def with_libraries(path):
    """The file and all that the dynamic linker loads for it, by the names that it uses."""
    said = subprocess.run(["ldd", path], capture_output=True, text=True, check=False).stdout
    return {str(path), *re.findall(r"(/\S+) \(0x", said)}


def first_files(build, program, command):
    """The file system that the machine has."""
    parts = build / "lib" / "warren"
    wanted = set()
    for path in (build / "bin" / "warren", program, parts / "libwarren-counts.so", parts / "libwarren-tracker.so",
                 *(parts / "dynamorio").glob("*.so")):
        wanted |= with_libraries(path)
    files = {name: (kernel.FOLDER, b"") for name in ("bin", "proc", "dev", "run", "tmp")}
    files["bin/busybox"] = (kernel.PROGRAM, pathlib.Path(kernel.find_program("busybox")).read_bytes())
    files["init"] = (kernel.PROGRAM, INIT.format(command=command).encode())
    for path in sorted(wanted):
        parents = pathlib.Path(path).parents
        for folder in reversed([str(one)[1:] for one in parents if str(one) != "/"]):
            files.setdefault(folder, (kernel.FOLDER, b""))
        files[path[1:]] = (kernel.PROGRAM, pathlib.Path(path).read_bytes())
    return files


def run(scratch, files):
    """What the machine writes on its serial line, whether it was too late, and what Bochs writes."""
    bochs = kernel.find_program("bochs")
    configuration = CONFIGURATION.format(
        scratch=scratch, bios=first("/usr/share/bochs/BIOS-bochs-latest"),
        video=first("/usr/share/vgabios/vgabios.bin", "/usr/share/bochs/VGABIOS-lgpl-latest"))
    disc = scratch / "disc"
    disc.mkdir()
    (disc / "first").write_bytes(kernel.archive(files))
    (disc / "vmlinuz").write_bytes(next(kernel.find_kernel().glob("boot/vmlinuz*")).read_bytes())
    (disc / "isolinux.cfg").write_text(BOOT)
    for path in (first("/usr/lib/ISOLINUX/isolinux.bin"), first("/usr/lib/syslinux/modules/bios/ldlinux.c32")):
        (disc / path.name).write_bytes(path.read_bytes())
    subprocess.run([kernel.find_program("genisoimage"), "-quiet", "-o", scratch / "disc.iso", "-b", "isolinux.bin",
                    "-c", "boot.cat", "-no-emul-boot", "-boot-load-size", "4", "-boot-info-table", disc], check=True)
    (scratch / "configuration").write_text(configuration)
    (scratch / "go").write_text("c\n")  # Debian's has a debugger, which waits for a word
    # It draws its screen on a terminal, which nobody looks at.
    screen, terminal = pty.openpty()
    with subprocess.Popen([bochs, "-q", "-f", scratch / "configuration", "-rc", scratch / "go"], cwd=scratch,
                          stdin=terminal, stdout=terminal, stderr=terminal, env={**os.environ, "TERM": "linux"},
                          preexec_fn=boot.die_with_parent) as running:
        os.close(terminal)
        try:
            late = not ends(running, screen, scratch)
        finally:
            running.kill()
            os.close(screen)
    return said(scratch / "serial"), late, said(scratch / "log")


def said(path):
    return path.read_text(errors="replace").replace("\r", "") if path.exists() else ""


def ends(running, screen, scratch):
    """Whether the machine has switched itself off within its limits."""
    begun = False
    while running.poll() is None:
        if select.select([screen], [], [], 0.5)[0]:
            try:
                os.read(screen, 65536)
            except OSError:  # the other end is closed
                time.sleep(0.1)
        passed = time.monotonic() - STARTED
        if passed > BEGIN_LIMIT and not begun:
            begun = "BEGIN" in said(scratch / "serial")
            if not begun:
                return False
        if passed > LIMIT:
            return False
    return True


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    build = pathlib.Path(sys.argv[1]).resolve()
    program = build / "tests" / sys.argv[2]
    if not (build / "lib/warren/libwarren-counts.so").exists():
        print("skipped: DynamoRIO isn't there; analyser/dynamorio/build builds it")
        return SKIPPED
    command = " ".join([f"{build}/bin/warren locality record --mode counts -o recording --", str(program),
                        *sys.argv[3:]])
    with tempfile.TemporaryDirectory(prefix="warren-wide.") as folder:
        scratch = pathlib.Path(folder)
        try:
            answer, late, log = run(scratch, first_files(build, program, command))
        except kernel.Missing as reason:
            print(f"skipped: {reason}")
            return SKIPPED
        parts = re.search(r"^BEGIN\n(.*)^STATUS (\d+)\n(.*)^END$", answer, re.S | re.M)
        if not parts or parts[2] != "0":
            print(f"{'too late' if late else 'ended'}; the machine said: {answer[-3000:]}\nBochs said: {log[-1000:]}")
            return 124 if late else 1
        with tarfile.open(fileobj=io.BytesIO(base64.b64decode(parts[3]))) as tar:
            tar.extractall(scratch)
        if os.environ.get("WARREN_KEEP"):
            subprocess.run(["cp", "-r", scratch / "recording", scratch / "output", os.environ["WARREN_KEEP"]], check=True)
        return subprocess.run([sys.executable, HERE / "counts.py", build, "recorded", sys.argv[2],
                               scratch / "recording", scratch / "output"], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
