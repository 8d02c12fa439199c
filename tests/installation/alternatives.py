#!/usr/bin/env python3
"""The packages of Warren, Open MPI and MPICH register their alternatives beside each other in any order, and what
is left after each removal is the one of the highest priority.

    alternatives.py SOURCE WORK

Warren's scripts run as they are packed, with an update-alternatives that has WORK as its root.
"""
import itertools
import os
import pathlib
import re
import shutil
import subprocess
import sys

source, work = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
real = shutil.which("update-alternatives")
if real is None or "--root" not in subprocess.run([real, "--help"], capture_output=True, text=True).stdout:
    print("there is no update-alternatives with --root")
    sys.exit(77)
M = "x86_64-linux-gnu"
LIBRARIES = f"/usr/lib/{M}"
SLAVES = ("mpic++", "mpicxx", "mpiCC", "mpifort", "mpif77", "mpif90")
failures = []


def group(link, name, path, priority, slaves):
    words = [real, "--root", str(work), "--install", link, name, path, str(priority)]
    for slave_link, slave_path in slaves:
        words += ["--slave", slave_link, pathlib.Path(slave_link).name + (f"-{M}" if M in slave_link else ""), slave_path]
    return words, [real, "--root", str(work), "--remove", name, path]


def debian(name, priority, include):
    """What Debian's packages of another MPI register and take away: [(install, remove)]."""
    return [group("/usr/bin/mpirun", "mpirun", f"/usr/bin/mpirun.{name}", priority, [("/usr/bin/mpiexec", f"/usr/bin/mpiexec.{name}")]),
            group("/usr/bin/mpicc", "mpi", f"/usr/bin/mpicc.{name}", priority,
                  [(f"/usr/bin/{slave}", f"/usr/bin/{slave}.{name}") for slave in SLAVES]),
            group(f"/usr/include/{M}/mpi", f"mpi-{M}", include, priority,
                  [(f"{LIBRARIES}/libmpi.so", f"{LIBRARIES}/{name}/libmpi.so")])]


def script(name):
    """A maintainer script as packaging/debian/build.sh packs it."""
    path = work / name
    path.write_text((source / "packaging/debian" / name).read_text().replace("@MULTIARCH@", M))
    return path


packed = re.findall(r"warren/debian/(\*\.\w+)", (source / "packaging/debian/build.sh").read_text())
for path in (source / "packaging/debian").glob("warren*.p*"):
    if "@MULTIARCH@" in path.read_text() and not any(path.match(pattern) for pattern in packed):
        failures.append(f"packaging/debian/build.sh leaves @MULTIARCH@ in {path.name}")


def run(words, what):
    done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, "PATH": f"{work}/tools:{os.environ['PATH']}"})
    if done.returncode != 0:
        failures.append(f"{what}: {' '.join(map(str, words))}: {done.stderr.strip()}")


INCLUDE = {"openmpi": f"{LIBRARIES}/openmpi/include", "mpich": f"/usr/include/{M}/mpich", "warren": f"{LIBRARIES}/warren/include"}
others = {"openmpi": debian("openmpi", 50, INCLUDE["openmpi"]), "mpich": debian("mpich", 40, INCLUDE["mpich"])}


def fresh_root():
    shutil.rmtree(work, ignore_errors=True)
    (work / "tools").mkdir(parents=True)
    tool = work / "tools/update-alternatives"
    tool.write_text(f'#!/bin/sh\nexec {real} --root "{work}" "$@"\n')
    tool.chmod(0o755)
    for folder in ("etc/alternatives", "var/lib/dpkg/alternatives", "var/log", "usr/bin", f"usr/include/{M}",
                   f"usr/lib/{M}/openmpi", f"usr/lib/{M}/mpich"):
        (work / folder).mkdir(parents=True, exist_ok=True)
    for name, include in INCLUDE.items():
        (work / include.lstrip("/")).mkdir(parents=True)
        (work / f"usr/lib/{M}/{name}/libmpi.so").touch()
        for program in ("mpirun", "mpiexec", "mpicc", *SLAVES):
            (work / f"usr/bin/{program}.{name}").touch()


def change(name, install, order):
    if name == "warren":
        for package in ("warren", "warren-dev"):
            kind, word = ("postinst", "configure") if install else ("prerm", "remove")
            run(["sh", script(f"{package}.{kind}"), word], order)
    else:
        for words in others[name]:
            run(words[0 if install else 1], order)


def target(link):
    """Where a link leads to by way of /etc/alternatives, or None."""
    path = work / link.lstrip("/")
    return os.readlink(work / os.readlink(path).lstrip("/")) if path.is_symlink() else None


def expect(owner, order):
    for link, path in (("/usr/bin/mpirun", "/usr/bin/mpirun."), ("/usr/bin/mpicc", "/usr/bin/mpicc."),
                       ("/usr/bin/mpif90", "/usr/bin/mpif90."), (f"/usr/include/{M}/mpi", None)):
        wanted = None if owner is None else INCLUDE[owner] if path is None else path + owner
        if target(link) != wanted:
            failures.append(f"{order}: {link} leads to {target(link)}, not to {wanted}")


for order in itertools.permutations(("openmpi", "mpich", "warren")):
    fresh_root()
    for count, name in enumerate(order, 1):
        change(name, True, order)
        expect(next(one for one in INCLUDE if one in order[:count]), order)
    change("warren", True, order)  # configured again, as an upgrade does
    left = list(order)
    for name in order:
        change(name, False, order)
        left.remove(name)
        expect(next((one for one in INCLUDE if one in left), None), order)

if failures:
    sys.exit("\n".join(failures[:20]))
