/* For programs whose ranks check that the C library's state is their own: expect() says what is not
   as it is in a process, and finish() is what main returns. */
#ifndef WARREN_TESTS_LIBC_EXPECT_H
#define WARREN_TESTS_LIBC_EXPECT_H

#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

static int world_rank, world_size, failures;

#define expect(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            ++failures;                                                                            \
            dprintf(2, "rank %d, line %d: %s\n", world_rank, __LINE__, #condition);                \
        }                                                                                          \
    } while (0)

static void begin(int* argc, char*** argv) {
    int provided;
    MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
}

static void together(void) {
    MPI_Barrier(MPI_COMM_WORLD);
}

static int finish(void) {
    MPI_Finalize();
    return failures != 0;
}

#endif
