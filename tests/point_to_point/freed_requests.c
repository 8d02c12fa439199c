/* MPI_Request_free of what still moves: it goes on, MPI_Finalize sees to its end, and the handle is
 * none any more. */
#include "check.h"

/* What a program does with a handle that it kept a copy of is refused, and does no harm. */
static void check_refused(MPI_Request freed) {
    MPI_Request copy = freed;
    int flag = -1;
    CHECK(check_class(MPI_Test(&copy, &flag, MPI_STATUS_IGNORE)) == MPI_ERR_REQUEST, "MPI_Test");
    CHECK(check_class(MPI_Wait(&copy, MPI_STATUS_IGNORE)) == MPI_ERR_REQUEST, "MPI_Wait");
    CHECK(check_class(MPI_Waitall(1, &copy, MPI_STATUSES_IGNORE)) == MPI_ERR_REQUEST,
          "MPI_Waitall");
    CHECK(check_class(MPI_Startall(1, &copy)) == MPI_ERR_REQUEST, "MPI_Startall");
    CHECK(check_class(MPI_Cancel(&copy)) == MPI_ERR_REQUEST, "MPI_Cancel");
    CHECK(check_class(MPI_Request_free(&copy)) == MPI_ERR_REQUEST, "MPI_Request_free");
}

static void freed_handles_are_refused(void) {
    int in = -1, out = 7;
    MPI_Request request, copy;
    MPI_Irecv(&in, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &request);
    copy = request;
    MPI_Request_free(&request);
    CHECK(request == MPI_REQUEST_NULL, "after MPI_Request_free of a receive");
    check_refused(copy);
    MPI_Send(&out, 1, MPI_INT, 0, 1, MPI_COMM_SELF);
    CHECK(in == 7, "the freed receive has %d", in);
    check_refused(copy);

    MPI_Issend(&out, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &request);
    copy = request;
    MPI_Request_free(&request);
    check_refused(copy);
    MPI_Recv(&in, 1, MPI_INT, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    check_refused(copy);

    /* Nobody will send to this one. */
    MPI_Irecv(&in, 1, MPI_INT, 0, 2, MPI_COMM_SELF, &request);
    copy = request;
    MPI_Request_free(&request);
    check_refused(copy);
}

static int frees = 0;
static int query(void* state, MPI_Status* status) {
    (void)state;
    MPI_Status_set_elements(status, MPI_BYTE, 0);
    MPI_Status_set_cancelled(status, 0);
    return MPI_SUCCESS;
}
static int count_free(void* state) {
    (void)state;
    ++frees;
    return MPI_SUCCESS;
}
static int cancel(void* state, int complete) {
    (void)state;
    (void)complete;
    return MPI_SUCCESS;
}

/* Whoever completes a generalised request may do so after its handle has been freed. */
static void freed_generalised_requests_can_be_completed(void) {
    MPI_Request request, copy;
    MPI_Grequest_start(query, count_free, cancel, NULL, &request);
    copy = request;
    MPI_Request_free(&request);
    CHECK(frees == 0, "freed before its completion");
    CHECK(MPI_Grequest_complete(copy) == MPI_SUCCESS, "MPI_Grequest_complete");
    CHECK(frees == 1, "freed %d times", frees);
    CHECK(check_class(MPI_Grequest_complete(copy)) == MPI_ERR_REQUEST, "the second time");
}

/* Receives that are freed while their messages are arriving. */
enum { messages = 300, bytes = 250000 };
static void freed_receives_end(int rank, unsigned char* data) {
    check_fill(data, bytes, 1);
    for (int i = 0; i < messages; i++) {
        unsigned char* mine = data + (size_t)i * bytes;
        if (rank == 0) {
            MPI_Send(data, bytes, MPI_BYTE, 1, 3, MPI_COMM_WORLD);
        } else if (rank == 1) {
            MPI_Request request;
            MPI_Probe(0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Irecv(mine, bytes, MPI_BYTE, 0, 3, MPI_COMM_WORLD, &request);
            MPI_Request_free(&request);
        }
    }
}

int main(int argc, char** argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    check_ranks(&rank, &size, 2);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    freed_handles_are_refused();
    freed_generalised_requests_can_be_completed();
    unsigned char* data = check_buffer((size_t)messages * bytes);
    freed_receives_end(rank, data);
    MPI_Finalize();
    free(data); /* Not before: MPI_Finalize is the first to know that all has come. */
    return 0;
}
