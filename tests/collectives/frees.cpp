// A thread frees the datatype and the operation of a blocking collective operation in which another
// thread of its rank waits, or of a nonblocking one: both last until it ends.

#include <atomic>
#include <chrono>
#include <cstdio>
#include <mpi.h>
#include <thread>
#include <vector>

namespace {

constexpr int elements = 3000;

void add(void* in, void* inout, int* count, MPI_Datatype*) {
    for (int i = 0; i < *count; ++i) {
        static_cast<int*>(inout)[i] += static_cast<int*>(in)[i];
    }
}

// Of pairs of ints; asks how large the datatype is, as the program's functions may.
void add_pairs(void* in, void* inout, int* count, MPI_Datatype* type) {
    MPI_Aint lower_bound, extent;
    MPI_Type_get_extent(*type, &lower_bound, &extent);
    int ints = *count * static_cast<int>(extent) / static_cast<int>(sizeof(int));
    add(in, inout, &ints, type);
}

// Makes objects where freed ones may have been.
void make_others() {
    for (int i = 0; i < 4; ++i) {
        const int lengths[] = {1, 1}, places[] = {0, 9 + i};
        MPI_Datatype other;
        MPI_Type_indexed(2, lengths, places, MPI_DOUBLE, &other);
        MPI_Type_commit(&other);
        MPI_Type_free(&other);
        MPI_Op op;
        MPI_Op_create([](void*, void*, int*, MPI_Datatype*) {}, 1, &op);
        MPI_Op_free(&op);
    }
}

// Every second int of `data`.
MPI_Datatype every_second() {
    MPI_Datatype type;
    MPI_Type_vector(elements, 1, 2, MPI_INT, &type);
    MPI_Type_commit(&type);
    return type;
}

struct Round {
    MPI_Comm comm;
    int rank, size, number;

    // What `operation` is called with is freed at all ranks but 0 while 0 keeps them waiting.
    template <typename Operation>
    void wait_in(Operation operation, MPI_Datatype type, MPI_Op op) const {
        std::atomic<bool> begun{false};
        std::thread waiting([&] {
            if (rank == 0) {
                MPI_Barrier(MPI_COMM_WORLD);
            }
            begun = true;
            operation();
        });
        while (rank != 0 && !begun) {
            std::this_thread::yield();
        }
        if (rank != 0) {
            std::this_thread::sleep_for(std::chrono::milliseconds(2)); // it is inside by now
            MPI_Type_free(&type);
            MPI_Op_free(&op);
            make_others();
            MPI_Barrier(MPI_COMM_WORLD);
        }
        waiting.join();
        if (rank == 0) {
            MPI_Type_free(&type);
            MPI_Op_free(&op);
        }
    }

    bool broadcast() const {
        std::vector<int> data(2 * elements);
        for (std::size_t i = 0; i < elements; ++i) {
            data[2 * i] = rank == 0 ? static_cast<int>(i) + number : -1;
        }
        MPI_Op op;
        MPI_Op_create(add, 1, &op);
        const MPI_Datatype type = every_second();
        wait_in([&, type] { MPI_Bcast(data.data(), 1, type, 0, comm); }, type, op);
        for (std::size_t i = 0; i < elements; ++i) {
            if (data[2 * i] != static_cast<int>(i) + number) {
                return false;
            }
        }
        return true;
    }

    bool exchange() const {
        const std::vector<int> out(2 * elements * static_cast<std::size_t>(size), rank + number);
        std::vector<int> in(out.size(), -1);
        std::vector<int> counts(static_cast<std::size_t>(size), 1), places;
        for (int r = 0; r < size; ++r) {
            places.push_back(r * 2 * elements * static_cast<int>(sizeof(int)));
        }
        MPI_Op op;
        MPI_Op_create(add, 1, &op);
        const MPI_Datatype type = every_second();
        std::vector<MPI_Datatype> types(static_cast<std::size_t>(size), type);
        wait_in(
            [&] {
                MPI_Alltoallw(out.data(), counts.data(), places.data(), types.data(), in.data(),
                              counts.data(), places.data(), types.data(), comm);
            },
            type, op);
        for (std::size_t r = 0; r < counts.size(); ++r) {
            if (in[2 * elements * r + 2 * (elements - 1)] != static_cast<int>(r) + number) {
                return false;
            }
        }
        return true;
    }

    bool reduction() const {
        const std::vector<int> in(2 * elements, rank + number);
        std::vector<int> out(in.size());
        MPI_Op op;
        MPI_Op_create(add_pairs, 1, &op);
        MPI_Datatype type;
        MPI_Type_contiguous(2, MPI_INT, &type);
        MPI_Type_commit(&type);
        wait_in([&, type, op] { MPI_Allreduce(in.data(), out.data(), elements, type, op, comm); },
                type, op);
        const int sum = size * number + size * (size - 1) / 2;
        return out[0] == sum && out[2 * elements - 1] == sum;
    }

    bool nonblocking_reduction() const {
        const std::vector<int> in(2 * elements, rank + number);
        std::vector<int> out(in.size());
        MPI_Op op;
        MPI_Op_create(add_pairs, 1, &op);
        MPI_Datatype type;
        MPI_Type_contiguous(2, MPI_INT, &type);
        MPI_Type_commit(&type);
        MPI_Request request;
        MPI_Iallreduce(in.data(), out.data(), elements, type, op, comm, &request);
        MPI_Type_free(&type);
        MPI_Op_free(&op);
        make_others();
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        const int sum = size * number + size * (size - 1) / 2;
        return out[0] == sum && out[2 * elements - 1] == sum;
    }
};

} // namespace

int main(int argc, char** argv) {
    int level;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    Round round{};
    MPI_Comm_dup(MPI_COMM_WORLD, &round.comm);
    MPI_Comm_rank(MPI_COMM_WORLD, &round.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &round.size);
    for (round.number = 0; round.number < 8; ++round.number) {
        if (!round.broadcast() || !round.exchange() || !round.reduction() ||
            !round.nonblocking_reduction()) {
            std::printf("rank %d: wrong in round %d\n", round.rank, round.number);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    }
    MPI_Comm_free(&round.comm);
    MPI_Finalize();
    return 0;
}
