/* Two libraries, one in C and one in C++ with its own copy of Warren's functions, ask about the
   node from threads, while the MPI library does so for communicators and memory: all of them, in
   all ranks, share one image and get the same answers. Prints "one image" where that is so. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <warren/topology.h>

#include "asking.h"

enum { threads = 4, turns = 15, questions = 2000 };

struct asker {
    pthread_t thread;
    int (*ask)(unsigned, struct answers*);
    struct answers answers;
    int wrong;
};

static void* ask(void* given) {
    struct asker* asker = given;
    for (int turn = 0; turn < turns && !asker->wrong; ++turn) {
        struct answers now = {0, 0, 0};
        asker->wrong =
            asker->ask(questions, &now) ||
            (turn > 0 && (now.sum != asker->answers.sum || now.file != asker->answers.file));
        asker->answers = now;
    }
    return NULL;
}

static int mpi_asks(void) {
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "warren_memory", "bandwidth,capacity");
    MPI_Info_set(info, "mpi_hw_resource_type", "Core");
    int wrong = 0;
    for (int turn = 0; turn < turns; ++turn) {
        char* memory = NULL;
        MPI_Comm core;
        wrong |= MPI_Alloc_mem(100000, info, &memory) != MPI_SUCCESS;
        memory[99999] = 1;
        wrong |= MPI_Free_mem(memory) != MPI_SUCCESS;
        wrong |= MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_GUIDED, 0, info, &core) !=
                 MPI_SUCCESS;
        if (core != MPI_COMM_NULL) {
            MPI_Comm_free(&core);
        }
    }
    MPI_Info_free(&info);
    return wrong;
}

int main(int count, char** words) {
    int provided = 0;
    int rank = 0;
    struct asker askers[threads] = {{0}};
    MPI_Init_thread(&count, &words, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < threads; ++i) {
        askers[i].ask = i % 2 == 0 ? c_library_asks : cpp_library_asks;
        pthread_create(&askers[i].thread, NULL, ask, &askers[i]);
    }
    int wrong = provided != MPI_THREAD_MULTIPLE || mpi_asks();
    /* Of all threads of all ranks the same: so least and greatest are equal. */
    uint64_t least[3] = {UINT64_MAX, UINT64_MAX, UINT64_MAX};
    uint64_t greatest[3] = {0, 0, 0};
    for (int i = 0; i < threads; ++i) {
        pthread_join(askers[i].thread, NULL);
        const struct answers* own = &askers[i].answers;
        const uint64_t said[3] = {own->sum, own->file, (uint64_t)own->way};
        wrong |= askers[i].wrong;
        for (int what = 0; what < 3; ++what) {
            least[what] = said[what] < least[what] ? said[what] : least[what];
            greatest[what] = said[what] > greatest[what] ? said[what] : greatest[what];
        }
    }
    MPI_Allreduce(MPI_IN_PLACE, least, 3, MPI_UINT64_T, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, greatest, 3, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    for (int what = 0; what < 3; ++what) {
        wrong |= least[what] != greatest[what];
    }
    wrong |= least[1] == 0 || least[2] != WARREN_TOPOLOGY_NODE;
    if (rank == 0 && !wrong) {
        printf("one image\n");
    }
    MPI_Finalize();
    return wrong;
}
