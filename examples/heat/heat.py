#!/usr/bin/env python3
"""Heat in a square, with checkpoints in HDF5: mpi4py, h5py and NumPy.

    mpiexec -n 4 heat.py FILE [POINTS [STEPS]]

After half of the steps all ranks write the state to FILE by one collective call, forget it, and read it
again. A file may be read by any number of ranks: its rows are in the order of the whole square. The sum
at the end does not depend on the number of ranks.

Debian's h5py uses MPI if H5PY_ALWAYS_USE_MPI is set, and finds Warren in lib/openmpi-abi.
"""

import sys

import h5py
import numpy
from mpi4py import MPI

world = MPI.COMM_WORLD


def rows_of(points):
    """This rank's rows: from, to."""
    return points * world.rank // world.size, points * (world.rank + 1) // world.size


def initial(points):
    first, last = rows_of(points)
    x = numpy.arange(points) / points
    hot = numpy.zeros((last - first + 2, points))  # with a row of each neighbour
    hot[1:-1] = numpy.outer(x[first:last] * (1 - x[first:last]), x * x * (1 - x))
    return hot


def step(heat):
    above = world.rank - 1 if world.rank > 0 else MPI.PROC_NULL
    below = world.rank + 1 if world.rank + 1 < world.size else MPI.PROC_NULL
    world.Sendrecv(heat[1], above, recvbuf=heat[-1], source=below)
    world.Sendrecv(heat[-2], below, recvbuf=heat[0], source=above)
    own = heat[1:-1]
    left, right = numpy.roll(own, 1, axis=1), numpy.roll(own, -1, axis=1)
    own[:] = own + 0.2 * (heat[:-2] + heat[2:] + left + right - 4 * own)


def write_checkpoint(name, heat, points, steps):
    first, last = rows_of(points)
    with h5py.File(name, "w", driver="mpio", comm=world) as file:
        file.attrs["steps"] = steps
        data = file.create_dataset("heat", (points, points), dtype="f8")
        with data.collective:
            data[first:last] = heat[1:-1]


def read_checkpoint(name):
    with h5py.File(name, "r", driver="mpio", comm=world) as file:
        data = file["heat"]
        points = data.shape[0]
        first, last = rows_of(points)
        heat = numpy.zeros((last - first + 2, points))
        with data.collective:
            heat[1:-1] = data[first:last]
        return heat, file.attrs["steps"]


def main(name, points=60, steps=40):
    if not h5py.get_config().mpi:
        sys.exit("this h5py has no MPI")
    heat = initial(points)
    for number in range(steps):
        if number == steps // 2:
            write_checkpoint(name, heat, points, number)
            heat, at = read_checkpoint(name)
            assert at == number
        step(heat)
    sums = world.gather(heat[1:-1].sum(axis=1))
    if world.rank == 0:
        print(f"{points} x {points} points, {steps} steps: {numpy.concatenate(sums).sum():.12f}")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(sys.argv[1], *map(int, sys.argv[2:4]))
