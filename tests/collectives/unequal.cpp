// Ranks whose calls of a collective operation do not match are told so, by the operation that they
// meet in. The argument says what does not match; the last rank is the one that is wrong. With
// "returned" behind it, ranks go on with the error, while others may still be in the operation.

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mpi.h>
#include <vector>

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const char* operation = argc > 1 ? argv[1] : "";
    const int usual = argc > 2 ? std::atoi(argv[2]) : 0;
    const int wrong = argc > 3 ? std::atoi(argv[3]) : 0;
    const int count = rank == size - 1 ? wrong : usual;
    const auto most = static_cast<std::size_t>(usual > wrong ? usual : wrong);
    std::vector<int> one(most), many(most * static_cast<std::size_t>(size));
    const auto is = [&](const char* name) { return std::strcmp(operation, name) == 0; };
    if (argc > 4) {
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    }
    int code = MPI_SUCCESS;
    MPI_Barrier(MPI_COMM_WORLD);
    if (is("bcast")) {
        MPI_Bcast(one.data(), count, MPI_INT, 0, MPI_COMM_WORLD);
    } else if (is("gather")) {
        MPI_Gather(one.data(), count, MPI_INT, many.data(), count, MPI_INT, 0, MPI_COMM_WORLD);
    } else if (is("scatter")) {
        MPI_Scatter(many.data(), count, MPI_INT, one.data(), count, MPI_INT, 0, MPI_COMM_WORLD);
    } else if (is("allgather")) {
        code =
            MPI_Allgather(one.data(), count, MPI_INT, many.data(), count, MPI_INT, MPI_COMM_WORLD);
    } else if (is("alltoall")) {
        std::vector<int> other(many.size());
        code =
            MPI_Alltoall(many.data(), count, MPI_INT, other.data(), count, MPI_INT, MPI_COMM_WORLD);
    } else if (is("reduce")) {
        MPI_Reduce(one.data(), many.data(), count, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    } else if (is("allreduce")) {
        code = MPI_Allreduce(one.data(), many.data(), count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    } else if (is("reduce_scatter")) {
        MPI_Reduce_scatter_block(many.data(), one.data(), count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    } else if (is("scan")) {
        MPI_Scan(one.data(), many.data(), count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    } else if (rank == size - 1) { // "kind"
        MPI_Barrier(MPI_COMM_WORLD);
    } else {
        MPI_Bcast(one.data(), 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    std::puts(code == MPI_SUCCESS ? "not noticed" : "returned");
    return 0;
}
