/* Persistent requests of all modes can be started again and again, and are inactive in between. */
#include "check.h"

enum { rounds = 20, modes = 4 };

static void make(unsigned char* data[modes], int bytes, int rank, MPI_Request requests[modes]) {
    if (rank == 0) {
        MPI_Send_init(data[0], bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &requests[0]);
        MPI_Bsend_init(data[1], bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &requests[1]);
        MPI_Ssend_init(data[2], bytes, MPI_BYTE, 1, 2, MPI_COMM_WORLD, &requests[2]);
        MPI_Rsend_init(data[3], bytes, MPI_BYTE, 1, 3, MPI_COMM_WORLD, &requests[3]);
    } else if (rank == 1) {
        for (int i = 0; i < modes; i++) {
            MPI_Recv_init(data[i], bytes, MPI_BYTE, i % 2 ? MPI_ANY_SOURCE : 0, i, MPI_COMM_WORLD,
                          &requests[i]);
        }
    }
}

/* Not started yet: complete with an empty status, and still there. */
static void check_inactive(MPI_Request* request) {
    MPI_Status status;
    int flag = 0;
    memset(&status, 0x55, sizeof status);
    MPI_Wait(request, &status);
    check_empty(&status, "MPI_Wait of an inactive request");
    MPI_Test(request, &flag, &status);
    CHECK(flag, "MPI_Test of an inactive request");
    CHECK(*request != MPI_REQUEST_NULL, "an inactive request vanished");
}

static void receive_round(unsigned char* data[modes], int bytes, int round,
                          MPI_Request requests[modes]) {
    MPI_Status statuses[modes];
    MPI_Startall(modes, requests);
    MPI_Send(NULL, 0, MPI_BYTE, 0, 99, MPI_COMM_WORLD);
    MPI_Waitall(modes, requests, statuses);
    for (int i = 0; i < modes; i++) {
        CHECK(requests[i] != MPI_REQUEST_NULL, "MPI_Waitall freed request %d", i);
        check_status(&statuses[i], 0, i, bytes, "persistent receive");
        check_pattern(data[i], (size_t)bytes, (unsigned)(100 * round + i), "persistent send");
    }
}

static void send_round(unsigned char* data[modes], int bytes, int round,
                       MPI_Request requests[modes]) {
    MPI_Status status;
    MPI_Recv(NULL, 0, MPI_BYTE, 1, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < modes; i++) {
        check_fill(data[i], (size_t)bytes, (unsigned)(100 * round + i));
        MPI_Start(&requests[i]);
    }
    for (int i = 0; i < modes; i++) {
        int index = -1;
        MPI_Waitany(modes, requests, &index, &status);
        CHECK(index >= 0 && index < modes, "MPI_Waitany gives index %d", index);
        CHECK(requests[index] != MPI_REQUEST_NULL, "MPI_Waitany freed request %d", index);
    }
    int index = -1;
    MPI_Waitany(modes, requests, &index, &status);
    CHECK(index == MPI_UNDEFINED, "all are inactive, but MPI_Waitany gives %d", index);
}

int main(int argc, char** argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    check_ranks(&rank, &size, 2);
    const int sizes[] = {0, 8, 5000, 200000};
    unsigned char* data[modes];
    MPI_Request requests[modes];
    const int space_bytes = 200000 + MPI_BSEND_OVERHEAD;
    void* space = check_buffer((size_t)space_bytes);
    MPI_Buffer_attach(space, space_bytes);
    for (int i = 0; i < modes; i++) {
        data[i] = check_buffer(200000);
    }
    for (int s = 0; s < 4; s++) {
        const int bytes = sizes[s];
        make(data, bytes, rank, requests);
        if (rank <= 1) {
            check_inactive(&requests[0]);
        }
        for (int round = 0; round < rounds; round++) {
            if (rank == 1) {
                receive_round(data, bytes, round, requests);
            } else if (rank == 0) {
                send_round(data, bytes, round, requests);
            }
        }
        if (rank <= 1) {
            for (int i = 0; i < modes; i++) {
                MPI_Request_free(&requests[i]);
                CHECK(requests[i] == MPI_REQUEST_NULL, "MPI_Request_free leaves the handle");
            }
        }
    }
    MPI_Buffer_detach(&space, &(int){0});
    free(space);
    for (int i = 0; i < modes; i++) {
        free(data[i]);
    }
    MPI_Finalize();
    return 0;
}
