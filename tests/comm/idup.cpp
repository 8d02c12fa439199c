// MPI_Comm_idup: several at once, waited for in another order, while other calls go on; attributes
// as they were at the call; of intercommunicators too.
#include "check.hpp"

namespace {

int copies;

int copy(MPI_Comm, int, void*, void* in, void* out, int* flag) {
    ++copies;
    *static_cast<void**>(out) = in;
    *flag = 1;
    return MPI_SUCCESS;
}

int refuse(MPI_Comm, int, void*, void*, void*, int*) {
    return MPI_ERR_ARG;
}

void sum_in(MPI_Comm comm) {
    int sum = 0;
    MPI_Allreduce(&world_rank, &sum, 1, MPI_INT, MPI_SUM, comm);
    EXPECT(sum == world_size * (world_size - 1) / 2);
}

// Each keeps its messages to itself.
void exchange(MPI_Comm* comms, int count) {
    const int next = (world_rank + 1) % world_size;
    const int previous = (world_rank + world_size - 1) % world_size;
    for (int i = 0; i < count; ++i) {
        MPI_Request request;
        MPI_Isend(&comms[i], 1, MPI_AINT, next, 0, comms[i], &request);
        MPI_Request_free(&request);
    }
    for (int i = count; i-- > 0;) {
        MPI_Aint from;
        MPI_Recv(&from, 1, MPI_AINT, previous, 0, comms[i], MPI_STATUS_IGNORE);
    }
}

void with_hints(MPI_Comm parent) {
    MPI_Info info, got;
    MPI_Info_create(&info);
    MPI_Info_set(info, "colour", "brown");
    MPI_Comm comm;
    MPI_Request request;
    MPI_Comm_idup_with_info(parent, info, &comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    char text[16];
    int length = sizeof text, flag;
    MPI_Comm_get_info(comm, &got);
    MPI_Info_get_string(got, "colour", &length, text, &flag);
    EXPECT(flag != 0);
    MPI_Info_free(&got);
    MPI_Info_free(&info);
    MPI_Comm_free(&comm);
}

// Freed while the request is under way, and refused by an attribute everywhere; frees the parent.
void refused(MPI_Comm parent) {
    MPI_Comm comm;
    MPI_Request request;
    int refusing;
    MPI_Comm_create_keyval(refuse, MPI_COMM_NULL_DELETE_FN, &refusing, nullptr);
    MPI_Comm_set_attr(parent, refusing, nullptr);
    MPI_Comm_set_errhandler(parent, MPI_ERRORS_RETURN);
    EXPECT(MPI_Comm_idup(parent, &comm, &request) != MPI_SUCCESS);
    EXPECT(comm == MPI_COMM_NULL);
    MPI_Comm_delete_attr(parent, refusing);
    EXPECT(MPI_Comm_idup(parent, &comm, &request) == MPI_SUCCESS);
    MPI_Comm_free(&parent);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    sum_in(comm);
    MPI_Comm_free(&comm);
    MPI_Comm_free_keyval(&refusing);
}

void several() {
    constexpr int count = 6;
    int keyval, value = 1, later = 2;
    MPI_Comm_create_keyval(copy, MPI_COMM_NULL_DELETE_FN, &keyval, nullptr);
    MPI_Comm parent;
    MPI_Comm_dup(MPI_COMM_WORLD, &parent);
    MPI_Comm_set_attr(parent, keyval, &value);
    for (int round = 0; round < 20; ++round) {
        copies = 0;
        MPI_Comm comms[count];
        MPI_Request requests[count];
        for (int i = 0; i < count; ++i) {
            EXPECT(MPI_Comm_idup(parent, &comms[i], &requests[i]) == MPI_SUCCESS);
            if (i % 2 == 0) {
                sum_in(parent);
            }
        }
        EXPECT(copies == count);
        MPI_Comm_set_attr(parent, keyval, &later);
        MPI_Comm plain;
        MPI_Comm_dup(MPI_COMM_WORLD, &plain);
        if (world_rank % 2 == 0) {
            MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
        } else {
            for (int i = count; i-- > 0;) {
                MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
            }
        }
        for (MPI_Comm& comm : comms) {
            int result, flag;
            void* got;
            MPI_Comm_compare(comm, MPI_COMM_WORLD, &result);
            EXPECT(result == MPI_CONGRUENT);
            MPI_Comm_get_attr(comm, keyval, &got, &flag);
            EXPECT(flag != 0 && *static_cast<int*>(got) == 1);
            sum_in(comm);
        }
        exchange(comms, count);
        for (MPI_Comm& comm : comms) {
            sum_in(comm);
            MPI_Comm_free(&comm);
        }
        MPI_Comm_free(&plain);
        MPI_Comm_set_attr(parent, keyval, &value);
    }
    with_hints(parent);
    refused(parent);
    MPI_Comm_free_keyval(&keyval);
}

void of_intercommunicators() {
    MPI_Comm half, inter, twin;
    const bool left = world_rank < world_size / 2;
    MPI_Comm_split(MPI_COMM_WORLD, left ? 0 : 1, 0, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, left ? world_size / 2 : 0, 1, &inter);
    MPI_Request request;
    MPI_Comm_idup(inter, &twin, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    int peers;
    MPI_Comm_remote_size(twin, &peers);
    EXPECT(peers == world_size - size_of(half));
    int got = -1;
    const int rank = rank_in(twin);
    if (rank < peers) {
        MPI_Sendrecv(&world_rank, 1, MPI_INT, rank, 0, &got, 1, MPI_INT, rank, 0, twin,
                     MPI_STATUS_IGNORE);
        EXPECT(got == (left ? world_rank + world_size / 2 : world_rank - world_size / 2));
    }
    MPI_Comm merged;
    MPI_Intercomm_merge(twin, left ? 0 : 1, &merged);
    EXPECT(rank_in(merged) == world_rank);
    MPI_Comm_free(&merged);
    MPI_Comm_free(&twin);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
}

} // namespace

int main(int argc, char** argv) {
    start(&argc, &argv);
    several();
    if (world_size > 1) {
        of_intercommunicators();
    }
    return finish();
}
