/* Prints the sum of all ranks; with an argument, rank 1 aborts while the others wait. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
    int rank, size, sum = 0, next;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc > 1 && rank == 1) {
        MPI_Abort(MPI_COMM_WORLD, 5);
    }
    if (argc > 1) {
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 0, &next, 1, MPI_INT,
                 (rank + size - 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Allreduce(&next, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("rank %d of %d: sum %d\n", rank, size, sum);
    MPI_Finalize();
    return 0;
}
