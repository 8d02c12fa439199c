"""The kernel that the machines boot, and the small file system that it begins with.

Any Linux kernel package of the distribution will do, unpacked in a folder: boot/vmlinuz-* and
lib/modules/*/. Debian's general one has all that is needed (its "cloud" one lacks 9p).
"""

import gzip
import lzma
import os
import pathlib
import re
import shutil
import struct
import subprocess

# What the machine needs to see the host's files, for kernels that have it as modules.
MODULES = ["virtio_pci", "9pnet_virtio", "9p"]


class Missing(Exception):
    """Something is not on this computer without which no machine can be booted."""


def cache_folder():
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return pathlib.Path(cache) / "warren" / "machines"


def find_kernel():
    """The folder of an unpacked kernel package: the one that the environment names, or the newest of
    those that tests/machines/prepare has fetched."""
    named = os.environ.get("WARREN_MACHINE_KERNEL")
    folders = [pathlib.Path(named)] if named else sorted(cache_folder().glob("linux-image-*"))
    for folder in reversed(folders):
        if list(folder.glob("boot/vmlinuz*")):
            return folder
    raise Missing(f"no kernel in {named}" if named else
                  "no kernel to boot; tests/machines/prepare fetches one")


def find_program(*names):
    for name in names:
        found = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
        if found:
            return found
    raise Missing(f"{names[0]} is not installed; tests/machines/prepare does it")


def unpack(data):
    """What a compressed file has, by its first bytes."""
    if data.startswith(b"\xfd7zXZ\0") or data.startswith(b"\x5d\0\0"):
        return lzma.LZMADecompressor().decompress(data)
    if data.startswith(b"\x1f\x8b"):
        return gzip.decompress(data)
    if data.startswith(b"\x28\xb5\x2f\xfd"):
        run = subprocess.run([find_program("zstd"), "-dcq"], input=data, stdout=subprocess.PIPE,
                             check=False)  # complains of what follows the compressed part
        return run.stdout
    return data


def executable_of(kernel_file):
    """The kernel's ELF file, which is compressed within the file that boot loaders take. Unpacking it
    here takes a second; the emulated processor would take ten."""
    data = kernel_file.read_bytes()
    sectors = data[0x1f1] or 4
    offset, length = struct.unpack_from("<II", data, 0x248)  # of the boot protocol since 2.08
    begin = (sectors + 1) * 512 + offset
    executable = unpack(data[begin:begin + length])
    if not executable.startswith(b"\x7fELF"):
        raise Missing(f"{kernel_file}: compressed in a way that is not known here")
    return executable


def modules_of(folder):
    """(name, contents) of the modules in the order of loading."""
    files = {}
    for path in folder.glob("lib/modules/*/kernel/**/*.ko*"):
        files[path.name.split(".ko")[0].replace("-", "_")] = path
    loaded = {}

    def load(name):
        name = name.replace("-", "_")
        if name in loaded or name not in files:
            return  # what is no module is in the kernel
        contents = unpack(files[name].read_bytes())
        needed = re.search(rb"\0depends=([^\0]*)\0", contents)
        for other in needed.group(1).decode().split(",") if needed else []:
            load(other)
        loaded[name] = contents

    for name in MODULES:
        load(name)
    return list(loaded.items())


def archive(files):
    """A cpio archive (form "newc") of {name: (mode, contents)}, as kernels unpack them."""
    data = bytearray()

    def pad():
        data.extend(bytes(-len(data) % 4))

    for number, (name, (mode, contents)) in enumerate([*files.items(), ("TRAILER!!!", (0, b""))], 1):
        path = name.encode() + b"\0"
        fields = [number, mode, 0, 0, 1, 0, len(contents), 0, 0, 0, 0, len(path), 0]
        data.extend(b"070701" + b"".join(b"%08X" % field for field in fields) + path)
        pad()
        data.extend(contents)
        pad()
    return bytes(data)


FOLDER = 0o040755
PROGRAM = 0o100755

# The first process. The host's files become the root folder, read-only; what can be written to is
# /run, and shared memory.
INIT = b"""#!/bin/busybox sh
/bin/busybox mount -t proc none /proc
/bin/busybox mount -t sysfs none /sys
/bin/busybox mount -t devtmpfs none /dev
for module in $(/bin/busybox cat /modules/order); do
    /bin/busybox insmod /modules/$module || echo "$module can't be loaded"
done
/bin/busybox mount -t 9p -o ro,trans=virtio,version=9p2000.L,msize=262144,cache=loose host /host ||
    echo "the host's files can't be mounted"
for folder in proc sys dev; do
    /bin/busybox mount --move /$folder /host/$folder
done
/bin/busybox mkdir -p /host/dev/shm
/bin/busybox mount -t tmpfs none /host/dev/shm
/bin/busybox mount -t tmpfs none /host/run
/bin/busybox cp /command /host/run/command
/bin/busybox ifconfig lo 127.0.0.1
/bin/busybox stty -F /host/dev/ttyS1 raw -echo
echo begun > /host/dev/ttyS2
/bin/busybox chroot /host /bin/sh /run/command < /host/dev/null > /host/dev/ttyS1 2>&1
echo $? > /host/dev/ttyS2
/bin/busybox sleep 0.2 # a serial line is no file: what is written leaves it later
/bin/busybox poweroff -f
"""


def base_files(folder):
    """The files of the first file system but the command."""
    files = {name: (FOLDER, b"") for name in ("bin", "proc", "sys", "dev", "host", "modules")}
    busybox = pathlib.Path(find_program("busybox")).read_bytes()
    if b"/ld-linux" in busybox[:4096]:
        raise Missing("busybox is linked dynamically; tests/machines/prepare installs the static one")
    files["bin/busybox"] = (PROGRAM, busybox)
    modules = modules_of(folder)
    for name, contents in modules:
        files[f"modules/{name}.ko"] = (PROGRAM, contents)
    files["modules/order"] = (PROGRAM, " ".join(f"{name}.ko" for name, _ in modules).encode())
    files["init"] = (PROGRAM, INIT)
    return files


def prepared(scratch):
    """(kernel, first file system) as files, made in `scratch`, a folder that is kept, when they are not
    there or older than what they are made of."""
    folder = find_kernel()
    kernel_file = next(iter(folder.glob("boot/vmlinuz*")))
    scratch.mkdir(parents=True, exist_ok=True)
    kernel = scratch / f"{folder.name}.elf"
    first = scratch / f"{folder.name}.cpio"
    newest = max(kernel_file.stat().st_ctime, pathlib.Path(__file__).stat().st_mtime)
    if not all(file.exists() and file.stat().st_mtime > newest for file in (kernel, first)):
        for file, contents in ((kernel, executable_of(kernel_file)),
                               (first, archive(base_files(folder)))):
            part = file.with_suffix(f".{os.getpid()}")  # others may be about the same
            part.write_bytes(contents)
            os.replace(part, file)
    return kernel, first
