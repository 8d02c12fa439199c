/*
 * A program whose messages, collective operations and waits are known: profile.py compares them
 * with what mpiexec --profile shows.
 *
 *   known           ends well
 *   known abort     rank 0 aborts after all of that
 *   known kill      rank 0 is killed
 *   known stay      stays for a minute
 */
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    small_bytes = 100,
    large_bytes = 300000,
    smalls = 7,
    larges = 3,
    puts = 4,
    barriers = 5,
    sums = 6,
    copies = 4
};

static char sent[large_bytes], received[large_bytes];

static void rest(double seconds) {
    const time_t whole = (time_t)seconds;
    struct timespec time = {.tv_sec = whole, .tv_nsec = (long)((seconds - (double)whole) * 1e9)};
    nanosleep(&time, NULL);
}

/* Around the ring: short and long messages, as nonblocking and blocking ones. */
static void exchange(int rank, int ranks) {
    const int next = (rank + 1) % ranks, last = (rank + ranks - 1) % ranks;
    for (int i = 0; i < smalls; ++i) {
        MPI_Request request;
        MPI_Irecv(received, small_bytes, MPI_BYTE, last, i, MPI_COMM_WORLD, &request);
        MPI_Send(sent, small_bytes, MPI_BYTE, next, i, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < larges; ++i) {
        MPI_Sendrecv(sent, large_bytes, MPI_BYTE, next, 0, received, large_bytes, MPI_BYTE, last, 0,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

int main(int count, char** arguments) {
    MPI_Init(&count, &arguments);
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    exchange(rank, ranks);

    double value = rank, sum;
    for (int i = 0; i < sums; ++i) {
        MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    for (int i = 0; i < copies; ++i) {
        MPI_Bcast(sent, 1024, MPI_BYTE, 0, MPI_COMM_WORLD);
    }

    MPI_Win window;
    MPI_Win_create(received, large_bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_fence(0, window);
    for (int i = 0; i < puts; ++i) {
        MPI_Put(sent, 16, MPI_BYTE, (rank + 1) % ranks, 0, 16, MPI_BYTE, window);
    }
    MPI_Win_fence(0, window);
    MPI_Win_free(&window);

    /* The last rank comes late, then keeps the first one waiting. */
    const double late_s = 0.4;
    if (rank == ranks - 1) {
        rest(late_s);
    }
    for (int i = 0; i < barriers; ++i) {
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (rank == ranks - 1) {
        rest(late_s);
        MPI_Send(sent, 1, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
    } else if (rank == 0) {
        MPI_Recv(received, 1, MPI_BYTE, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (count > 1 && strcmp(arguments[1], "stay") == 0) {
        rest(60);
    } else if (count > 1 && strcmp(arguments[1], "stuck") == 0) {
        if (rank != ranks - 1) {
            MPI_Recv(received, 1, MPI_BYTE, ranks - 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        rest(60);
    } else if (count > 1 && rank == 0) {
        rest(late_s / 2); /* calls are counted when they end */
        if (strcmp(arguments[1], "abort") == 0) {
            MPI_Abort(MPI_COMM_WORLD, 3);
        }
        raise(SIGKILL);
    }
    MPI_Finalize();
    return 0;
}
