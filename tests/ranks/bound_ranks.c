/* Threads that are ranks (warren/ranks.h): who is who, what each has of its own, and what they are
   told when they do it wrong.
       bound_ranks           everything that should work
       bound_ranks unbound   a thread that is no rank calls MPI_Init
       bound_ranks abort     the second rank of the first process aborts with code 7
       bound_ranks absent    the last rank never calls MPI, and its process exits */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "warren/ranks.h"

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

enum { most_threads = 64, large = 1 << 20 };

static const char* mode = "";
static int before_first[most_threads]; /* world rank of each thread */

static void* other_thread_of_the_rank(void* argument) {
    int number = *(const int*)argument;
    int flag = -1;
    REQUIRE(warren_rank_bind(number) == WARREN_RANK_SUCCESS);
    REQUIRE(MPI_Is_thread_main(&flag) == MPI_SUCCESS && flag == 0);
    int rank = -1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    REQUIRE(rank == before_first[number]);
    return NULL;
}

static void compare_messages(int rank, int size) {
    /* Sizes around every change of road; types with gaps on one side or both. */
    static const int counts[] = {0, 1, 40, 41, 256, 257, 2048, 2049, 8192, 8193, 100000, large};
    int to = (rank + 1) % size;
    int from = (rank + size - 1) % size;
    unsigned char* out = malloc(2 * (size_t)large);
    unsigned char* in = malloc(2 * (size_t)large);
    MPI_Datatype every_other;
    MPI_Type_vector(1, 1, 2, MPI_BYTE, &every_other);
    MPI_Type_create_resized(every_other, 0, 2, &every_other);
    MPI_Type_commit(&every_other);
    for (int shape = 0; shape < 4; shape++) {
        MPI_Datatype sent = shape & 1 ? every_other : MPI_BYTE;
        MPI_Datatype received = shape & 2 ? every_other : MPI_BYTE;
        for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
            int count = counts[c];
            for (int i = 0; i < 2 * count; i++)
                out[i] = (unsigned char)(rank * 31 + (shape & 1 ? i / 2 : i));
            memset(in, 0xee, 2 * (size_t)large);
            MPI_Request requests[2];
            MPI_Irecv(in, count, received, from, 5, MPI_COMM_WORLD, &requests[0]);
            if (c % 2 == 0)
                MPI_Isend(out, count, sent, to, 5, MPI_COMM_WORLD, &requests[1]);
            else
                MPI_Issend(out, count, sent, to, 5, MPI_COMM_WORLD, &requests[1]);
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
            for (int i = 0; i < count; i++)
                REQUIRE(in[shape & 2 ? 2 * i : i] == (unsigned char)(from * 31 + i));
            REQUIRE(count == large || in[shape & 2 ? 2 * count : count] == 0xee);
        }
    }
    /* A receive with less room than the message. */
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Request request;
    MPI_Isend(out, large, MPI_BYTE, to, 6, MPI_COMM_WORLD, &request);
    memset(in, 0xee, (size_t)large);
    int code = MPI_Recv(in, 50000, MPI_BYTE, from, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    int class = 0;
    MPI_Error_class(code, &class);
    REQUIRE(class == MPI_ERR_TRUNCATE && in[50000] == 0xee);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Type_free(&every_other);
    free(out);
    free(in);
}

static void* rank_main(void* argument) {
    int number = *(const int*)argument;
    int flag = -1;
    if (strcmp(mode, "unbound") == 0) {
        MPI_Init(NULL, NULL);
        return NULL;
    }
    REQUIRE(warren_rank_bind(-1) == WARREN_RANK_ERR_ARG);
    REQUIRE(warren_rank_bind(warren_rank_count()) == WARREN_RANK_ERR_ARG);
    REQUIRE(warren_rank_bind(number) == WARREN_RANK_SUCCESS);
    REQUIRE(warren_rank_bind(number) == WARREN_RANK_SUCCESS);
    if (warren_rank_count() > 1)
        REQUIRE(warren_rank_bind((number + 1) % warren_rank_count()) == WARREN_RANK_ERR_USE);
    if (strcmp(mode, "absent") == 0 && number == warren_rank_count() - 1) {
        sleep(1);
        exit(0);
    }
    MPI_Initialized(&flag);
    REQUIRE(flag == 0);
    int provided = -1;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
    REQUIRE(provided == MPI_THREAD_MULTIPLE);
    int rank = -1, size = -1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    REQUIRE(rank % warren_rank_count() == number);
    before_first[number] = rank;
    MPI_Is_thread_main(&flag);
    REQUIRE(flag == 1);
    if (strcmp(mode, "abort") == 0) {
        if (rank == 1)
            MPI_Abort(MPI_COMM_WORLD, 7);
        MPI_Recv(NULL, 0, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    if (strcmp(mode, "absent") == 0)
        MPI_Recv(NULL, 0, MPI_BYTE, size - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);

    pthread_t other;
    pthread_create(&other, NULL, other_thread_of_the_rank, argument);
    pthread_join(other, NULL);

    /* What belongs to a rank alone: handles, attributes, info objects. */
    int keyval = MPI_KEYVAL_INVALID;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &keyval, NULL);
    MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, &before_first[number]);
    compare_messages(rank, size);
    int* found = NULL;
    MPI_Comm_get_attr(MPI_COMM_WORLD, keyval, &found, &flag);
    REQUIRE(flag && *found == rank);
    MPI_Comm_free_keyval(&keyval);

    MPI_Comm node;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    int neighbours = -1;
    MPI_Comm_size(node, &neighbours);
    REQUIRE(neighbours == size);
    long mine = rank + 1, sum = 0;
    MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, node);
    REQUIRE(sum == (long)size * (size + 1) / 2);
    MPI_Comm_free(&node);

    MPI_Finalize();
    MPI_Finalized(&flag);
    REQUIRE(flag == 1);
    return NULL;
}

int main(int argc, char** argv) {
    mode = argc > 1 ? argv[1] : "";
    int count = warren_rank_count();
    REQUIRE(count >= 1 && count <= most_threads);
    pthread_t threads[most_threads];
    int numbers[most_threads];
    for (int t = 0; t < count; t++) {
        numbers[t] = t;
        pthread_create(&threads[t], NULL, rank_main, &numbers[t]);
    }
    for (int t = 0; t < count; t++)
        pthread_join(threads[t], NULL);
    return 0;
}
