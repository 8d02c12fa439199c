/* A number goes round all ranks, TURNS times; each rank says so before. For tests that kill.
 *
 *     ring TURNS     (0: for ever)
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char** argv) {
    int rank, size, number = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Barrier(MPI_COMM_WORLD);
    printf("%d is %d\n", rank, (int)getpid());
    fflush(stdout);
    const long turns = argc > 1 ? atol(argv[1]) : 1;
    for (long turn = 0; turns == 0 || turn < turns; turn++) {
        if (rank == 0) {
            MPI_Send(&number, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
            MPI_Recv(&number, 1, MPI_INT, size - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(&number, 1, MPI_INT, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            number++;
            MPI_Send(&number, 1, MPI_INT, (rank + 1) % size, 0, MPI_COMM_WORLD);
        }
    }
    if (rank == 0) {
        printf("%s\n", number == turns * (size - 1) ? "all right" : "wrong");
    }
    MPI_Finalize();
    return 0;
}
