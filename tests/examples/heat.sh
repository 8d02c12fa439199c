#!/bin/sh
# heat.sh MPIEXEC LIBRARIES HEAT.PY: runs the example with Debian's h5py, which was built for Open MPI, on 1
# and 3 ranks.
set -e
python=/usr/bin/python3
export H5PY_ALWAYS_USE_MPI=1 OPENBLAS_NUM_THREADS=1
export LD_LIBRARY_PATH="$2/openmpi-abi${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
if ! $python -c 'import mpi4py, numpy, h5py._debian_h5py_mpi' 2> /dev/null; then
    echo "skipped: the packages python3-h5py-mpi and python3-mpi4py are not installed"
    exit 0
fi
folder=$(mktemp -d heat_XXXXXX)
trap 'rm -r "$folder"' EXIT
for ranks in 1 3; do
    "$1" -n $ranks --timeout 60 $python "$3" "$folder/heat.h5" > "$folder/output" || {
        cat "$folder/output"
        exit 1
    }
    grep -q '^60 x 60 points, 40 steps: 48.94382557' "$folder/output"
done
