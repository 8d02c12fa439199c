/* Sendrecv, its replacing and nonblocking forms: in a ring, at an open end, and to oneself.
 * The status is the receive's in all of them (MPICH 5.0.2 gets that of MPI_Isendrecv wrong). */
#include "check.h"

static void shift(int rank, int size, int bytes, int form, int to, int from, unsigned char* out,
                  unsigned char* in) {
    MPI_Status status;
    MPI_Request request;
    const int tag = 7, expected_bytes = from == MPI_PROC_NULL ? 0 : bytes;
    check_fill(out, (size_t)bytes, (unsigned)rank);
    memset(in, 0x77, (size_t)bytes);
    (void)size;
    switch (form) {
    case 0:
        MPI_Sendrecv(out, bytes, MPI_BYTE, to, tag, in, bytes, MPI_BYTE, from, tag, MPI_COMM_WORLD,
                     &status);
        break;
    case 1:
        memcpy(in, out, (size_t)bytes);
        MPI_Sendrecv_replace(in, bytes, MPI_BYTE, to, tag, from, tag, MPI_COMM_WORLD, &status);
        break;
    case 2:
        MPI_Isendrecv(out, bytes, MPI_BYTE, to, tag, in, bytes, MPI_BYTE, from, tag, MPI_COMM_WORLD,
                      &request);
        MPI_Wait(&request, &status);
        break;
    default:
        memcpy(in, out, (size_t)bytes);
        MPI_Isendrecv_replace(in, bytes, MPI_BYTE, to, tag, from, tag, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, &status);
    }
    if (from == MPI_PROC_NULL) {
        check_status(&status, MPI_PROC_NULL, MPI_ANY_TAG, 0, "from MPI_PROC_NULL");
        if (form % 2 == 1) {
            check_pattern(in, (size_t)bytes, (unsigned)rank,
                          "nothing came: the buffer is as it was");
        }
    } else {
        check_status(&status, from, tag, expected_bytes, "shift");
        check_pattern(in, (size_t)bytes, (unsigned)from, "shift");
    }
}

int main(int argc, char** argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    check_ranks(&rank, &size, 1);
    unsigned char* out = check_buffer(CHECK_LARGEST);
    unsigned char* in = check_buffer(CHECK_LARGEST);
    const int right = (rank + 1) % size, left = (rank + size - 1) % size;
    for (int i = 0; i < CHECK_SIZES; i++) {
        for (int form = 0; form < 4; form++) {
            shift(rank, size, check_sizes[i], form, right, left, out, in);
            shift(rank, size, check_sizes[i], form, left, right, out, in);
            shift(rank, size, check_sizes[i], form, rank == size - 1 ? MPI_PROC_NULL : right,
                  rank == 0 ? MPI_PROC_NULL : left, out, in);
            shift(rank, size, check_sizes[i], form, rank, rank, out, in);
        }
    }
    /* Different sizes and tags both ways. */
    MPI_Status status;
    check_fill(out, 1000, (unsigned)rank);
    MPI_Sendrecv(out, rank % 2 ? 1000 : 10, MPI_BYTE, right, rank % 2, in, 1000, MPI_BYTE, left,
                 MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    check_status(&status, left, left % 2, left % 2 ? 1000 : 10, "different sizes");
    free(out);
    free(in);
    MPI_Finalize();
    return 0;
}
