#!/bin/sh
# Builds and installs Warren within rattler-build, which sets PREFIX, BUILD_PREFIX, CC, CXX and FC.
set -eu

# CMAKE_ARGS has several words.
# shellcheck disable=SC2086
cmake -G Ninja -S . -B build/conda $CMAKE_ARGS -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_LIBDIR=lib \
    -DWARREN_TESTS=OFF -DWARREN_REPRODUCIBLE=ON -DWARREN_LOAD_PATH="$PREFIX/lib"
cmake --build build/conda --target installed
cmake --install build/conda --prefix "$PREFIX"

# The wrappers name the compiler as it is called in an environment. BUILD_PREFIX ends with the build.
for wrapper in mpicc mpicxx mpic++ mpifort mpif90 mpif77; do
    sed -i "s|$BUILD_PREFIX/bin/||g" "$PREFIX/bin/$wrapper"
done
