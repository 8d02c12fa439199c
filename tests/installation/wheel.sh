#!/bin/sh
# Makes the wheel twice, which must be equal, installs one into an empty environment of Python's and uses it
# (use.sh). Exit code 77: Python has no venv or no pip, so nothing was tested.
#     wheel.sh BUILD_TREE WORK_FOLDER
set -eu
build=$1
work=$2
here=$(dirname "$(readlink -f "$0")")
make=$here/../../packaging/wheel/build.py
rm -rf "$work"
mkdir -p "$work"

wheel=$("$make" "$build" "$work/once")
cmp "$wheel" "$("$make" "$build" "$work/again")"
if "$make" "$work" "$work/never" 2> "$work/refused"; then
    echo "a folder that is no build tree became a wheel" >&2
    exit 1
fi
grep -q "is no build tree" "$work/refused"

python3 -m venv "$work/environment" || {
    echo "LEFT OUT: python3 -m venv needs the package python3-venv" >&2
    exit 77
}
environment=$work/environment
"$environment/bin/pip" install --no-index --disable-pip-version-check "$wheel"
"$here/use.sh" "$environment" lib "$work/use"

echo "== what links are elsewhere"
"$environment/bin/mpirun" -n 2 --timeout 60 "$work/use/wrapped_c"
for name in libmpi_abi.so.0 mpich-abi/libmpi.so mpich-abi/libmpich.so.12 openmpi-abi/libmpi_usempi_ignore_tkr.so.40; do
    LD_LIBRARY_PATH=$(dirname "$environment/lib/$name") "$environment/bin/python3" -c "import ctypes; print(ctypes.CDLL('$environment/lib/$name').MPI_Init)"
done
cc -shared -x c /dev/null -o "$work/linked.so" -L"$environment/lib" -Wl,--no-as-needed -lwarren
readelf -d "$work/linked.so" | grep -q libwarren.so.1

echo "== Python's modules"
"$environment/bin/python3" -c 'import warren.topology; print(warren.topology.__file__)' | grep "$environment"
if "$environment/bin/warren" locality report "$work" 2> "$work/report"; then
    echo "a report of nothing" >&2
    exit 1
fi
grep -q "$environment/bin/python3 has no numpy.*warren-mpi\[analyser\]" "$work/report"
"$environment/bin/warren" doctor > "$work/doctor"
grep -A1 "has no numpy" "$work/doctor" | grep -q "remedy: .*pip install 'warren-mpi\[analyser\]'"

echo "== the end"
"$environment/bin/pip" uninstall --yes --disable-pip-version-check warren-mpi
left=$(find "$environment/bin" "$environment/lib" "$environment/libexec" "$environment/include" \
    -name 'warren*' -o -name 'libwarren*' -o -name 'mpi*' -o -name 'libmpi*' 2> "$work/missing" || true)
if [ -n "$left" ]; then
    echo "what was left: $left" >&2
    exit 1
fi
