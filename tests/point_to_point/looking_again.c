/*
 * A test that lets another rank run says what that one has done meanwhile. Rank 1 sends, then says
 * in memory that it has. When a test of rank 0 returns without the message, it hasn't been sent;
 * only seldom does the system take the processor away between the test's look and its return.
 */
#define _GNU_SOURCE
#include "check.h"

#include <stdatomic.h>

#include "one_processor.h"

enum { ROUNDS = 400, TAG = 6, TESTS = 3 };

static int ended(int which, MPI_Request* request) {
    int flag = 0;
    int index;
    switch (which) {
    case 0:
        MPI_Test(request, &flag, MPI_STATUS_IGNORE);
        break;
    case 1:
        MPI_Testall(1, request, &flag, MPI_STATUSES_IGNORE);
        break;
    default:
        MPI_Testany(1, request, &index, &flag, MPI_STATUS_IGNORE);
    }
    return flag;
}

/* How many tests came back without a message that had been sent. */
static int receive_rounds(const atomic_int* sent) {
    int overtaken = 0;
    for (int round = 1; round <= ROUNDS; round++) {
        int number = 0;
        MPI_Request request;
        MPI_Irecv(&number, 1, MPI_INT, 1, TAG, MPI_COMM_WORLD, &request);
        MPI_Send(&round, 1, MPI_INT, 1, TAG, MPI_COMM_WORLD);
        while (!ended(round % TESTS, &request)) {
            overtaken += atomic_load(sent) == round;
        }
        CHECK(number == round, "%d", number);
    }
    return overtaken;
}

static void answer_rounds(atomic_int* sent) {
    for (int round = 1; round <= ROUNDS; round++) {
        int number;
        MPI_Recv(&number, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(&number, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD);
        atomic_store(sent, round);
    }
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    share_one_processor();
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Win window;
    void* memory;
    MPI_Aint bytes;
    int unit;
    MPI_Win_allocate_shared(rank == 1 ? (MPI_Aint)sizeof(atomic_int) : 0, 1, MPI_INFO_NULL,
                            MPI_COMM_WORLD, &memory, &window);
    MPI_Win_shared_query(window, 1, &bytes, &unit, &memory);
    atomic_int* sent = memory;
    if (rank == 1) {
        atomic_init(sent, 0);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        const int overtaken = receive_rounds(sent);
        CHECK(overtaken < ROUNDS / 10, "%d of %d", overtaken, ROUNDS);
    } else if (rank == 1) {
        answer_rounds(sent);
    }
    MPI_Win_free(&window);
    MPI_Finalize();
    return 0;
}
