/* Communication with MPI_PROC_NULL does nothing, at once, in every form, and its status says so
 * (that of MPICH 5.0.2's persistent receives doesn't). */
#include "check.h"

int main(int argc, char** argv) {
    int rank, size, value = 42, flag = 0;
    MPI_Status status;
    MPI_Request requests[7];
    MPI_Init(&argc, &argv);
    check_ranks(&rank, &size, 1);
    MPI_Send(&value, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
    MPI_Bsend(&value, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
    MPI_Ssend(&value, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
    MPI_Rsend(&value, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
    memset(&status, 0x55, sizeof status);
    MPI_Recv(&value, 1, MPI_INT, MPI_PROC_NULL, 12, MPI_COMM_WORLD, &status);
    check_status(&status, MPI_PROC_NULL, MPI_ANY_TAG, 0, "MPI_Recv");
    CHECK(value == 42, "MPI_Recv wrote %d", value);
    MPI_Irecv(NULL, 0, MPI_DATATYPE_NULL, rank, 3, MPI_COMM_WORLD, &requests[0]);
    MPI_Send(NULL, 0, MPI_DATATYPE_NULL, rank, 3, MPI_COMM_WORLD);
    MPI_Wait(&requests[0], &status);
    check_status(&status, rank, 3, 0, "MPI_Irecv of nothing");
    MPI_Send(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
    memset(&status, 0x55, sizeof status);
    MPI_Recv(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 12, MPI_COMM_WORLD, &status);
    check_status(&status, MPI_PROC_NULL, MPI_ANY_TAG, 0, "MPI_Recv of no datatype");
    MPI_Isend(&value, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Issend(&value, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &requests[1]);
    MPI_Irecv(&value, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &requests[2]);
    MPI_Wait(&requests[2], &status);
    check_status(&status, MPI_PROC_NULL, MPI_ANY_TAG, 0, "MPI_Irecv");
    MPI_Test(&requests[1], &flag, &status);
    CHECK(flag == 1, "MPI_Issend is not done");
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Send_init(&value, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &requests[3]);
    MPI_Recv_init(&value, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &requests[4]);
    for (int i = 0; i < 3; i++) {
        MPI_Startall(2, &requests[3]);
        MPI_Wait(&requests[3], MPI_STATUS_IGNORE);
        MPI_Wait(&requests[4], &status);
        check_status(&status, MPI_PROC_NULL, MPI_ANY_TAG, 0, "MPI_Recv_init");
    }
    MPI_Request_free(&requests[3]);
    MPI_Request_free(&requests[4]);
    CHECK(value == 42, "something wrote %d", value);
    MPI_Finalize();
    return 0;
}
