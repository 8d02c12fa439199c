/* Sums the ranks; fails when the sum is wrong. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
    int rank, size, sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    const int expected = size * (size - 1) / 2;
    if (sum != expected) {
        fprintf(stderr, "rank %d of %d: the sum is %d, expected %d\n", rank, size, sum, expected);
    }
    MPI_Finalize();
    return sum == expected ? 0 : 1;
}
