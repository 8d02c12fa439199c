#!/usr/bin/env python3
"""What the recipes of packaging/ say of Warren is so: its version, its options, what it needs.

    recipes.py TOP
"""
import ast
import pathlib
import re
import sys
import types

top = pathlib.Path(sys.argv[1])
failures = []


def text(name):
    return (top / name).read_text(encoding="utf-8")


def expect(what, holds):
    if not holds:
        failures.append(what)


cmake = "\n".join(path.read_text(encoding="utf-8") for path in top.rglob("CMakeLists.txt") if "build" not in path.parts)
header = text("include/warren/version.h")
version = ".".join(re.search(rf"WARREN_VERSION_{part} (\d+)", header)[1] for part in ("MAJOR", "MINOR", "PATCH"))
needed = {"cmake": re.search(r"cmake_minimum_required\(VERSION ([\d.]+)", cmake)[1],
          "hwloc": re.search(r"hwloc>=([\d.]+)", cmake)[1]}
options = set(re.findall(r"^\s*(?:set|option|find_program|find_path)\((\w+)", cmake, re.MULTILINE))
targets = set(re.findall(r"add_custom_target\((\w+)", cmake))
libfabric = set()

spack_recipe = "packaging/spack/spack_repo/warren/packages/warren/package.py"
conda_recipe = "packaging/conda/recipe.yaml"
for recipe, patterns in {
    spack_recipe: {"cmake": r'"cmake@([\d.]+):"', "hwloc": r'"hwloc@([\d.]+):2"', "libfabric": r'"libfabric@([\d.]+):"'},
    conda_recipe: {"cmake": r"cmake >=([\d.]+)", "hwloc": r"libhwloc >=([\d.]+),<3", "libfabric": r"libfabric1? >=([\d.]+)"},
    "packaging/debian/control": {"cmake": r"cmake \(>= ([\d.]+)", "hwloc": r"libhwloc-dev \(>= ([\d.]+)",
                                 "libfabric": r"libfabric-dev \(>= ([\d.]+)"},
}.items():
    for library, pattern in patterns.items():
        found = set(re.findall(pattern, text(recipe)))
        libfabric |= found if library == "libfabric" else set()
        expect(f"{recipe}: {library} {found}, CMake wants {needed.get(library)}",
               len(found) == 1 and needed.get(library, *found) in found)
expect(f"the recipes want different libfabrics: {libfabric}", len(libfabric) == 1)
expect(f"{conda_recipe}: not version {version}", f'version: "{version}"' in text(conda_recipe))
expect(f"packaging/debian/changelog: not version {version}", text("packaging/debian/changelog").startswith(f"warren ({version}"))

for recipe, pattern in ((spack_recipe, r'self\.define\("(\w+)"'), ("packaging/conda/build.sh", r"-D(\w+)="),
                        ("packaging/container/Containerfile", r"-D(\w+)="), ("packaging/debian/rules", r"-D(\w+)=")):
    given = set(re.findall(pattern, text(recipe)))
    expect(f"{recipe} gives no options", given)
    expect(f"{recipe}: CMake knows no {given - options}",
           all(name in options or name.startswith("CMAKE_") for name in given))
for recipe, pattern in ((spack_recipe, r'build_targets = \["(\w+)"'), ("packaging/conda/build.sh", r"--target (\w+)"),
                        ("packaging/container/Containerfile", r"--target (?!run)(\w+)"),
                        ("packaging/debian/rules", r"dh_auto_build -- (\w+)")):
    found = re.findall(pattern, text(recipe))
    expect(f"{recipe}: targets {found}; one that makes all that is installed is 'installed'", found == ["installed"])
expect("there is no target 'installed'", "installed" in targets)

quickstart = set(re.search(r"install_packages.sh (g\+\+ .*)", text("quickstart"))[1].split())
container = text("packaging/container/Containerfile")
expect(f"Containerfile: not the packages of quickstart, {quickstart}",
       quickstart == set(re.search(r"\n\s+(g\+\+ gfortran cmake .*?) \\\n", container)[1].split()))
wheel = (top / "packaging/wheel/build.py").read_text(encoding="utf-8")
expect("the wheel has module files", '"share/modulefiles/"' in wheel)

