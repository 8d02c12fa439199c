/* Queries of ranks, sizes and datatypes: their short ways ask for a predefined type without gaps,
 * a communicator that lives and a rank that no tool observes. */
#include <mpi.h>
#include <pthread.h>

#include "check.h"

static int class_of(int code) {
    int error_class = -1;
    MPI_Error_class(code, &error_class);
    return error_class;
}

static void* query(void* result) {
    CHECK(MPI_Comm_rank(MPI_COMM_WORLD, (int*)result) == MPI_SUCCESS);
    return NULL;
}

static void communicators(int rank, int size) {
    int got = -1;
    MPI_Comm turned;
    MPI_Comm_split(MPI_COMM_WORLD, 0, size - rank, &turned);
    CHECK(MPI_Comm_rank(turned, &got) == MPI_SUCCESS && got == size - 1 - rank);
    CHECK(MPI_Comm_size(turned, &got) == MPI_SUCCESS && got == size);
    CHECK(MPI_Comm_size(MPI_COMM_SELF, &got) == MPI_SUCCESS && got == 1);
    MPI_Comm_free(&turned);
    CHECK(class_of(MPI_Comm_size(MPI_COMM_NULL, &got)) == MPI_ERR_COMM);
    CHECK(class_of(MPI_Comm_size(MPI_COMM_WORLD, NULL)) == MPI_ERR_ARG);
}

static void datatypes(void) {
    int got = -1;
    MPI_Datatype pair;
    MPI_Type_contiguous(2, MPI_DOUBLE, &pair);
    MPI_Count bytes = -1;
    CHECK(MPI_Type_size(pair, &got) == MPI_SUCCESS && got == 2 * (int)sizeof(double));
    CHECK(MPI_Type_size_c(pair, &bytes) == MPI_SUCCESS && bytes == 2 * sizeof(double));
    CHECK(MPI_Type_size_c(MPI_INT, &bytes) == MPI_SUCCESS && bytes == sizeof(int));
    CHECK(MPI_Type_size(MPI_SHORT_INT, &got) == MPI_SUCCESS &&
          got == sizeof(short) + sizeof(int)); /* without its gap */
    CHECK(class_of(MPI_Type_size(MPI_DATATYPE_NULL, &got)) == MPI_ERR_TYPE);
    CHECK(class_of(MPI_Type_size(MPI_INT, NULL)) == MPI_ERR_ARG);
    MPI_Type_free(&pair);
}

static void of_another_thread(int rank) {
    pthread_t thread;
    int got = -1;
    CHECK(pthread_create(&thread, NULL, query, &got) == 0 && pthread_join(thread, NULL) == 0);
    CHECK(got == rank);
}

int main(int argc, char** argv) {
    int rank, size, level;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    communicators(rank, size);
    datatypes();
    of_another_thread(rank);
    MPI_Finalize();
    return failures != 0;
}
