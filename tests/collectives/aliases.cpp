// Collectives whose send and receive buffers are the same memory must be refused, before anything
// is sent; those whose layouts share an address but no byte must work.
#include <cstdio>
#include <mpi.h>
#include <vector>

namespace {

int failures = 0;

void expect(bool holds, const char* what, int line) {
    if (!holds) {
        std::printf("line %d: %s\n", line, what);
        ++failures;
    }
}

#define EXPECT(condition) expect((condition), #condition, __LINE__)

int class_of(int code) {
    int error_class;
    MPI_Error_class(code, &error_class);
    return error_class;
}

#define REFUSED(call) EXPECT(class_of(call) == MPI_ERR_BUFFER)

// All ranks make the same mistake, so nobody waits for anybody.
void refused(MPI_Comm comm) {
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    std::vector<int> data(static_cast<std::size_t>(2 * size)), counts(data.size(), 2), places;
    std::vector<int> byte_places;
    std::vector<MPI_Datatype> types(data.size(), MPI_INT);
    for (int r = 0; r < size; ++r) {
        places.push_back(2 * r);
        byte_places.push_back(8 * r);
    }
    int* all = data.data();
    int* own = all + 2 * rank;
    MPI_Request request;
    REFUSED(MPI_Allgather(own, 2, MPI_INT, all, 2, MPI_INT, comm));
    REFUSED(MPI_Iallgather(own, 2, MPI_INT, all, 2, MPI_INT, comm, &request));
    REFUSED(MPI_Allgather_init(own, 2, MPI_INT, all, 2, MPI_INT, comm, MPI_INFO_NULL, &request));
    REFUSED(MPI_Allgatherv(own, 2, MPI_INT, all, counts.data(), places.data(), MPI_INT, comm));
    REFUSED(MPI_Alltoall(all, 2, MPI_INT, all, 2, MPI_INT, comm));
    REFUSED(MPI_Ialltoallv(all, counts.data(), places.data(), MPI_INT, all, counts.data(),
                           places.data(), MPI_INT, comm, &request));
    REFUSED(MPI_Alltoallw(all, counts.data(), byte_places.data(), types.data(), all, counts.data(),
                          byte_places.data(), types.data(), comm));
    REFUSED(MPI_Allreduce(all, all, 2, MPI_INT, MPI_SUM, comm));
    REFUSED(MPI_Iallreduce(all, all, 2, MPI_INT, MPI_SUM, comm, &request));
    REFUSED(MPI_Scan(all, all, 2, MPI_INT, MPI_SUM, comm));
    REFUSED(MPI_Exscan(all, all, 2, MPI_INT, MPI_SUM, comm));
    REFUSED(MPI_Reduce_scatter(all, all, counts.data(), MPI_INT, MPI_SUM, comm));
    REFUSED(MPI_Reduce_scatter_block(all, all, 2, MPI_INT, MPI_SUM, comm));
}

// Only the root can see these.
void refused_at_root() {
    int data[2] = {1, 2}, counts[1] = {2}, places[1] = {0};
    const MPI_Comm comm = MPI_COMM_SELF;
    MPI_Request request;
    REFUSED(MPI_Gather(data, 2, MPI_INT, data, 2, MPI_INT, 0, comm));
    REFUSED(MPI_Gatherv(data, 2, MPI_INT, data, counts, places, MPI_INT, 0, comm));
    REFUSED(MPI_Scatter(data, 2, MPI_INT, data, 2, MPI_INT, 0, comm));
    REFUSED(MPI_Iscatterv(data, counts, places, MPI_INT, data, 2, MPI_INT, 0, comm, &request));
    REFUSED(MPI_Reduce(data, data, 2, MPI_INT, MPI_SUM, 0, comm));
    REFUSED(MPI_Ireduce(data, data, 2, MPI_INT, MPI_SUM, 0, comm, &request));
}

// What one rank has said wrongly and then rightly, the others once.
void said_again(MPI_Comm comm) {
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int number = rank + 1, sum = 0;
    MPI_Request requests[2], refused_request;
    for (int round = 0; round < 3; ++round) {
        if (rank == 0) {
            REFUSED(MPI_Ireduce(&number, &number, 1, MPI_INT, MPI_SUM, 0, comm, &refused_request));
            REFUSED(MPI_Reduce_init(&number, &number, 1, MPI_INT, MPI_SUM, 0, comm, MPI_INFO_NULL,
                                    &refused_request));
        }
        MPI_Ireduce(&number, &sum, 1, MPI_INT, MPI_SUM, 0, comm, &requests[0]);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        EXPECT(rank != 0 || sum == size * (size + 1) / 2);
        sum = 0;
        MPI_Reduce_init(&number, &sum, 1, MPI_INT, MPI_SUM, 0, comm, MPI_INFO_NULL, &requests[1]);
        MPI_Start(&requests[1]);
        MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
        EXPECT(rank != 0 || sum == size * (size + 1) / 2);
        MPI_Request_free(&requests[1]);
    }
}

// Sends the even elements of an array and receives into the odd ones of the same array.
void interleaved(MPI_Comm comm) {
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    std::vector<int> data(static_cast<std::size_t>(2 * size));
    for (int r = 0; r < size; ++r) {
        data[static_cast<std::size_t>(2 * r)] = 100 * rank + r;
    }
    MPI_Datatype even, odd, types[2];
    const int one = 1, zero_place = 0, one_place = 1;
    MPI_Type_indexed(1, &one, &zero_place, MPI_INT, &types[0]);
    MPI_Type_indexed(1, &one, &one_place, MPI_INT, &types[1]);
    MPI_Type_create_resized(types[0], 0, 8, &even);
    MPI_Type_create_resized(types[1], 0, 8, &odd);
    for (MPI_Datatype* type : {&even, &odd}) {
        MPI_Type_commit(type);
    }
    EXPECT(MPI_Alltoall(data.data(), 1, even, data.data(), 1, odd, comm) == MPI_SUCCESS);
    for (int r = 0; r < size; ++r) {
        EXPECT(data[static_cast<std::size_t>(2 * r)] == 100 * rank + r);
        EXPECT(data[static_cast<std::size_t>(2 * r + 1)] == 100 * r + rank);
    }
    for (MPI_Datatype* type : {&even, &odd, &types[0], &types[1]}) {
        MPI_Type_free(type);
    }
    // Nothing is nowhere.
    EXPECT(MPI_Allreduce(data.data(), data.data(), 0, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS);
    EXPECT(MPI_Allgather(nullptr, 0, MPI_INT, nullptr, 0, MPI_INT, comm) == MPI_SUCCESS);
}

// `count` longs at an address, as a type for MPI_BOTTOM whose elements lie side by side.
MPI_Datatype at_address(const void* place, int count) {
    MPI_Aint address;
    MPI_Get_address(place, &address);
    MPI_Datatype block, type;
    MPI_Type_create_hindexed(1, &count, &address, MPI_LONG, &block);
    MPI_Type_create_resized(block, address, static_cast<MPI_Aint>(sizeof(long)) * count, &type);
    MPI_Type_commit(&type);
    MPI_Type_free(&block);
    return type;
}

// MPI_BOTTOM on both sides is not MPI_IN_PLACE, and other ranks may say where their data is.
void absolute(MPI_Comm comm) {
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (const int count : {1, 100, 1000, 20000}) {
        const auto all = static_cast<std::size_t>(count) * static_cast<std::size_t>(size);
        for (const int others : {0, 1}) {
            std::vector<long> out(all), in(all, -1);
            for (std::size_t i = 0; i < all; ++i) {
                out[i] = 1000000L * rank + static_cast<long>(i);
            }
            MPI_Datatype from = at_address(out.data(), count), to = at_address(in.data(), count);
            EXPECT(
                (rank == 1 && others != 0
                     ? MPI_Alltoall(out.data(), count, MPI_LONG, in.data(), count, MPI_LONG, comm)
                     : MPI_Alltoall(MPI_BOTTOM, 1, from, MPI_BOTTOM, 1, to, comm)) == MPI_SUCCESS);
            long wrong = 0;
            for (int r = 0; r < size; ++r) {
                for (int i = 0; i < count; ++i) {
                    wrong += in[static_cast<std::size_t>(r * count + i)] !=
                             1000000L * r + rank * count + i;
                }
            }
            EXPECT(wrong == 0);
            MPI_Type_free(&from);
            MPI_Type_free(&to);
        }
    }
}

} // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    refused(MPI_COMM_WORLD);
    refused(MPI_COMM_SELF);
    refused_at_root();
    said_again(MPI_COMM_WORLD);
    interleaved(MPI_COMM_WORLD);
    absolute(MPI_COMM_WORLD);
    int all = 0;
    MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return all == 0 ? 0 : 1;
}
