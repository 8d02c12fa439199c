#!/bin/sh
# AArch64's part of Warren compiles, and a program runs on it in an emulator: its ranks are started by this
# machine's mpiexec, since the emulator can't start processes as mpiexec does. Other processors are refused.
#     aarch64.sh SOURCE BUILD WORK      BUILD: of this machine's processor
# Exit code 77: something that this needs isn't there.
set -eu
source=$1
build=$2
work=$3
for tool in aarch64-linux-gnu-g++ qemu-aarch64; do
    command -v $tool > /dev/null || {
        echo "LEFT OUT: there is no $tool"
        exit 77
    }
done
[ -e /usr/lib/aarch64-linux-gnu/pkgconfig/hwloc.pc ] || {
    echo "LEFT OUT: there is no libhwloc-dev:arm64"
    exit 77
}
mkdir -p "$work"
if cmake -S "$source" -B "$work/other" -G Ninja -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=riscv64 \
    > "$work/other.log" 2>&1; then
    echo "riscv64 is not refused"
    exit 1
fi
grep -q 'not riscv64' "$work/other.log"

there=$work/build
cmake --preset release -S "$source" -B "$there" -DWARREN_TESTS=OFF \
    --toolchain "$source/cmake/toolchains/aarch64-linux-gnu.cmake" > "$work/configure.log"
grep 'AArch64: left out' "$work/configure.log"
cmake --build "$there" > "$work/build.log" || {
    tail -30 "$work/build.log"
    exit 1
}
aarch64-linux-gnu-gcc -I"$there/include" "$source/tests/installation/project/sum.c" -o "$work/use" -L"$there/lib" -lmpi_abi \
    -Wl,-rpath,"$there/lib"
timeout 300 "$build/bin/mpiexec" -n 4 qemu-aarch64 "$work/use"
refused=$(timeout 60 qemu-aarch64 "$there/bin/mpiexec" --ranks fibres -n 2 "$work/use" 2>&1) && {
    echo "fibres are not refused"
    exit 1
}
echo "$refused" | grep 'known on x86-64 only'
