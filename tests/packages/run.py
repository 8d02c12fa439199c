#!/usr/bin/env python3
"""Runs programs of Debian's packages, which were built for other MPI libraries, under Warren's mpiexec.

    run.py FOLDER MPIEXEC PROGRAM KIND      KIND: processes, threads or fibres

Packages are downloaded to FOLDER and unpacked there (apt-get download, dpkg -x), with what they depend on
but the system's core; nothing is installed. Exit code 77: the packages can't be had, so nothing was tested.
"""

import fcntl
import os
import pathlib
import re
import subprocess
import sys
import shutil
from dataclasses import dataclass, field

HERE = pathlib.Path(__file__).resolve().parent
SKIPPED = 77
LIBRARIES = "usr/lib/x86_64-linux-gnu"
# Of the system that runs this, or not needed by what runs.
CORE = re.compile(
    r"(libc6|libc-bin|libcrypt1|libgcc-s1|libstdc\+\+6|debconf|cdebconf|dpkg|perl|python3|openssh|libpam|"
    r"init-system-helpers|adduser|passwd|base-files|tar$|openmpi-bin|openmpi-common|hwloc|.*-dev$|gcc|cpp|"
    r"gfortran|flang|binutils|fonts?|ttf|xfonts|x11-common|mpich$|mpi-default|mime-support|media-types|mailcap|"
    r"install-info|readline-common|lsb-base|sysvinit|ibverbs-providers|rpcsvc|ocl-icd|zlib1g)")


@dataclass
class Program:
    packages: list
    command: list  # the program's path in the packages comes first
    expected: str  # a regular expression, of the output
    ranks: int = 4
    folder: str = ""  # in the packages: where it runs; otherwise in a new folder
    input: str = ""  # in the packages: a file that it reads
    files: list = field(default_factory=list)  # beside this one, that it finds where it runs
    result: str = ""  # the file that it writes there
    prepare: list = field(default_factory=list)  # commands that one rank runs first
    variables: dict = field(default_factory=dict)


# In commands, in variables and in files beside this one.
ROOT = "@ROOT@"


def scalapack(abi, tester, passed):
    return Program(
        ["scalapack-mpi-test", "scalapack-test-common"],
        [f"{LIBRARIES}/scalapack/{abi}-tests/{tester}"],
        rf"{passed} tests completed and passed residual checks",
        folder="usr/share/scalapack",
    )


PROGRAMS = {
    # The last line of the melt: temperature, energy, pressure.
    "lammps": Program(
        ["lammps"], ["usr/bin/lmp", "-in", str(HERE / "in.melt"), "-log", "none"],
        r"250 +1\.6323462 +[-.\d]+ +0 +-2\.2812949 +5\.9762238"),
    "netpipe_openmpi": Program(
        ["netpipe-openmpi"], ["usr/bin/NPopenmpi", "-n", "200", "-u", "1024", "-o", "/dev/null"],
        r"1027 bytes .* Mbps", ranks=2),
    "netpipe_mpich": Program(
        ["netpipe-mpich2"], ["usr/bin/NPmpich2", "-n", "200", "-u", "1024", "-o", "/dev/null"],
        r"1027 bytes .* Mbps", ranks=2),
    "hpcc": Program(
        ["hpcc"], ["usr/bin/hpcc"], r"(?s)tests completed and passed.*Success=1", files=["hpccinf.txt"],
        result="hpccoutf.txt"),
    "mumps": Program(
        ["mumps-test"], ["usr/lib/mumps/dsimpletest"],
        r"Solution is" + "".join(rf"\s+({n}\.0000|{n - 1}\.9999)\d*" for n in range(1, 6)),
        input="usr/lib/mumps/input_simpletest_real"),
    "scalapack_lu_openmpi": scalapack("openmpi", "xdlu", 240),
    "scalapack_lu_mpich": scalapack("mpich", "xdlu", 240),
    "scalapack_qr_openmpi": scalapack("openmpi", "xdqr", 352),
    "scalapack_qr_mpich": scalapack("mpich", "xdqr", 352),
    # (One of them depends on where its arrays lie.)
    "scalapack_eigen_openmpi": scalapack("openmpi", "xdsep", "10[78]"),
    "scalapack_eigen_mpich": scalapack("mpich", "xdsep", "10[78]"),
    # The energy of aluminium in its ground state.
    "elk": Program(
        ["elk-lapw"], ["usr/bin/elk-lapw"], r"-241\.91696\d+\s*$", ranks=2, files=["elk.in"],
        result="TOTENERGY.OUT", variables={"OMP_NUM_THREADS": "1"}),
    # 1,378 molecules of water: the potential energy at the start, and that it comes to the end.
    "gromacs": Program(
        ["gromacs"], ["usr/bin/gmx_mpi", "mdrun", "-ntomp", "1", "-nsteps", "100"],
        r"(?s)Potential.*-2\.998\d+e\+04.*Finished mdrun on rank 0", files=["water.top", "water.mdp"], result="md.log",
        prepare=[["usr/bin/gmx_mpi", "solvate", "-cs", "spc216.gro", "-box", "3.5", "3.5", "3.5", "-o",
                  "conf.gro", "-p", "water.top"],
                 ["usr/bin/gmx_mpi", "grompp", "-f", "water.mdp", "-c", "conf.gro", "-p", "water.top"]],
        variables={"GMXDATA": f"{ROOT}/usr/share/gromacs", "GMXLIB": f"{ROOT}/usr/share/gromacs/top"}),
    "ptscotch": Program(
        ["ptscotch"], ["usr/bin/dgpart", "4", "square.grf", "parts", "-vm"],
        r"Processors 4/4\(1\)\n.*min=36\tmax=36\tavg=36", files=["square.grf"]),
    "phyml": Program(
        ["phyml"], ["usr/lib/phyml/bin/phyml-mpi", "-i", "taxa.phy", "-b", "4", "--r_seed", "1"],
        r"analysis successfully(.|\n)*(\(a.*|\(b.*|\n){4}", files=["taxa.phy"], result="taxa.phy_phyml_boot_trees.txt"),
}


