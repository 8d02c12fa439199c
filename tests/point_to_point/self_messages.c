/* Messages of a rank to itself, on the world and on MPI_COMM_SELF, in every size and order. */
#include "check.h"

static void through(MPI_Comm comm) {
    int me;
    unsigned char* out = check_buffer(CHECK_LARGEST);
    unsigned char* in = check_buffer(CHECK_LARGEST);
    MPI_Comm_rank(comm, &me);
    for (int i = 0; i < CHECK_SIZES; i++) {
        const int bytes = check_sizes[i];
        MPI_Request requests[2];
        MPI_Status status;
        check_fill(out, (size_t)bytes, (unsigned)i);
        /* Receive posted first. */
        MPI_Irecv(in, bytes, MPI_BYTE, me, 1, comm, &requests[0]);
        MPI_Send(out, bytes, MPI_BYTE, me, 1, comm);
        MPI_Wait(&requests[0], &status);
        check_status(&status, me, 1, bytes, "posted first");
        check_pattern(in, (size_t)bytes, (unsigned)i, "posted first");
        MPI_Irecv(in, bytes, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &requests[0]);
        MPI_Ssend(out, bytes, MPI_BYTE, me, 2, comm);
        MPI_Wait(&requests[0], &status);
        check_status(&status, me, 2, bytes, "synchronous");
        /* Send started first. */
        memset(in, 0, (size_t)bytes);
        MPI_Isend(out, bytes, MPI_BYTE, me, 3, comm, &requests[0]);
        MPI_Issend(out, bytes, MPI_BYTE, me, 4, comm, &requests[1]);
        MPI_Probe(me, 4, comm, &status);
        check_status(&status, me, 4, bytes, "probed");
        MPI_Recv(in, bytes, MPI_BYTE, me, 4, comm, &status);
        check_pattern(in, (size_t)bytes, (unsigned)i, "the second of two");
        memset(in, 0, (size_t)bytes);
        MPI_Recv(in, bytes, MPI_BYTE, MPI_ANY_SOURCE, 3, comm, &status);
        check_status(&status, me, 3, bytes, "sent first");
        check_pattern(in, (size_t)bytes, (unsigned)i, "sent first");
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
    free(out);
    free(in);
}

/* Buffered: small data and large, sent before it is received. */
static void buffered(MPI_Comm comm) {
    const int sizes[] = {8, 65536, 65537, CHECK_LARGEST};
    const int room = 2 * CHECK_LARGEST + 4 * MPI_BSEND_OVERHEAD;
    unsigned char* out = check_buffer(CHECK_LARGEST);
    unsigned char* in = check_buffer(CHECK_LARGEST);
    unsigned char* buffer = check_buffer((size_t)room);
    unsigned char* detached;
    int me, size;
    MPI_Comm_rank(comm, &me);
    for (int automatic = 0; automatic < 2; automatic++) {
        if (automatic) {
            MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0);
        } else {
            MPI_Buffer_attach(buffer, room);
        }
        for (int i = 0; i < 4; i++) {
            MPI_Status status;
            MPI_Request flush;
            for (int message = 0; message < 2; message++) {
                check_fill(out, (size_t)sizes[i], (unsigned)(i + message));
                MPI_Bsend(out, sizes[i], MPI_BYTE, me, message, comm);
            }
            MPI_Buffer_iflush(&flush);
            for (int message = 0; message < 2; message++) {
                MPI_Recv(in, sizes[i], MPI_BYTE, me, message, comm, &status);
                check_status(&status, me, message, sizes[i], "buffered");
                check_pattern(in, (size_t)sizes[i], (unsigned)(i + message), "buffered");
            }
            MPI_Wait(&flush, MPI_STATUS_IGNORE);
        }
        MPI_Buffer_detach(&detached, &size);
    }
    free(buffer);
    free(out);
    free(in);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    through(MPI_COMM_WORLD);
    through(MPI_COMM_SELF);
    buffered(MPI_COMM_WORLD);
    buffered(MPI_COMM_SELF);
    MPI_Finalize();
    return 0;
}
