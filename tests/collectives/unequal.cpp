// Ranks whose calls of a collective operation do not match are told so, by the operation that they
// meet in. The arguments say what does not match: the operation, the usual count, and the count of
// the last rank, which is the wrong one. With "every" instead, all of them follow each other, each
// on a communicator of its own, and ranks go on with the error, while others may still be in the
// operation: all that it tells anything get one, and nobody waits for ever.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mpi.h>
#include <string>
#include <thread>
#include <vector>

namespace {

struct Case {
    std::string operation;
    int usual;
    int wrong;
};

struct Told {
    int code = MPI_SUCCESS;
    bool must_be = true; // a root only sends, or others only send to it: they may not learn of it
};

// What the last rank sends to itself is not what it receives; or the root.
Told call_with_own(const Case& what, int* a, int* b, int* c, MPI_Comm comm) {
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    const bool first = rank == 0;
    const int usual = what.usual;
    const int wrong = what.wrong;
    const int count = rank == size - 1 ? wrong : usual;
    const auto is = [&](const char* name) { return what.operation == name; };
    if (is("own_gather")) {
        const int received = first ? wrong : usual;
        return {MPI_Gather(a, usual, MPI_INT, b, received, MPI_INT, 0, comm), first};
    }
    if (is("own_scatter")) {
        return {MPI_Scatter(b, first ? wrong : usual, MPI_INT, a, usual, MPI_INT, 0, comm)};
    }
    if (is("own_allgather")) {
        return {MPI_Allgather(a, usual, MPI_INT, b, count, MPI_INT, comm)};
    }
    return {MPI_Alltoall(b, count, MPI_INT, c, usual, MPI_INT, comm)}; // "own_alltoall"
}

Told call(const Case& what, MPI_Comm comm) {
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    const bool first = rank == 0;
    const bool last = rank == size - 1;
    const int usual = what.usual;
    const int wrong = what.wrong;
    const int count = last ? wrong : usual;
    const auto most = static_cast<std::size_t>(usual > wrong ? usual : wrong);
    std::vector<int> one(most), many(most * static_cast<std::size_t>(size)), other(many);
    int* const a = one.data();
    int* const b = many.data();
    int* const c = other.data();
    const auto is = [&](const char* name) { return what.operation == name; };
    if (is("bcast")) {
        return {MPI_Bcast(a, count, MPI_INT, 0, comm), last};
    }
    if (is("gather")) {
        return {MPI_Gather(a, count, MPI_INT, b, count, MPI_INT, 0, comm), first};
    }
    if (is("scatter")) {
        return {MPI_Scatter(b, count, MPI_INT, a, count, MPI_INT, 0, comm), last};
    }
    if (is("allgather")) {
        return {MPI_Allgather(a, count, MPI_INT, b, count, MPI_INT, comm)};
    }
    if (is("alltoall")) {
        return {MPI_Alltoall(b, count, MPI_INT, c, count, MPI_INT, comm)};
    }
    if (is("reduce")) {
        return {MPI_Reduce(a, b, count, MPI_INT, MPI_SUM, 0, comm), first};
    }
    if (is("reduce_operator")) {
        return {MPI_Reduce(a, b, usual, MPI_INT, last ? MPI_MAX : MPI_SUM, 0, comm), first};
    }
    if (is("allreduce")) {
        return {MPI_Allreduce(a, b, count, MPI_INT, MPI_SUM, comm)};
    }
    if (is("allreduce_operator")) {
        return {MPI_Allreduce(a, b, usual, MPI_INT, last ? MPI_PROD : MPI_SUM, comm)};
    }
    if (is("reduce_scatter")) {
        return {MPI_Reduce_scatter_block(b, a, count, MPI_INT, MPI_SUM, comm)};
    }
    if (is("scan")) {
        return {MPI_Scan(a, b, count, MPI_INT, MPI_SUM, comm), last};
    }
    if (what.operation.starts_with("own_")) {
        return call_with_own(what, a, b, c, comm);
    }
    if (is("alltoallv") && last) { // goes by messages, the others' operation does not
        const std::vector<int> counts(static_cast<std::size_t>(size), wrong);
        std::vector<int> places(counts);
        for (std::size_t i = 0; i < places.size(); ++i) {
            places[i] = wrong * static_cast<int>(i);
        }
        return {MPI_Alltoallv(b, counts.data(), places.data(), MPI_INT, c, counts.data(),
                              places.data(), MPI_INT, comm)};
    }
    if (is("alltoallv") || last) {
        return {MPI_Barrier(comm)};
    }
    return {MPI_Bcast(a, usual, MPI_INT, 0, comm), false}; // "kind"
}

// The number of cases in which this rank should have been told, and was not.
int every() {
    constexpr const char* operations[] = {
        "bcast",     "gather",     "scatter",         "allgather",          "alltoall",
        "reduce",    "allreduce",  "reduce_operator", "allreduce_operator", "reduce_scatter",
        "scan",      "own_gather", "own_scatter",     "own_allgather",      "own_alltoall",
        "alltoallv", "kind"};
    // In lines, areas, straight from buffer to buffer, by messages; with nothing at some.
    constexpr int counts[][2] = {{1, 2},      {1, 20000},     {20000, 1}, {100, 400}, {300, 20000},
                                 {1, 100000}, {20000, 30000}, {0, 5},     {5, 0}};
    int silent = 0;
    for (const char* operation : operations) {
        for (const auto& [usual, wrong] : counts) {
            MPI_Comm comm;
            MPI_Comm_dup(MPI_COMM_WORLD, &comm);
            MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
            int rank, size;
            MPI_Comm_rank(comm, &rank);
            MPI_Comm_size(comm, &size);
            MPI_Barrier(comm);
            if (rank == size - 1 && std::strcmp(operation, "alltoallv") == 0 && wrong == 0) {
                // It waits for nobody, and the others are asleep: nobody else tells them.
                std::this_thread::sleep_for(std::chrono::milliseconds(20));
            }
            const Told told = call({operation, usual, wrong}, comm);
            // Who has nothing to send or receive waits for nobody.
            const bool nothing = (rank == size - 1 ? wrong : usual) == 0 || usual == 0;
            if (told.must_be && told.code == MPI_SUCCESS && !nothing) {
                std::printf("rank %d: %s of %d and %d: not noticed\n", rank, operation, usual,
                            wrong);
                ++silent;
            }
            MPI_Comm_free(&comm);
        }
    }
    return silent;
}

} // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int silent = 0;
    if (argc == 2 && std::strcmp(argv[1], "every") == 0) {
        silent = every();
    } else if (argc == 4) {
        MPI_Barrier(MPI_COMM_WORLD);
        call({argv[1], std::atoi(argv[2]), std::atoi(argv[3])}, MPI_COMM_WORLD);
        std::puts("not noticed");
    }
    MPI_Finalize();
    return silent == 0 ? 0 : 1;
}
