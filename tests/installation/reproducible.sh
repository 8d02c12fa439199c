#!/bin/sh
# With WARREN_REPRODUCIBLE no linker is told the path of the build folder, which its build ID would depend on.
#     reproducible.sh SOURCE WORK_FOLDER
set -eu
source=$1
work=$2
rm -rf "$work"
cmake -G Ninja -S "$source" -B "$work" -DCMAKE_BUILD_TYPE=Release -DWARREN_TESTS=OFF -DWARREN_REPRODUCIBLE=ON > /dev/null
grep -q 'rpath,.*ORIGIN' "$work/build.ninja"
if grep "rpath,[^ ]*$work" "$work/build.ninja" | cut -c1-300 | head -n 3 | grep .; then
    echo "links above would depend on the folder" >&2
    exit 1
fi
