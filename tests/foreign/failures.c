/* What libraries ask a communicator whose processes may have failed (MPICH's and Open MPI's
 * extensions): here none has. */
#include "check.h"
#include <mpi.h>

int MPIX_Comm_revoke(MPI_Comm);
int MPIX_Comm_is_revoked(MPI_Comm, int*);
int MPIX_Comm_shrink(MPI_Comm, MPI_Comm*);
int MPIX_Comm_agree(MPI_Comm, int*);
int MPIX_Comm_iagree(MPI_Comm, int*, MPI_Request*);
int MPIX_Comm_get_failed(MPI_Comm, MPI_Group*);
int MPIX_Comm_ack_failed(MPI_Comm, int, int*);
int MPIX_Comm_failure_ack(MPI_Comm);
int MPIX_Comm_failure_get_acked(MPI_Comm, MPI_Group*);

static void agreements(int rank, int size) {
    const int expected = size > 1 ? 4 : 5;
    int flag = rank == 0 ? 5 : 6;
    CHECK(MPIX_Comm_agree(MPI_COMM_WORLD, &flag) == MPI_SUCCESS && flag == expected);
    flag = rank == 0 ? 5 : 6;
    MPI_Request request;
    CHECK(MPIX_Comm_iagree(MPI_COMM_WORLD, &flag, &request) == MPI_SUCCESS);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(flag == expected);
}

static void nobody_has_failed(void) {
    MPI_Group failed;
    int count = -1;
    CHECK(MPIX_Comm_get_failed(MPI_COMM_WORLD, &failed) == MPI_SUCCESS);
    CHECK(MPI_Group_size(failed, &count) == MPI_SUCCESS && count == 0);
    CHECK(MPIX_Comm_failure_ack(MPI_COMM_WORLD) == MPI_SUCCESS);
    CHECK(MPIX_Comm_failure_get_acked(MPI_COMM_WORLD, &failed) == MPI_SUCCESS &&
          failed == MPI_GROUP_EMPTY);
    count = -1;
    CHECK(MPIX_Comm_ack_failed(MPI_COMM_WORLD, 3, &count) == MPI_SUCCESS && count == 0);
}

static void shrunk(int rank, int size) {
    MPI_Comm made;
    int result;
    CHECK(MPIX_Comm_shrink(MPI_COMM_WORLD, &made) == MPI_SUCCESS);
    CHECK(MPI_Comm_compare(made, MPI_COMM_WORLD, &result) == MPI_SUCCESS &&
          result == MPI_CONGRUENT);
    int number[2];
    MPI_Comm_rank(made, &number[0]);
    MPI_Comm_size(made, &number[1]);
    CHECK(number[0] == rank && number[1] == size);
    MPI_Comm_free(&made);
}

static void refused(void) {
    int is_revoked = -1;
    int class;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Error_class(MPIX_Comm_revoke(MPI_COMM_WORLD), &class);
    CHECK(class == MPI_ERR_UNSUPPORTED_OPERATION);
    CHECK(MPIX_Comm_is_revoked(MPI_COMM_WORLD, &is_revoked) == MPI_SUCCESS && is_revoked == 0);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Error_class(MPIX_Comm_is_revoked(MPI_COMM_NULL, &is_revoked), &class);
    CHECK(class == MPI_ERR_COMM);
    MPI_Error_class(MPIX_Comm_is_revoked(MPI_COMM_WORLD, NULL), &class);
    CHECK(class == MPI_ERR_ARG);
    MPI_Error_class(MPIX_Comm_get_failed(MPI_COMM_WORLD, NULL), &class);
    CHECK(class == MPI_ERR_ARG);
    MPI_Error_class(MPIX_Comm_ack_failed(MPI_COMM_WORLD, 1, NULL), &class);
    CHECK(class == MPI_ERR_ARG);
    MPI_Error_class(MPIX_Comm_shrink(MPI_COMM_WORLD, NULL), &class);
    CHECK(class == MPI_ERR_ARG);
    MPI_Error_class(MPIX_Comm_agree(MPI_COMM_WORLD, NULL), &class);
    CHECK(class == MPI_ERR_BUFFER || class == MPI_ERR_ARG);
}

int main(int argc, char** argv) {
    int rank;
    int size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    agreements(rank, size);
    nobody_has_failed();
    shrunk(rank, size);
    refused();
    MPI_Finalize();
    return failures;
}
