// What the programs of this folder share: expectations, and the world's size. Runs on any MPI.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <mpi.h>
#include <vector>

inline int world_rank = 0;
inline int world_size = 1;
inline int failures = 0;

inline void expect(bool holds, const char* what, const char* file, int line) {
    if (!holds && ++failures < 20) {
        std::printf("rank %d: %s:%d: %s\n", world_rank, file, line, what);
    }
}

#define EXPECT(condition) expect((condition), #condition, __FILE__, __LINE__)

// The class of an error code.
inline int class_of(int code) {
    int error_class;
    MPI_Error_class(code, &error_class);
    return error_class;
}

inline int size_of(MPI_Comm comm) {
    int size;
    MPI_Comm_size(comm, &size);
    return size;
}

inline int rank_in(MPI_Comm comm) {
    int rank;
    MPI_Comm_rank(comm, &rank);
    return rank;
}

// The members of a group as ranks of the world.
inline std::vector<int> members_of(MPI_Group group) {
    MPI_Group world;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    int size;
    MPI_Group_size(group, &size);
    std::vector<int> ranks, members(static_cast<std::size_t>(size));
    for (int r = 0; r < size; ++r) {
        ranks.push_back(r);
    }
    MPI_Group_translate_ranks(group, size, ranks.data(), world, members.data());
    MPI_Group_free(&world);
    return members;
}

// Starts, with errors as codes; and ends with the verdict of all ranks as the exit code.
inline void start(int* argc, char*** argv) {
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
}

inline int finish() {
    int all = 0;
    MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return all == 0 ? 0 : 1;
}