# What needs DynamoRIO is in no package and no wheel, also of a build tree that has it.
counts = text("analyser/counts/CMakeLists.txt")
for name in ("lib/warren/" + re.search(r"OUTPUT_NAME (\S+)", counts)[1] + ".so",
             "lib/" + re.search(r"INSTALL_LIBDIR}/(warren/\w+)", counts)[1]):
    left_out = ast.literal_eval(re.search(r"^LEFT_OUT = (\(.*?\))$", wheel, re.MULTILINE)[1])
    expect(f"the wheel has {name}", any(f"{name}/".startswith(one) for one in left_out))
    expect(f"packaging/debian/not-installed lacks {name}",
           f"usr/lib/*/warren/{name}" in text("packaging/debian/not-installed").splitlines())

# The site has each document once, and names none that does not exist.
named = re.findall(r"^ +- (?:\w+: )?(\S+\.md)$", text("packaging/site/mkdocs.yml"), re.MULTILINE)
made = {"index.md", "compatibility.md", "pictures.md"}
documents = {path.relative_to(top).as_posix() for pattern in ("docs/**/*.md", "analyser/docs/*.md") for path in top.glob(pattern)}
documents |= {"CONTRIBUTING.md", "bench/README.md", "abi/README.md"}
expect(f"mkdocs.yml: {sorted(documents ^ (set(named) - made))} are there or in nav only, or twice",
       sorted(named) == sorted(documents | made))
sys.dont_write_bytecode = True
sys.path.insert(0, str(top / "packaging/site"))
import compatibility  # noqa: E402

rows = "\n".join(compatibility.page(top / "packaging/site/compatibility.tsv"))
tested = set(re.search(r"foreach\(program ([^)]*)\)", text("tests/packages/CMakeLists.txt"))[1].split())
expect(f"compatibility.py knows {set(compatibility.TITLES) ^ tested} less or more than tests/packages", set(compatibility.TITLES) == tested)
expect("compatibility.tsv lacks programs", len(re.findall(r"^\| .* (?:passed|failed|not run) \|$", rows, re.MULTILINE)) == len(tested))

# The recipe of Spack, with stand-ins for what Spack brings: what it tells CMake and its users.
said = []


class Stub:
    def __init__(self, *words, **more):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *words):
        pass


class CMakePackage:
    prefix = types.SimpleNamespace(bin="/warren/bin")

    def define(self, name, value):
        joined = ";".join(value) if isinstance(value, list) else value
        return f"-D{name}={joined}"


class Spec(dict):
    def satisfies(self, what):
        return what in ("+fortran",)


tree = ast.parse(text(spack_recipe))
scope = {name: Stub for name in ("license", "version", "variant", "depends_on", "when", "provides", "requires", "conflicts",
                                 "EnvironmentModifications")}
scope |= {"Spec": Spec, "join_path": lambda *parts: "/".join(parts),
          "filter_compiler_wrappers": lambda *names, **more: said.append(names), "__name__": "recipe"}
sys.modules["spack"] = types.ModuleType("spack")
sys.modules["spack.package"] = types.ModuleType("spack.package")
vars(sys.modules["spack.package"]).update({**scope, "__all__": [name for name in scope if name != "__name__"]})
for name in ("spack_repo", "spack_repo.builtin", "spack_repo.builtin.build_systems"):
    sys.modules[name] = types.ModuleType(name)
system = sys.modules["spack_repo.builtin.build_systems.cmake"] = types.ModuleType("cmake")
system.CMakePackage, system.generator = CMakePackage, lambda *names: said.append(names)
exec(compile(tree, spack_recipe, "exec"), scope)
package = scope["Warren"]()
package.spec = Spec({name: types.SimpleNamespace(prefix=types.SimpleNamespace(lib=f"/{name}/lib", include=f"/{name}/include"))
                     for name in ("hwloc", "libfabric")})
arguments = package.cmake_args()
expect(f"Spack's arguments: {arguments}", "-DWARREN_LOAD_PATH=/hwloc/lib;/libfabric/lib" in arguments)
wrappers = set(re.search(r"foreach\(name (mpicc [^)]*)\)\s*install\(PROGRAMS", cmake)[1].split())
expect(f"Spack filters {said}, not {wrappers}", any(set(names) == wrappers for names in said))
package.setup_dependent_package(None, None)
expect("Spack's mpifc", package.spec.mpifc == "/warren/bin/mpif90")

if failures:
    sys.exit("\n".join(failures))
