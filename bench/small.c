/*
 * A small program, for `footprint` to look at: ranks that have talked to their neighbours and to
 * all, and wait. The first one says "ready" and ends the job with the end of its input.
 */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank;
    int ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int before = -1;
    MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % ranks, 0, &before, 1, MPI_INT,
                 (rank + ranks - 1) % ranks, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    long long own = before;
    long long sum = 0;
    MPI_Allreduce(&own, &sum, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    const int right = sum == (long long)ranks * (ranks - 1) / 2;
    if (rank == 0) {
        puts(right ? "ready" : "wrong");
        fflush(stdout);
        while (getchar() != EOF) {
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return right ? 0 : 1;
}
