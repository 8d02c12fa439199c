#!/bin/sh
# A program that was compiled for other tables of the topology than the library has is not started, and
# told why; the tables' version is the images'.
#     other_tables.sh C-COMPILER LIBWARREN SOURCES
set -eu
compiler=$1
library=$2
sources=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
version=$(sed -n 's/.*image_version = \([0-9]*\);/\1/p' "$sources"/src/topology/format.hpp)
cat > "$work"/user.c << 'C'
#include <warren/topology.h>
int main(void) {
    warren_topology* topology = 0;
    const int error = warren_topology_open("synthetic:pu:4", &topology, 0);
    return error != 0 || warren_topology_by_os_index(topology, WARREN_OBJECT_PU, 3) == WARREN_NO_OBJECT;
}
C
"$compiler" -I"$sources"/include "$work"/user.c -o "$work"/user "$library"
LD_LIBRARY_PATH=$(dirname "$library") "$work"/user
readelf -V "$work"/user | grep -q "WARREN_TOPOLOGY_$version\$\|WARREN_TOPOLOGY_$version " || {
    echo "the program does not ask for tables of version $version"
    exit 1
}
# So does a library that is given a topology, whichever look-up it has compiled in.
for look_up in 'warren_topology_by_os_index(topology, 0, 1)' 'warren_topology_nearest_memory(topology, 1)' \
    'warren_object_common_ancestor(topology, 1, 2)' 'warren_topology_initiator_of_cpu(topology, 1)' \
    'warren_topology_value(topology, 2, 0, 0, &value, 0)' 'warren_topology_best_target(topology, 2, 0, 0)'; do
    cat > "$work"/asked.c << C
#include <warren/topology.h>
uint64_t answer(const warren_topology* topology);
uint64_t answer(const warren_topology* topology) {
    uint64_t value = 0;
    return value + $look_up;
}
C
    "$compiler" -O3 -shared -fPIC -I"$sources"/include "$work"/asked.c -o "$work"/libasked.so \
        -Wl,--as-needed "$library"
    readelf -V "$work"/libasked.so | grep -q "WARREN_TOPOLOGY_$version\$\|WARREN_TOPOLOGY_$version " || {
        echo "a library with $look_up does not ask for tables of version $version"
        exit 1
    }
done
# The library of the program's making: of another version.
other=$((version + 1))
echo 'int warren_topology_open(void) { return 0; } int warren_topology_find_by_os_index(void) { return 0; }' \
    > "$work"/other.c
echo "WARREN_TOPOLOGY_$other { global: warren_topology_*; local: *; };" > "$work"/other.map
"$compiler" -shared -fPIC "$work"/other.c -o "$work"/libwarren.so.1 -Wl,-soname,libwarren.so.1 \
    -Wl,--version-script="$work"/other.map
"$compiler" -I"$sources"/include "$work"/user.c -o "$work"/user "$work"/libwarren.so.1
if LD_LIBRARY_PATH=$(dirname "$library") "$work"/user 2> "$work"/errors; then
    echo "a program for tables of version $other was started"
    exit 1
fi
grep "WARREN_TOPOLOGY_$other' not found" "$work"/errors
