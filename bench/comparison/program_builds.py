"""Builds the programs of comparison/programs.py, once for each kind of binary, and finds packaged ones."""

import os
import shutil
import subprocess
from pathlib import Path

from . import packaged

REPOSITORY = Path(__file__).resolve().parent.parent.parent


def _wrapper(path, compiler, compile_flags, link_flags):
    path.write_text(f"#!/bin/sh\ncase \" $* \" in *' -c '*) link= ;; *) link=\"{link_flags}\" ;; esac\n"
                    f"exec {compiler} {compile_flags} \"$@\" $link\n", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def compilers(kind, found, out):
    """{"cc", "cxx", "fc"}: MPI compilers for a kind of binaries; those of the standard ABI name no library's folder."""
    prefix = next(library.prefix for library in found if library.binaries == kind)
    if kind == "openmpi":
        return {"cc": f"{prefix}/bin/mpicc", "cxx": f"{prefix}/bin/mpicxx", "fc": None}
    link = f"-L{prefix}/lib -l:libmpi_abi.so.1"
    result = {key: _wrapper(out / f"{kind}-{key}", compiler, f"-DMPI_ABI -I{prefix}/include", link)
              for key, compiler in (("cc", "cc"), ("cxx", "c++"))}
    # The standard ABI has no symbols for Fortran, so its programs run on the library of their compiler.
    fortran = prefix / "bin/mpifort"
    return {**result, "fc": str(fortran) if fortran.exists() else None}


def _run(commands, values, folder, environment=None):
    """None, or why a command failed."""
    for command in commands:
        done = subprocess.run(command.format(**values), shell=True, cwd=folder, capture_output=True,
                              text=True, errors="replace", timeout=1800, check=False,
                              env={**os.environ, **(environment or {})})
        if done.returncode != 0:
            return f"does not build: {(done.stderr.strip() or done.stdout.strip())[-300:]}"
    return None


def _source(program, sources):
    if program.source.startswith("./"):
        return REPOSITORY / program.source
    return sources / program.source.rpartition("/")[2]


def build(program, kind, tools, options):
    """The binary's path, or (None, why)."""
    if program.packages:
        return _find_packaged(program, options)
    if program.fortran and not tools["fc"]:
        return None, "needs Warren's mpifort"
    tree = options.out / kind / (program.folder_name or program.base_name)
    done = tree / f"built-{program.base_name}"
    binary = Path(os.path.normpath(tree / program.folder / program.binary))
    if done.exists() and binary.exists():
        return binary, None
    if not tree.exists() and program.source:
        source = _source(program, options.sources)
        if not source.is_dir():
            return None, f"{source} isn't there; it is a copy of {program.source}"
        shutil.copytree(source, tree, symlinks=True)
    (tree / program.folder).mkdir(parents=True, exist_ok=True)
    values = {**tools, "fc": tools["fc"] or "false", "warren": REPOSITORY, "is_abi": int(kind == "abi")}
    why = _run(program.build, values, tree / program.folder)
    if why:
        return None, why
    done.touch()
    return binary, None


def _find_packaged(program, options):
    """A package's program, with its input prepared in the folder of its name."""
    try:
        root = packaged.unpack(options.out / "packages", program.packages)
    except (OSError, subprocess.CalledProcessError) as error:
        return None, f"the packages {' '.join(program.packages)} can't be had: {error}"
    binary = root / program.binary
    if not binary.exists():
        return None, f"apt-get download gives no {program.binary}"
    folder = options.out / "inputs" / program.name
    if not folder.exists() and program.build:
        folder.mkdir(parents=True)
        for name in program.inputs:
            text = (packaged.PACKAGES / name).read_text(encoding="utf-8")
            (folder / name).write_text(text.replace(packaged.ROOT, str(root)), encoding="utf-8")
        launch = f"{options.warren}/bin/mpiexec -n 1"
        why = _run(program.build, {"launch": launch, "binary": binary}, folder,
                   packaged.environment(program, root))
        if why:
            shutil.rmtree(folder)
            return None, why
    return binary, None
