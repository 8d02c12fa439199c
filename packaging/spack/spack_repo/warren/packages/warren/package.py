# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

from spack_repo.builtin.build_systems.cmake import CMakePackage, generator

from spack.package import *


class Warren(CMakePackage):
    """MPI library for many-core nodes with the MPI 5.0 standard ABI. The ranks of a node share one
    copy of what they have in common. Ranks can be processes, threads or user-level threads."""

    homepage = "https://warren-mpi.invalid/"
    git = "https://warren-mpi.invalid/warren.git"

    tags = ["mpi"]

    license("Apache-2.0 WITH LLVM-exception")

    version("main", branch="main")

    variant("fortran", default=True, description="Compile the modules mpi and mpi_f08")
    variant("analyser", default=False, description="Python packages of the locality reports")

    generator("ninja")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("fortran", type="build", when="+fortran")
    depends_on("cmake@3.22:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("python@3.9:", type="build")
    # Both are loaded at run time, from the folders in WARREN_LOAD_PATH.
    depends_on("hwloc@2.9:2", type=("build", "link", "run"))
    depends_on("libfabric@1.17:", type=("build", "link", "run"))
    with when("+analyser"):
        depends_on("python@3.9:", type="run")
        depends_on("py-numpy", type="run")

    provides("mpi@:5.0")

    requires("target=x86_64:", msg="images and fibres are written for x86-64")
    requires("platform=linux", msg="Warren uses futexes and memory files of Linux")
    conflicts("%gcc@:11", msg="C++20 as gcc 12 and clang 14 have it")
    conflicts("%clang@:13", msg="C++20 as gcc 12 and clang 14 have it")

    # Programs call the compiler itself by mpicc, not Spack's wrapper of the build.
    filter_compiler_wrappers(
        "mpicc", "mpicxx", "mpic++", "mpifort", "mpif90", "mpif77", relative_root="bin"
    )

    # The products without benchmarks and examples.
    build_targets = ["installed"]

    def cmake_args(self):
        folders = [self.spec[name].prefix.lib for name in ("hwloc", "libfabric")]
        return [
            self.define("WARREN_TESTS", False),
            self.define("CMAKE_INSTALL_LIBDIR", "lib"),
            self.define("WARREN_LOAD_PATH", folders),
            self.define("LIBFABRIC_INCLUDE", self.spec["libfabric"].prefix.include),
        ] + ([] if self.spec.satisfies("+fortran") else [self.define("WARREN_FORTRAN", "")])

    def setup_run_environment(self, env: EnvironmentModifications) -> None:
        for variable, wrapper in (
            ("MPICC", "mpicc"),
            ("MPICXX", "mpicxx"),
            ("MPIF77", "mpif77"),
            ("MPIF90", "mpif90"),
            ("MPIFC", "mpifort"),
        ):
            env.set(variable, join_path(self.prefix.bin, wrapper))

    def setup_dependent_build_environment(
        self, env: EnvironmentModifications, dependent_spec: Spec
    ) -> None:
        module = dependent_spec.package.module
        for variable, compiler in (
            ("WARREN_CC", "spack_cc"),
            ("WARREN_CXX", "spack_cxx"),
            ("WARREN_FC", "spack_fc"),
        ):
            if hasattr(module, compiler):
                env.set(variable, getattr(module, compiler))

    def setup_dependent_package(self, module, dependent_spec):
        self.spec.mpicc = join_path(self.prefix.bin, "mpicc")
        self.spec.mpicxx = join_path(self.prefix.bin, "mpicxx")
        if self.spec.satisfies("+fortran"):
            self.spec.mpifc = join_path(self.prefix.bin, "mpif90")
            self.spec.mpif77 = join_path(self.prefix.bin, "mpif77")
