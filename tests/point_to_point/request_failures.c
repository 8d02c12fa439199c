/* The failure of a request goes to the error handler of the request's communicator, whatever the
   call that completes it is, and even when the communicator has been freed by then. The handler
   hears the code in the status where the call returns MPI_ERR_IN_STATUS. */
#include "check.h"

static int rank, world_heard, own_heard, last_class;
static MPI_Comm own;

static void count_world(MPI_Comm* comm, int* code, ...) {
    CHECK(*comm == MPI_COMM_WORLD, "the handler was given another communicator");
    world_heard++;
    last_class = check_class(*code);
}

static void count_own(MPI_Comm* comm, int* code, ...) {
    (void)comm;
    own_heard++;
    last_class = check_class(*code);
}

static void expect(int world, int own_times, const char* what) {
    CHECK(world_heard == world && own_heard == own_times,
          "%s: the world's handler has been called %d times, expected %d; the other's %d, "
          "expected %d",
          what, world_heard, world, own_heard, own_times);
}

/* A communicator whose errors are counted, and whose handler lives by it alone. */
static void make_own(void) {
    MPI_Errhandler handler;
    MPI_Comm_dup(MPI_COMM_SELF, &own);
    MPI_Comm_create_errhandler(count_own, &handler);
    MPI_Comm_set_errhandler(own, handler);
    MPI_Errhandler_free(&handler);
}

/* A receive on the communicator that will be truncated. */
static MPI_Request fail_later(MPI_Comm comm) {
    static int longer[2], shorter;
    MPI_Request request;
    MPI_Irecv(&shorter, 1, MPI_INT, 0, 1, comm, &request);
    MPI_Send(longer, 2, MPI_INT, 0, 1, comm);
    return request;
}

enum { wait, waitany, waitsome, waitall, test, testall, completions };

static int complete(int how, MPI_Request* request) {
    int index, flag, count;
    MPI_Status status;
    switch (how) {
    case wait:
        return MPI_Wait(request, &status);
    case waitany:
        return MPI_Waitany(1, request, &index, &status);
    case waitsome:
        return MPI_Waitsome(1, request, &count, &index, &status);
    case waitall:
        return MPI_Waitall(1, request, &status);
    case test:
        return MPI_Test(request, &flag, &status);
    default:
        return MPI_Testall(1, request, &flag, &status);
    }
}

static void check_freed_communicators(void) {
    for (int how = 0; how < completions; how++) {
        make_own();
        MPI_Request request = fail_later(own);
        MPI_Comm_free(&own);
        world_heard = own_heard = 0;
        const int code = complete(how, &request);
        const int expected = how >= waitsome && how != test ? MPI_ERR_IN_STATUS : MPI_ERR_TRUNCATE;
        CHECK(check_class(code) == expected, "way %d: class %d", how, check_class(code));
        CHECK(last_class == MPI_ERR_TRUNCATE, "way %d: the handler hears class %d", how,
              last_class);
        expect(0, 1, "after MPI_Comm_free");
        CHECK(request == MPI_REQUEST_NULL, "way %d", how);
    }
}

/* A request that ended well on another communicator, freed since, takes no later failure. */
static void check_later_failure(void) {
    int x[2] = {0, 0}, y = 0;
    MPI_Request persistent, send;
    make_own();
    MPI_Recv_init(&y, 1, MPI_INT, MPI_PROC_NULL, 0, own, &persistent);
    MPI_Start(&persistent);
    MPI_Wait(&persistent, MPI_STATUS_IGNORE);
    MPI_Request_free(&persistent);
    MPI_Comm_free(&own);
    world_heard = own_heard = 0;
    MPI_Isend(x, 2, MPI_INT, rank, 1, MPI_COMM_WORLD, &send);
    const int code = MPI_Recv(&y, 1, MPI_INT, rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(check_class(code) == MPI_ERR_TRUNCATE, "class %d", check_class(code));
    expect(1, 0, "a call's own failure");
    MPI_Wait(&send, MPI_STATUS_IGNORE);
}

/* A communicator's error handler, itself freed, lives as long as requests of the communicator. */
static void check_many_freed(void) {
    enum { many = 50 };
    MPI_Request requests[many];
    MPI_Status statuses[many];
    for (int i = 0; i < many; i++) {
        make_own();
        requests[i] = fail_later(own);
        MPI_Comm_free(&own);
    }
    world_heard = own_heard = 0;
    const int code = MPI_Waitall(many, requests, statuses);
    CHECK(check_class(code) == MPI_ERR_IN_STATUS, "class %d", check_class(code));
    for (int i = 0; i < many; i++) {
        CHECK(check_class(statuses[i].MPI_ERROR) == MPI_ERR_TRUNCATE, "status %d: class %d", i,
              check_class(statuses[i].MPI_ERROR));
    }
    expect(0, 1, "MPI_Waitall");
}

static int query(void* state, MPI_Status* status) {
    (void)state;
    MPI_Status_set_elements(status, MPI_INT, 0);
    MPI_Status_set_cancelled(status, 0);
    return MPI_SUCCESS;
}

static int free_by_mpi(void* state) {
    MPI_Datatype type;
    (void)state;
    MPI_Type_dup(MPI_INT, &type);
    return MPI_Type_free(&type);
}

static int cancel(void* state, int complete_already) {
    (void)state;
    (void)complete_already;
    return MPI_SUCCESS;
}

/* A generalised request that ends in the same call, and whose functions call MPI, changes nothing.
 */
static void check_beside_generalised(void) {
    MPI_Request requests[2];
    MPI_Status statuses[2];
    make_own();
    requests[0] = fail_later(own);
    MPI_Comm_free(&own);
    MPI_Grequest_start(query, free_by_mpi, cancel, NULL, &requests[1]);
    MPI_Grequest_complete(requests[1]);
    world_heard = own_heard = 0;
    const int code = MPI_Waitall(2, requests, statuses);
    CHECK(check_class(code) == MPI_ERR_IN_STATUS, "class %d", check_class(code));
    CHECK(last_class == MPI_ERR_TRUNCATE, "the handler hears class %d", last_class);
    expect(0, 1, "MPI_Waitall with a generalised request");
}

int main(int argc, char** argv) {
    MPI_Errhandler handler;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_create_errhandler(count_world, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    MPI_Errhandler_free(&handler);
    check_freed_communicators();
    check_later_failure();
    check_many_freed();
    check_beside_generalised();
    MPI_Finalize();
    return 0;
}
