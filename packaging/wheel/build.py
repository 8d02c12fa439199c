#!/usr/bin/env python3
"""Makes the wheel `warren-mpi` from a build tree of the release preset.

    build.py BUILD FOLDER       the wheel's path is printed

`pip install` of the wheel puts mpiexec, mpicc, the libraries of the three ABIs, `warren` and its reports
into the environment's bin, lib, include and libexec. DynamoRIO, which counts accesses, is left out: it is
larger than all else.

The wheel needs glibc only, which its name states. What it holds depends on the build alone: two wheels of
one build are equal, byte by byte. SOURCE_DATE_EPOCH is the date of its files, else 1980-01-01.
"""

import argparse
import base64
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import zipfile

TOP = pathlib.Path(__file__).resolve().parents[2]
NAME = "warren_mpi"
# glibc's own libraries, which every system with the wheel's glibc has.
SYSTEM = {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"}
LEFT_OUT = ("lib/warren/dynamorio/", "lib/warren/libwarren-counts.so", "lib/standard-abi/", "share/modulefiles/")
REPORTS = ("numpy==", "tree-sitter")  # of python/requirements.txt, which is also of a check of the source
MODULES = "lib/python3"  # the folder of the Python modules in an installation
METADATA = """\
Metadata-Version: 2.1
Name: warren-mpi
Version: {version}
Summary: MPI library for many-core nodes, with the MPI-5.0 standard ABI and those of MPICH and Open MPI
License: Apache-2.0 WITH LLVM-exception
Classifier: Operating System :: POSIX :: Linux
Classifier: Topic :: System :: Distributed Computing
Requires-Python: >=3.9
Provides-Extra: analyser
{requirements}Description-Content-Type: text/markdown

{description}"""


class WheelError(Exception):
    """Why there is no wheel."""


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise WheelError(f"{' '.join(map(str, command))} failed: {done.stderr.strip()}")
    return done.stdout


def version():
    header = (TOP / "include/warren/version.h").read_text()
    return ".".join(re.search(rf"#define WARREN_VERSION_{part} (\d+)", header)[1] for part in ("MAJOR", "MINOR", "PATCH"))


def requirements():
    """What the reports need, from the file that pins it for the tests; the wheel asks for that version or a later one."""
    lines = (TOP / "python/requirements.txt").read_text().splitlines()
    pinned = [line for line in lines if line.startswith(REPORTS)]
    return "".join(f'Requires-Dist: {line.split("==")[0]}; extra == "analyser"\n' for line in pinned)


def is_elf(path):
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def needs(path):
    """The libraries that an ELF file needs, and the newest glibc whose symbols it uses, as (2, N)."""
    dynamic = run("readelf", "-dW", path)
    symbols = run("readelf", "-VW", path)
    newest = max((int(minor) for minor in re.findall(r"Name: GLIBC_2\.(\d+)", symbols)), default=17)
    return set(re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)), (2, newest)


def soname(path):
    return re.search(r"\(SONAME\).*\[(.*)\]", run("readelf", "-dW", path))[1]


def replace_link(link):
    """A wheel has no symbolic links. A program's second name is a script. A library's other soname is an empty
    library that needs the real one. The name that linkers look for is a linker script; that of a foreign ABI, which
    programs open, is a library, too."""
    target = link.resolve()
    link.unlink()
    if not is_elf(target) or target.parent.name == "bin":
        link.write_text(f'#!/bin/sh\nexec "$(dirname "$(readlink -f "$0")")/{target.name}" "$@"\n')
        link.chmod(0o755)
    elif link.name.endswith(".so") and link.parent == target.parent and not link.parent.name.endswith("-abi"):
        link.write_text(f"INPUT({soname(target)})\n")
    else:
        where = os.path.relpath(target.parent, link.parent)
        run("cc", "-shared", "-nostdlib", "-o", link, f"-Wl,-soname,{link.name}", "-Wl,--no-as-needed", target,
            f"-Wl,-rpath,$ORIGIN/{where}", "-Wl,--build-id=none", "-x", "c", os.devnull)


def install(build, prefix):
    run("cmake", "--install", build, "--prefix", prefix, "--strip")
    for path in sorted(prefix.rglob("*")):
        name = path.relative_to(prefix).as_posix()
        if name.startswith(LEFT_OUT) or "__pycache__" in name:
            if path.is_symlink() or path.is_file():
                path.unlink()
        elif path.is_symlink():
            replace_link(path)


def check_self_contained(prefix):
    """The tag of the platform, if nothing is needed beyond glibc and what the wheel itself brings."""
    elves = [path for path in prefix.rglob("*") if path.is_file() and is_elf(path)]
    own = {soname(path) for path in elves if ".so" in path.name}
    newest = (2, 17)
    for path in elves:
        needed, glibc = needs(path)
        strangers = needed - own - SYSTEM
        if strangers:
            raise WheelError(f"{path.relative_to(prefix)} needs {', '.join(sorted(strangers))}, which neither the "
                             "wheel nor glibc has")
        newest = max(newest, glibc)
    return f"manylinux_{newest[0]}_{newest[1]}_x86_64"


def record_line(name, data):
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(data)}\n"


def write(prefix, folder):
    release = version()
    tag = f"py3-none-{check_self_contained(prefix)}"
    info = f"{NAME}-{release}.dist-info"
    entries = []
    for path in sorted(path for path in prefix.rglob("*") if path.is_file()):
        mode = 0o755 if path.stat().st_mode & 0o100 else 0o644
        entries.append((f"{NAME}-{release}.data/data/{path.relative_to(prefix).as_posix()}", path.read_bytes(), mode))
    # The modules lie where an installation has them; pip's folder of modules points there.
    entries.append((f"{NAME}.pth", f"../../{pathlib.PurePath(MODULES).name}\n".encode(), 0o644))
    description = (TOP / "README.md").read_text()
    entries.append((f"{info}/LICENSE", (TOP / "LICENSE").read_bytes(), 0o644))
    entries.append((f"{info}/METADATA", METADATA.format(version=release, requirements=requirements(),
                                                         description=description).encode(), 0o644))
    entries.append((f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: warren\nRoot-Is-Purelib: true\n"
                    f"Tag: {tag}\n".encode(), 0o644))
    record = "".join(record_line(name, data) for name, data, _ in entries) + f"{info}/RECORD,,\n"
    entries.append((f"{info}/RECORD", record.encode(), 0o644))
    seconds = max(int(os.environ.get("SOURCE_DATE_EPOCH", "315532800")), 315532800)  # a zip file begins in 1980
    wheel = folder / f"{NAME}-{release}-{tag}.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, data, mode in entries:
            entry = zipfile.ZipInfo(name, time.gmtime(seconds)[:6])
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    return wheel


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    words = parser.parse_args()
    if not (words.build / "cmake_install.cmake").exists():
        raise WheelError(f"{words.build} is no build tree")
    words.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        prefix = pathlib.Path(scratch) / "prefix"
        install(words.build, prefix)
        print(write(prefix, words.folder))


if __name__ == "__main__":
    try:
        main()
    except (WheelError, OSError) as problem:
        sys.exit(f"packaging/wheel/build.py: {problem}")
