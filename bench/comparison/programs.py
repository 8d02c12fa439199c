"""Whole programs of others: how each is built, run and checked.

Their sources are not part of Warren. A program is found by its folder under --sources, which is a
copy of the repository that `source` names.
"""

import math
import re
from dataclasses import dataclass, field, replace
from typing import Callable


def grid(ranks):
    """Three factors of a number of ranks, as near to each other as can be; the largest first."""
    shapes = [(a, b, ranks // (a * b)) for a in range(1, ranks + 1) if ranks % a == 0
              for b in range(1, ranks // a + 1) if ranks // a % b == 0]
    return sorted(min(shapes, key=lambda shape: max(shape) - min(shape)), reverse=True)


def is_cube(ranks):
    return round(ranks ** (1 / 3)) ** 3 == ranks


def is_power_of_two(ranks):
    return ranks & (ranks - 1) == 0


def is_square(ranks):
    return math.isqrt(ranks) ** 2 == ranks


def smaller_than(pattern, limit):
    """A check: the number that the pattern finds is smaller than the limit, and there is one."""
    def check(text):
        found = re.search(pattern, text)
        return found is not None and abs(float(found.group(1))) < limit
    return check


def says(pattern):
    return lambda text: re.search(pattern, text) is not None


@dataclass
class Program:
    name: str
    source: str  # the public repository; "./…": a folder of Warren's own; "": none is needed
    folder: str  # where it is built, below its own folder
    build: list  # shell commands; {cc}, {cxx}, {fc}: MPI compilers; {warren}: the repository
    binary: str  # below `folder`
    arguments: Callable  # ranks -> list
    check: Callable  # output -> whether the program says that its result is right
    fits: Callable = lambda ranks: True
    same_problem: bool = True  # whatever the number of ranks; else each rank has as much to do
    environment: dict = field(default_factory=dict)
    result_files: str = ""  # files in the working folder whose text belongs to the output
    kinds: tuple = ("abi", "openmpi")  # the binaries that can be made of it
    fortran: bool = False  # needs {fc}; runs on Warren only
    processes_only: bool = False  # its ranks can't be threads or fibres
    folder_name: str = ""  # where it is built, if several share it; else by the source or the name
    threads: int = 0  # OpenMP threads of each rank; 0: the program has none
    packages: list = field(default_factory=list)  # Debian's, with the program `binary` in them
    inputs: list = field(default_factory=list)  # its files, copied to where `build` runs

    @property
    def base_name(self):
        """Without the number of threads."""
        return self.name.partition("/")[0]


def with_threads(program, threads):
    return replace(program, name=f"{program.name}/{threads}", threads=threads,
                   environment={**program.environment, "OMP_NUM_THREADS": str(threads)})


def _comd(ranks):
    sides = grid(ranks)
    return [*(word for axis, side in zip("ijk", sides) for word in (f"-{axis}", str(side))),
            "-x", "28", "-y", "28", "-z", "28", "-N", "40", "-n", "20"]


def _three_sides(points, ranks):
    """Points a side of each rank: `points` a side in all, or the next number that ranks can share."""
    return [str(math.ceil(points / side)) for side in grid(ranks)]


def _amg(ranks):
    return ["-problem", "1", "-P", *map(str, grid(ranks)), "-n", *_three_sides(48, ranks)]


def _hypre(ranks):
    return ["-P", *map(str, grid(ranks)), "-n", "64", "64", "64", "-solver", "1", "-rlx", "18"]


_LULESH = Program(
    "LULESH", "LLNL/LULESH", ".",
    ["make CXX='{cxx} -DUSE_MPI=1' CXXFLAGS='-O3 -I. -w' LDFLAGS=-O3"], "lulesh2.0",
    lambda ranks: ["-s", "12", "-i", "100"],
    smaller_than(r"MaxRelDiff\s*=\s*(\S+)", 1e-6), fits=is_cube, same_problem=False)
_MINIFE = Program(
    "miniFE", "Mantevo/miniFE", "ref/src",
    ["make CXX='{cxx}' CC='{cc}' CFLAGS=-O3"], "miniFE.x",
    lambda ranks: ["nx=40", "ny=40", "nz=40", "verify_solution=1"],
    smaller_than(r"Final Resid Norm: (\S+)", 1e-6))

APPLICATIONS = [
    _MINIFE,
    Program("CoMD", "ECP-copa/CoMD", "src-mpi",
            ["cp Makefile.vanilla Makefile", "make CC='{cc}' OPTFLAGS=-O3"], "../bin/CoMD-mpi", _comd,
            smaller_than(r"eFinal/eInitial\s*:\s*(\S+)", 1.01)),
    Program("HPCG", "hpcg-benchmark/hpcg", ".",
            ["mkdir made", "cd made && ../configure Linux_MPI",
             "cd made && make arch=Linux_MPI CXX='{cxx}' LINKER='{cxx}'"], "made/bin/xhpcg",
            lambda ranks: ["--nx=16", "--ny=16", "--nz=16", "--rt=1"],
            says(r"HPCG result is VALID"), same_problem=False, result_files="HPCG-Benchmark*.txt"),
    Program("AMG", "LLNL/AMG", ".",
            ["make CC='{cc}' INCLUDE_CFLAGS='-O2 -w -DTIMER_USE_MPI -DHYPRE_USING_PERSISTENT_COMM'"
             " INCLUDE_LFLAGS=-lm"], "test/amg", _amg,
            smaller_than(r"Final Relative Residual Norm = (\S+)", 1e-7)),
    _LULESH,
    Program("hypre", "hypre-space/hypre", "src",
            ["./configure --disable-fortran CC='{cc}' CXX='{cxx}' CFLAGS='-O2 -w' CXXFLAGS='-O2 -w'",
             "make -j2", "make -C test ij"], "test/ij", _hypre,
            smaller_than(r"Final Relative Residual Norm = (\S+)", 1e-7)),
    Program("Graph500", "graph500/graph500", "src",
            ["make MPICC='{cc} -fcommon -w' graph500_reference_bfs"], "graph500_reference_bfs",
            lambda ranks: ["12", "8"],
            lambda text: "bfs  harmonic_mean_TEPS" in text and "alidation failed" not in text,
            fits=is_power_of_two),
]

# Ranks that are hybrid: OpenMP threads in each. `--threads` makes one program for each number.
HYBRID = [
    replace(_MINIFE, name="miniFE-omp", folder="openmp/src",
            build=["make CXX='{cxx}' CC='{cc}' CFLAGS='-O3 -fopenmp'"], threads=1),
    replace(_LULESH, name="LULESH-omp",
            build=["make CXX='{cxx} -DUSE_MPI=1' CXXFLAGS='-O3 -I. -w -fopenmp' LDFLAGS='-O3 -fopenmp'"],
            threads=1),
    # Warren's own example.
    Program("advection", "./examples/advection", ".",
            ["gfortran -c -O2 -fopenmp -fPIE kernel.f90 -o kernel.o",
             "{cxx} -std=c++20 -O2 -fopenmp -I{warren}/include main.cpp grid.cpp checkpoint.cpp"
             " kernel.o -o advection -lgfortran"], "advection",
            lambda ranks: ["--points", "256,64,64", "--steps", "40"],
            says(r"error \S+ \(at most"), threads=1),
]