def output_of(*command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout


def closure(packages):
    """The packages and all that they depend on, but the core."""
    listed = output_of(
        "apt-cache", "depends", "--recurse", "--no-recommends", "--no-suggests", "--no-conflicts",
        "--no-breaks", "--no-replaces", "--no-enhances", *packages)
    names = {line for line in listed.splitlines() if re.match(r"[a-z0-9]", line)}
    return sorted(name for name in names if not CORE.match(name))


def unpack(folder, packages):
    """Downloads what FOLDER lacks, and unpacks it."""
    root = folder / "root"
    root.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = folder / "unpacked"
        known = set(done.read_text().split()) if done.exists() else set()
        for name in closure(packages):
            if name in known:
                continue
            before = set(folder.glob("*.deb"))
            # Names of alternatives that this release lacks come to nothing.
            subprocess.run(["apt-get", "download", name], cwd=folder, capture_output=True, check=False)
            for file in set(folder.glob("*.deb")) - before:
                output_of("dpkg", "-x", str(file), str(root))
                file.unlink()
            known.add(name)
            done.write_text("\n".join(sorted(known)))
    return root


def environment(program, root):
    folders = [root / LIBRARIES, *(root / LIBRARIES / name for name in ("blas", "lapack"))]
    variables = dict(os.environ)
    variables["LD_LIBRARY_PATH"] = ":".join(map(str, folders))
    for name, value in program.variables.items():
        variables[name] = value.replace(ROOT, str(root))
    return variables


def run(program, root, mpiexec, place):
    """The output of the program, with the file that it writes, and its exit code."""
    if program.folder:
        place = root / program.folder
    else:
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
    for file in program.files:
        (place / file).write_text((HERE / file).read_text().replace(ROOT, str(root)))

    def started(ranks, command, given):
        return subprocess.run(
            [*mpiexec, "-n", str(ranks), "--timeout", "280", root / command[0], *command[1:]],
            cwd=place, env=environment(program, root), stdin=given, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace", check=False)

    for command in program.prepare:
        ended = started(1, command, subprocess.DEVNULL)
        if ended.returncode != 0:
            return ended.stdout, ended.returncode
    with open(root / program.input if program.input else os.devnull, "rb") as given:
        ended = started(program.ranks, program.command, given)
    written = place / program.result if program.result else None
    more = written.read_text(errors="replace") if written and written.exists() else ""
    return ended.stdout + more, ended.returncode


def main(arguments):
    folder, mpiexec = (pathlib.Path(argument).resolve() for argument in arguments[:2])
    name, kind = arguments[2:]
    program = PROGRAMS[name]
    try:
        root = unpack(folder, program.packages)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"NOT TESTED: {name}: {error}")
        return SKIPPED
    path = root / program.command[0]
    if not path.exists():
        print(f"NOT TESTED: {name}: apt-get download gives no {program.command[0]}")
        return SKIPPED
    output, code = run(program, root, [mpiexec, *([] if kind == "processes" else ["--ranks", kind])],
                       folder / f"{name}.{kind}")
    print(output[-4000:])
    if code != 0 or not re.search(program.expected, output):
        print(f"{name}: exit code {code}; expected: {program.expected}")
        return 1
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 5 or sys.argv[3] not in PROGRAMS:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1:]))
