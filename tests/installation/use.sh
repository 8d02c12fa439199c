#!/bin/sh
# Uses a Warren at a prefix (a build tree, or an installation) as other people's projects do:
# by CMake's find_package(MPI) and find_package(warren), by mpicc and mpicxx, by pkg-config; each result runs on 3 ranks.
#     use.sh PREFIX LIBRARY_FOLDER WORK_FOLDER
set -eu
prefix=$1
library=$prefix/$2
work=$3
project=$(dirname "$(readlink -f "$0")")/project
rm -rf "$work"
mkdir -p "$work"

echo "== wrappers"
for flags in -show -showme -showme:compile -showme:link -compile_info -link_info; do
    "$prefix/bin/mpicc" $flags > "$work/flags"
    test -s "$work/flags"
done
"$prefix/bin/mpicc" -O1 "$project/sum.c" -o "$work/wrapped_c"
"$prefix/bin/mpicxx" -c "$project/sum.cpp" -o "$work/sum.o"
"$prefix/bin/mpicxx" "$work/sum.o" -o "$work/wrapped_cxx"
for program in wrapped_c wrapped_cxx; do
    "$prefix/bin/mpiexec" -n 3 --timeout 60 "$work/$program"
done
WARREN_CC=false
export WARREN_CC
if "$prefix/bin/mpicc" -c "$project/sum.c" -o "$work/never.o"; then
    echo "WARREN_CC did not choose the compiler" >&2
    exit 1
fi
unset WARREN_CC

if [ -z "$("$prefix/bin/mpicc" -showme:compile | grep -e -fsanitize)" ]; then
    echo "== ranks that are threads"
    "$prefix/bin/mpiexec" --ranks threads -n 3 --timeout 60 "$work/wrapped_cxx"
fi

echo "== pkg-config"
PKG_CONFIG_PATH=$library/pkgconfig
export PKG_CONFIG_PATH
sanitizer=$("$prefix/bin/mpicc" -showme:compile | tr ' ' '\n' | grep -e -fsanitize || true)
# shellcheck disable=SC2046 # the flags are words
cc $sanitizer "$project/sum.c" -o "$work/by_pkg_config" $(pkg-config --cflags --libs warren-mpi)
"$prefix/bin/mpiexec" -n 3 --timeout 60 "$work/by_pkg_config"

echo "== find_package(MPI)"
# CMake takes a sanitizer from the wrappers for compiling only.
LDFLAGS=$sanitizer PATH=$prefix/bin:$PATH cmake -G Ninja -S "$project" -B "$work/build" > "$work/configure.log" || {
    cat "$work/configure.log"
    exit 1
}
grep "MPI_C_VERSION 5.0, mpiexec $prefix/bin/mpiexec" "$work/configure.log" || {
    cat "$work/configure.log"
    exit 1
}
cmake --build "$work/build"
ctest --test-dir "$work/build" --output-on-failure

# $1: the folder that it must be found in; the rest: how CMake learns of it
use_package() {
    expected=$1
    shift
    rm -rf "$work/package"
    "$@" cmake -G Ninja -S "$project/../package" -B "$work/package" > "$work/package.log" || {
        cat "$work/package.log"
        exit 1
    }
    grep "warren [0-9.]* in $expected\$" "$work/package.log" || {
        cat "$work/package.log"
        exit 1
    }
    cmake --build "$work/package"
    ctest --test-dir "$work/package" --output-on-failure
}
echo "== find_package(warren)"
use_package "$library/cmake/warren" env PATH="$prefix/bin:$PATH"
# Debian's packages have a link to it where CMake looks.
mkdir -p "$work/linked/lib/cmake"
ln -s "$library/cmake/warren" "$work/linked/lib/cmake/warren"
use_package "$work/linked/lib/cmake/warren" env CMAKE_PREFIX_PATH="$work/linked"

echo "== the warren command"
"$prefix/bin/warren" version
"$prefix/bin/warren" node

if [ -z "$sanitizer" ] && command -v python3 > "$work/python"; then
    echo "== Python"
    PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$library/python3 python3 -c '
from warren.memory import Memory
from warren.topology import Topology
with Topology() as node, Memory() as memory:
    assert {one.os_index for one in node.objects("NUMANode")} >= set(memory.targets())
    print(node.count("PU"), "processors")'
fi
