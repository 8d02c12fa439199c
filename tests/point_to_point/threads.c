/* MPI_THREAD_MULTIPLE: threads of two ranks exchange messages of all kinds at once, each pair on a
 * tag of its own, while others probe and wait for any. */
#include "check.h"

#include <pthread.h>

enum { threads = 4, rounds = 400, largest = 100000 };

static int rank, peer;

static void* exchange(void* argument) {
    const int me = (int)(size_t)argument;
    unsigned char* out = check_buffer(largest);
    unsigned char* in = check_buffer(largest);
    for (int round = 0; round < rounds; round++) {
        static const int sizes[] = {0, 8, 100, 3000, 10000, 100000};
        const int bytes = sizes[(round + me) % 6];
        const unsigned seed = (unsigned)(round * threads + me);
        const int tag = me * 10;
        MPI_Request requests[2];
        MPI_Status status;
        int index;
        check_fill(out, (size_t)bytes, seed + (unsigned)rank);
        memset(in, 0x33, (size_t)bytes);
        switch (round % 4) {
        case 0:
            MPI_Sendrecv(out, bytes, MPI_BYTE, peer, tag, in, bytes, MPI_BYTE, peer, tag,
                         MPI_COMM_WORLD, &status);
            break;
        case 1:
            MPI_Irecv(in, bytes, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &requests[0]);
            MPI_Isend(out, bytes, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &requests[1]);
            for (int left = 2; left > 0; left--) {
                MPI_Status any;
                MPI_Waitany(2, requests, &index, &any);
                if (index == 0) {
                    status = any;
                }
            }
            break;
        case 2:
            MPI_Isend(out, bytes, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &requests[0]);
            MPI_Message message;
            MPI_Mprobe(peer, tag, MPI_COMM_WORLD, &message, &status);
            MPI_Mrecv(in, bytes, MPI_BYTE, &message, &status);
            MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
            break;
        default:
            if (rank < peer) {
                MPI_Ssend(out, bytes, MPI_BYTE, peer, tag, MPI_COMM_WORLD);
                MPI_Recv(in, bytes, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &status);
            } else {
                MPI_Recv(in, bytes, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &status);
                MPI_Ssend(out, bytes, MPI_BYTE, peer, tag, MPI_COMM_WORLD);
            }
        }
        check_status(&status, peer, tag, bytes, "threads");
        check_pattern(in, (size_t)bytes, seed + (unsigned)peer, "threads");
    }
    free(out);
    free(in);
    return NULL;
}

int main(int argc, char** argv) {
    int size, provided = -1;
    pthread_t started[threads];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    CHECK(provided == MPI_THREAD_MULTIPLE, "level %d provided", provided);
    check_ranks(&rank, &size, 1);
    /* Pairs 0-1, 2-3, …; a rank left over talks to itself. */
    peer = (rank ^ 1) < size ? rank ^ 1 : rank;
    if (peer != rank) {
        for (int i = 0; i < threads; i++) {
            pthread_create(&started[i], NULL, exchange, (void*)(size_t)i);
        }
        for (int i = 0; i < threads; i++) {
            pthread_join(started[i], NULL);
        }
    }
    MPI_Finalize();
    return 0;
}
