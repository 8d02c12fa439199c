/* What the test programs of this folder share: checks that say what went wrong, and patterns. */
#ifndef CHECK_H
#define CHECK_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ends the whole job with a sentence when the condition does not hold. */
#define CHECK(condition, ...)                                                                      \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            int check_rank = -1;                                                                   \
            MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);                                            \
            fprintf(stderr, "%s:%d: rank %d: not %s: ", __FILE__, __LINE__, check_rank,            \
                    #condition);                                                                   \
            fprintf(stderr, __VA_ARGS__);                                                          \
            fprintf(stderr, "\n");                                                                 \
            MPI_Abort(MPI_COMM_WORLD, 1);                                                          \
        }                                                                                          \
    } while (0)

/* Every protocol: nothing, inline cells, several cells, chunks, single copies. */
static const int check_sizes[] = {0,     1,      7,      8,      63,      64,     65,    200,
                                  1024,  4096,   8191,   8192,   8193,    16384,  32768, 65536,
                                  65537, 131072, 262144, 500001, 1048576, 3000000};
#define CHECK_SIZES ((int)(sizeof check_sizes / sizeof check_sizes[0]))
#define CHECK_LARGEST 3000000

static inline unsigned char check_byte(unsigned seed, size_t i) {
    return (unsigned char)((i * 2654435761u + seed * 40503u + (i >> 8)) >> 3);
}

static inline void check_fill(void* data, size_t bytes, unsigned seed) {
    for (size_t i = 0; i < bytes; i++) {
        ((unsigned char*)data)[i] = check_byte(seed, i);
    }
}

static inline void check_pattern(const void* data, size_t bytes, unsigned seed, const char* what) {
    for (size_t i = 0; i < bytes; i++) {
        CHECK(((const unsigned char*)data)[i] == check_byte(seed, i),
              "%s: byte %zu of %zu is %d, expected %d", what, i, bytes,
              ((const unsigned char*)data)[i], check_byte(seed, i));
    }
}

/* Source, tag and number of bytes of a received message. */
static inline void check_status(const MPI_Status* status, int source, int tag, int bytes,
                                const char* what) {
    int count = -1;
    MPI_Get_count(status, MPI_BYTE, &count);
    CHECK(status->MPI_SOURCE == source, "%s: source %d, expected %d", what, status->MPI_SOURCE,
          source);
    CHECK(status->MPI_TAG == tag, "%s: tag %d, expected %d", what, status->MPI_TAG, tag);
    CHECK(count == bytes, "%s: %d bytes, expected %d", what, count, bytes);
}

/* The standard's empty status. */
static inline void check_empty(const MPI_Status* status, const char* what) {
    int cancelled = -1;
    check_status(status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0, what);
    MPI_Test_cancelled(status, &cancelled);
    CHECK(cancelled == 0, "%s: cancelled in an empty status", what);
}

static inline int check_class(int code) {
    int error_class = -1;
    MPI_Error_class(code, &error_class);
    return error_class;
}

static inline unsigned char* check_buffer(size_t bytes) {
    unsigned char* buffer = malloc(bytes ? bytes : 1);
    CHECK(buffer != NULL, "no memory for %zu bytes", bytes);
    return buffer;
}

/* The ranks; a message on rank 0 and a successful end when there are too few. */
static inline void check_ranks(int* rank, int* size, int needed) {
    MPI_Comm_rank(MPI_COMM_WORLD, rank);
    MPI_Comm_size(MPI_COMM_WORLD, size);
    if (*size < needed) {
        if (*rank == 0) {
            fprintf(stderr, "needs %d ranks\n", needed);
        }
        MPI_Finalize();
        exit(1);
    }
}

#endif
