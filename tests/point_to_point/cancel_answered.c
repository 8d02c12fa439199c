/* A send whose receiver has received it and left MPI while its sender was busy is not cancelled:
 * what that one had to say counts, not that it is gone. */
#include "check.h"

#include <time.h>

static void rest(long milliseconds) {
    const struct timespec time = {.tv_nsec = milliseconds * 1000000};
    nanosleep(&time, NULL);
}

/* Keeps rank 0 in the middle of its progress. */
static void slow_sum(void* in, void* inout, int* count, MPI_Datatype* type) {
    (void)type;
    rest(200);
    for (int i = 0; i < *count; i++) {
        ((int*)inout)[i] += ((const int*)in)[i];
    }
}

int main(int argc, char** argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    check_ranks(&rank, &size, 3);
    static unsigned char data[CHECK_LARGEST];
    const int bytes = argc > 1 ? atoi(argv[1]) : 4;
    const int mine = rank;
    int sum = 0;
    MPI_Op op;
    MPI_Op_create(slow_sum, 1, &op);
    MPI_Comm pair;
    MPI_Comm_split(MPI_COMM_WORLD, rank == 1 ? MPI_UNDEFINED : 0, rank, &pair);
    if (rank == 1) {
        rest(150); /* until rank 0 is in slow_sum */
        MPI_Recv(data, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Request reduction, send;
        if (rank == 2) {
            rest(50);
        }
        MPI_Ireduce(&mine, &sum, 1, MPI_INT, op, 0, pair, &reduction);
        if (rank == 0) {
            MPI_Status status;
            int cancelled = -1;
            MPI_Issend(data, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &send);
            MPI_Cancel(&send);
            MPI_Wait(&send, &status);
            MPI_Test_cancelled(&status, &cancelled);
            /* Either is right, but then rank 1 still waits for one: else this hangs. */
            if (cancelled) {
                MPI_Ssend(data, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
            }
        }
        MPI_Wait(&reduction, MPI_STATUS_IGNORE);
        MPI_Comm_free(&pair);
    }
    MPI_Op_free(&op);
    MPI_Finalize();
    return 0;
}
