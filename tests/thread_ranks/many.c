/* As many ranks as there are: a number goes round in a ring, and all sum up their ranks. */
#include <mpi.h>
#include <stdio.h>

static long number; /* each rank's own */

int main(int argc, char** argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const int next = (rank + 1) % size;
    const int before = (rank + size - 1) % size;
    if (rank > 0) {
        MPI_Recv(&number, 1, MPI_LONG, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    ++number;
    MPI_Send(&number, 1, MPI_LONG, next, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        MPI_Recv(&number, 1, MPI_LONG, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    long sum = 0;
    const long own = rank;
    MPI_Allreduce(&own, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    const int right = sum == (long)size * (size - 1) / 2 && number == (rank == 0 ? size : rank + 1);
    if (!right) {
        printf("rank %d: number %ld, sum %ld\n", rank, number, sum);
    }
    MPI_Finalize();
    return right ? 0 : 1;
}
