/* Ranks for a debugger: rank 0 waits until somebody sets `ready`, the others for its message. With
   an argument each computes until its own is set: of several on one worker all but one are ready.
 */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

static int own_number = 100;
static volatile int ready;

__attribute__((noinline)) void ranks_meet(int rank) {
    own_number += rank;
}

int main(int argc, char** argv) {
    int rank, size, number = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    own_number += 10 * rank;
    if (argc > 1) {
        if (rank == 0) {
            printf("waiting in process %d\n", getpid());
            fflush(stdout);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        while (!ready) {
        }
    } else {
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (rank == 0) {
        if (argc == 1) {
            printf("waiting in process %d\n", getpid());
            fflush(stdout);
        }
        while (argc == 1 && !ready) {
            usleep(1000);
        }
        for (int other = 1; other < size; ++other) {
            MPI_Send(&number, 1, MPI_INT, other, 0, MPI_COMM_WORLD);
        }
    } else {
        MPI_Recv(&number, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    ranks_meet(rank);
    printf("rank %d: %d\n", rank, own_number);
    MPI_Finalize();
    return 0;
}
