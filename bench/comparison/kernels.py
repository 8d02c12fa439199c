"""The Parallel Research Kernels and the NAS Parallel Benchmarks, as comparison/programs.py has programs."""

from .programs import Program, is_power_of_two, is_square, says

# Names of one C file each, below MPI1 of the Parallel Research Kernels, with arguments that take two
# ranks about a second.
_KERNELS = {
    # (Its check holds without the compiler's optimisation only, with any library.)
    "AMR": ("AMR/amr", ["10", "1000", "100", "2", "2", "1", "5", "NO_TALK"], {"flags": "-O0"}),
    "Branch": ("Branch/branch", ["400", "10000", "vector_go"], {}),
    "DGEMM": ("DGEMM/dgemm", ["4", "768", "32", "1"], {}),
    "Nstream": ("Nstream/nstream", ["40", "4000000", "0"], {}),
    "PIC": ("PIC-static/pic", ["200", "1000", "400000", "0", "1", "SINUSOIDAL"], {}),
    "Random": ("Random/random", ["16", "20"], {"fits": is_power_of_two}),
    "Reduce": ("Reduce/reduce", ["200", "1000000"], {"same_problem": False}),
    "Sparse": ("Sparse/sparse", ["40", "10", "4"], {"fits": is_power_of_two}),
    "Stencil": ("Stencil/stencil", ["100", "2000"], {}),
    "Global": ("Synch_global/global", ["100000", "1920"], {}),
    "P2P": ("Synch_p2p/p2p", ["50", "2000", "2000"], {}),
    "Transpose": ("Transpose/transpose", ["40", "2048"], {"fits": is_power_of_two}),
}

_DEFINITIONS = ("printf 'MPICC=%s\\nCC=cc\\nDEFAULT_OPT_FLAGS=%s -w\\n'"
                " '{cc}' FLAGS >../../common/make.defs")


def _kernel(name):
    path, arguments, more = _KERNELS[name]
    definitions = _DEFINITIONS.replace("FLAGS >", more.get("flags", "-O3") + " >")
    more = {key: value for key, value in more.items() if key != "flags"}
    folder, _, program = path.rpartition("/")
    return Program(f"PRK-{name}", "ParRes/Kernels", f"MPI1/{folder}",
                   [definitions, f"make {program}"], program, lambda ranks: arguments,
                   says(r"Solution validates"), **more)


# The NAS Parallel Benchmarks 3.4: whether they are Fortran, which numbers of ranks they take. The
# standard ABI has no symbols for Fortran, and the peers' packages have no compiler for it, so those
# in Fortran run on Warren only.
_NAS = {"IS": (False, is_power_of_two), "FT": (True, is_power_of_two), "CG": (True, is_power_of_two),
        "MG": (True, is_power_of_two), "EP": (True, lambda ranks: True),
        "LU": (True, lambda ranks: True), "BT": (True, is_square), "SP": (True, is_square)}

_SETTINGS = ("printf '%s\\n' 'MPIFC={fc}' 'FLINK={fc}' 'MPICC={cc}' 'CLINK={cc}' 'CC=cc' 'BINDIR=../bin'"
             " 'FFLAGS=-O3 -w -fallow-argument-mismatch -fallow-invalid-boz' 'FLINKFLAGS=-O3'"
             " 'CFLAGS=-O3 -w' 'CLINKFLAGS=-O3' 'RAND=randi8' >config/make.def && mkdir -p bin")


def _nas(name):
    fortran, fits = _NAS[name]
    return Program(f"NPB-{name}", "NPB", "NPB3.4-MPI",
                   [_SETTINGS, f"make {name.lower()} CLASS=A"], f"bin/{name.lower()}.A.x",
                   lambda ranks: [], says(r"(?i)verification\s*=\s*successful"), fits=fits,
                   fortran=fortran, kinds=("abi",) if fortran else ("abi", "openmpi"))


KERNELS = [*map(_kernel, _KERNELS), *map(_nas, _NAS)]
