/* The functions of a generalised request may call MPI, also about the request itself. */
#include "check.h"

struct state {
    MPI_Request request;
    int queries, frees, cancels;
};

static int query(void* extra, MPI_Status* status) {
    struct state* state = extra;
    int initialised = 0, rank;
    MPI_Initialized(&initialised);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    state->queries++;
    MPI_Status_set_elements(status, MPI_INT, 3);
    MPI_Status_set_cancelled(status, state->cancels > 0);
    status->MPI_SOURCE = rank;
    status->MPI_TAG = 77;
    return MPI_SUCCESS;
}

static int end(void* extra) {
    struct state* state = extra;
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    MPI_Comm_free(&comm);
    state->frees++;
    return MPI_SUCCESS;
}

static int cancel(void* extra, int complete) {
    struct state* state = extra;
    state->cancels++;
    if (!complete) {
        MPI_Grequest_complete(state->request);
    }
    return MPI_SUCCESS;
}

static void check_end(struct state* state, int cancelled) {
    int rank, count, flag;
    MPI_Status status;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Wait(&state->request, &status);
    MPI_Get_count(&status, MPI_INT, &count);
    MPI_Test_cancelled(&status, &flag);
    CHECK(count == 3 && status.MPI_SOURCE == rank && status.MPI_TAG == 77, "%d, %d, %d", count,
          status.MPI_SOURCE, status.MPI_TAG);
    CHECK(flag == cancelled, "cancelled: %d", flag);
    CHECK(state->queries == 1 && state->frees == 1, "%d queries, %d frees", state->queries,
          state->frees);
    CHECK(state->request == MPI_REQUEST_NULL, "not freed");
}

int main(int argc, char** argv) {
    int provided, flag;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);

    struct state completed = {.queries = 0};
    MPI_Grequest_start(query, end, cancel, &completed, &completed.request);
    MPI_Test(&completed.request, &flag, MPI_STATUS_IGNORE);
    CHECK(!flag && completed.queries == 0, "complete before MPI_Grequest_complete");
    MPI_Grequest_complete(completed.request);
    check_end(&completed, 0);

    struct state cancelled = {.queries = 0};
    MPI_Grequest_start(query, end, cancel, &cancelled, &cancelled.request);
    MPI_Cancel(&cancelled.request);
    check_end(&cancelled, 1);

    /* Freed first, completed later. */
    struct state freed = {.queries = 0};
    MPI_Grequest_start(query, end, cancel, &freed, &freed.request);
    MPI_Request same = freed.request;
    MPI_Request_free(&freed.request);
    CHECK(freed.frees == 0, "freed before its end");
    MPI_Grequest_complete(same);
    CHECK(freed.frees == 1, "%d frees", freed.frees);
    MPI_Finalize();
    return 0;
}
