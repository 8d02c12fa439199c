/* A posted receive can be cancelled; one whose message has come can't be; others are not disturbed.
 */
#include "check.h"

int main(int argc, char** argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    check_ranks(&rank, &size, 2);
    if (rank == 1) {
        MPI_Request request, other;
        MPI_Status status;
        int value = -1, cancelled = -1, other_value = -1;

        MPI_Irecv(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, &request);
        MPI_Irecv(&other_value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, &other);
        MPI_Cancel(&request);
        MPI_Wait(&request, &status);
        MPI_Test_cancelled(&status, &cancelled);
        CHECK(cancelled == 1, "the receive was not cancelled");
        CHECK(request == MPI_REQUEST_NULL, "MPI_Wait leaves a cancelled request");
        MPI_Send(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
        MPI_Wait(&other, &status);
        MPI_Test_cancelled(&status, &cancelled);
        CHECK(cancelled == 0 && other_value == 11, "the second receive got %d", other_value);
        CHECK(value == -1, "the cancelled receive wrote %d", value);

        /* The message is here already: the cancel comes too late. */
        MPI_Irecv(&value, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, &request);
        MPI_Send(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
        int done = 0;
        while (!done) {
            MPI_Request_get_status(request, &done, &status);
        }
        MPI_Cancel(&request);
        MPI_Wait(&request, &status);
        MPI_Test_cancelled(&status, &cancelled);
        CHECK(cancelled == 0 && value == 22, "a completed receive was cancelled");
        check_status(&status, 0, 2, 4, "after a late cancel");

        /* A persistent one lives on. */
        MPI_Recv_init(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &request);
        MPI_Start(&request);
        MPI_Cancel(&request);
        MPI_Wait(&request, &status);
        MPI_Test_cancelled(&status, &cancelled);
        CHECK(cancelled == 1, "the persistent receive was not cancelled");
        CHECK(request != MPI_REQUEST_NULL, "cancel freed the persistent request");
        MPI_Start(&request);
        MPI_Send(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
        MPI_Wait(&request, &status);
        CHECK(value == 33, "the persistent receive got %d", value);
        MPI_Request_free(&request);

        /* Free after cancel. */
        MPI_Irecv(&value, 1, MPI_INT, 0, 77, MPI_COMM_WORLD, &request);
        MPI_Cancel(&request);
        MPI_Request_free(&request);
    } else if (rank == 0) {
        for (int i = 1; i <= 3; i++) {
            const int value = 11 * i;
            MPI_Recv(NULL, 0, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(&value, 1, MPI_INT, 1, i, MPI_COMM_WORLD);
        }
    }
    MPI_Finalize();
    return 0;
}
