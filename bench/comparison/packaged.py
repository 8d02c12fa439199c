"""Programs of Debian's packages, built for Open MPI, and of Python's, as comparison/programs.py has programs.

Warren runs Debian's programs by its library of Open MPI's ABI.
"""

import importlib.util
from pathlib import Path

from .programs import Program, says

REPOSITORY = Path(__file__).resolve().parent.parent.parent
PACKAGES = REPOSITORY / "tests/packages"
ROOT = "@ROOT@"  # in environments: where the packages are unpacked


def unpack(folder, packages):
    """Downloads Debian's packages with all that they need, and unpacks them; returns the root."""
    spec = importlib.util.spec_from_file_location("packages_run", PACKAGES / "run.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.unpack(folder, packages)


def environment(program, root):
    """What the program needs to find its libraries and data in the unpacked packages."""
    libraries = root / "usr/lib/x86_64-linux-gnu"
    paths = [libraries, libraries / "blas", libraries / "lapack"]
    return {"LD_LIBRARY_PATH": ":".join(map(str, paths)),
            **{name: value.replace(ROOT, str(root)) for name, value in program.environment.items()}}


# (Debian's Python can't be an image, so its ranks are processes.)
_MPI4PY = ["python3 -m venv env",
           "MPI4PY_BUILD_MPIABI={is_abi} MPICC='{cc}' env/bin/pip install -q --no-cache-dir"
           " --no-binary=mpi4py mpi4py"]
_WATER = ["water.top", "water.mdp"]
_GMX = "{launch} {binary}"

PACKAGED = [
    # 4,000 atoms in a box: the energy is conserved.
    Program("LAMMPS", "", ".", [], "usr/bin/lmp",
            lambda ranks: ["-in", str(PACKAGES / "in.melt"), "-log", "none"],
            says(r"\n\s*250 +\S+ +\S+ +0 +-2\.28\d+"), kinds=("openmpi",), packages=["lammps"],
            environment={"OMP_NUM_THREADS": "1"}),
    # Some 14,000 molecules of water.
    Program("GROMACS", "", ".",
            [f"{_GMX} solvate -cs spc216.gro -box 7.5 7.5 7.5 -o conf.gro -p water.top",
             f"{_GMX} grompp -f water.mdp -c conf.gro -p water.top -o topol.tpr"], "usr/bin/gmx_mpi",
            lambda ranks: ["mdrun", "-s", "{folder}/topol.tpr", "-ntomp", "1", "-nsteps", "100",
                           "-npme", "0"],
            says(r"(?s)Potential.*Finished mdrun on rank 0"), kinds=("openmpi",),
            packages=["gromacs"], inputs=_WATER, result_files="md.log",
            environment={"GMXDATA": f"{ROOT}/usr/share/gromacs",
                         "GMXLIB": f"{ROOT}/usr/share/gromacs/top"}),
    *(Program(f"mpi4py-{benchmark}", "", ".", _MPI4PY, "env/bin/python",
              lambda ranks, words=(benchmark, *arguments): ["-m", "mpi4py.bench", *words],
              says(expected), fits=fits, processes_only=True, folder_name="mpi4py")
      for benchmark, arguments, expected, fits in [
          ("ringtest", ["-n", "1024", "-s", "10", "-l", "50000"], r"time for \d+ loops = \S+ seconds",
           lambda ranks: True),
          ("pingpong", ["-n", "65536", "-l", "20000", "-p"], r"\n\s*65536 ", lambda ranks: ranks == 2)]),
]
