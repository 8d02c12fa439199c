// Threads of the program: found to belong to the rank, and kept apart under MPI_THREAD_MULTIPLE.
#include <thread>
#include <vector>

#include <mpi.h>

#include "expect.hpp"

namespace {

constexpr int thread_count = 4;
constexpr int rounds = 200;

// Each thread makes and frees objects of its own, and fails on purpose: tables, handlers and codes
// are shared by all.
void work(int* wrong) {
    int main_thread = -1;
    MPI_Is_thread_main(&main_thread);
    *wrong += main_thread != 0;
    for (int i = 0; i < rounds; ++i) {
        MPI_Datatype type;
        MPI_Type_contiguous(i + 1, MPI_INT, &type);
        MPI_Type_commit(&type);
        MPI_Info info;
        MPI_Info_create(&info);
        MPI_Info_set(info, "key", "value");
        int size = 0;
        MPI_Type_size(type, &size);
        *wrong += size != (i + 1) * static_cast<int>(sizeof(int));
        int error_class = 0;
        MPI_Error_class(MPI_Send(nullptr, 1, type, 0, 0, MPI_COMM_SELF), &error_class);
        *wrong += error_class != MPI_ERR_BUFFER;
        MPI_Info_free(&info);
        MPI_Type_free(&type);
    }
}

} // namespace

int main(int argc, char** argv) {
    int provided = -1;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    EXPECT(provided == MPI_THREAD_MULTIPLE);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    int wrong[thread_count] = {};
    std::vector<std::thread> threads;
    for (int& own : wrong) {
        threads.emplace_back(work, &own);
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    for (const int own : wrong) {
        EXPECT(own == 0);
    }
    MPI_Finalize();
    return failures == 0 ? 0 : 1;
}
