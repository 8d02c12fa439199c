/* A thread sleeps in a call until another thread of the same rank does what it waits for: no other
 * rank is there to wake it. */
#include <pthread.h>
#include <unistd.h>

#include "check.h"

enum {
    receive,
    receive_of_synchronous,
    probe,
    probe_of_synchronous,
    synchronous_send,
    any,
    generalised,
    cancelled,
    cases
};
static int which;
static MPI_Request request;

static void receive_seven(void) {
    int value = 0;
    MPI_Recv(&value, 1, MPI_INT, 0, 5, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    CHECK(value == 7, "case %d: received %d", which, value);
}

static void* wait_for_it(void* nothing) {
    int seven = 7, value = 0, index = -1, flag = 0;
    MPI_Status status;
    MPI_Request both[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    switch (which) {
    case receive:
    case receive_of_synchronous:
        receive_seven();
        break;
    case probe:
    case probe_of_synchronous:
        MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &status);
        receive_seven();
        break;
    case synchronous_send:
        MPI_Ssend(&seven, 1, MPI_INT, 0, 5, MPI_COMM_SELF);
        break;
    case any:
        MPI_Irecv(&value, 1, MPI_INT, 0, 5, MPI_COMM_SELF, &both[1]);
        MPI_Waitany(2, both, &index, &status);
        CHECK(index == 1 && value == 7, "index %d, value %d", index, value);
        break;
    default:
        MPI_Wait(&request, &status);
        MPI_Test_cancelled(&status, &flag);
        CHECK(flag == (which == cancelled), "cancelled: %d", flag);
    }
    return nothing;
}

static int query(void* state, MPI_Status* status) {
    (void)state;
    MPI_Status_set_elements(status, MPI_INT, 0);
    MPI_Status_set_cancelled(status, 0);
    return MPI_SUCCESS;
}
static int end(void* state) {
    (void)state;
    return MPI_SUCCESS;
}
static int cancel(void* state, int complete) {
    (void)state;
    (void)complete;
    return MPI_SUCCESS;
}

int main(int argc, char** argv) {
    int provided, seven = 7;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    CHECK(provided == MPI_THREAD_MULTIPLE, "%d", provided);
    for (which = 0; which < cases; which++) {
        if (which == generalised) {
            MPI_Grequest_start(query, end, cancel, NULL, &request);
        } else if (which == cancelled) {
            MPI_Irecv(&seven, 1, MPI_INT, 0, 6, MPI_COMM_SELF, &request);
        }
        MPI_Request same = request;
        pthread_t thread;
        pthread_create(&thread, NULL, wait_for_it, NULL);
        usleep(50000); /* by now it sleeps */
        switch (which) {
        case receive_of_synchronous:
        case probe_of_synchronous:
            MPI_Ssend(&seven, 1, MPI_INT, 0, 5, MPI_COMM_SELF);
            break;
        case synchronous_send:
            receive_seven();
            break;
        case generalised:
            MPI_Grequest_complete(same);
            break;
        case cancelled:
            MPI_Cancel(&same);
            break;
        default:
            MPI_Send(&seven, 1, MPI_INT, 0, 5, MPI_COMM_SELF);
        }
        pthread_join(thread, NULL);
    }
    MPI_Finalize();
    return 0;
}
