/* Everybody sends random sizes to everybody at once, many messages under way, and every byte
 * counts. */
#include "check.h"

enum { rounds = 6, per_pair = 5, largest = 60000 };

static int size_of(int from, int to, int k, int round) {
    const unsigned mixed = (unsigned)(from * 7919 + to * 104729 + k * 1299709 + round * 15485863);
    const unsigned chosen = mixed * 2654435761u >> 7;
    switch (chosen % 4) {
    case 0:
        return (int)(chosen / 4 % 64);
    case 1:
        return (int)(chosen / 4 % 1024);
    case 2:
        return (int)(chosen / 4 % 10000);
    default:
        return (int)(chosen / 4 % largest);
    }
}

int main(int argc, char** argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    check_ranks(&rank, &size, 1);
    const int count = size * per_pair;
    unsigned char** out = malloc((size_t)count * sizeof *out);
    unsigned char** in = malloc((size_t)count * sizeof *in);
    MPI_Request* requests = malloc(2 * (size_t)count * sizeof *requests);
    MPI_Status* statuses = malloc(2 * (size_t)count * sizeof *statuses);
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < count; i++) {
            /* Message k to and from rank i % size; the order of peers differs between ranks. */
            const int other = (i + rank) % size, k = i / size;
            const int out_bytes = size_of(rank, other, k, round);
            const int in_bytes = size_of(other, rank, k, round);
            out[i] = check_buffer((size_t)out_bytes);
            in[i] = check_buffer((size_t)in_bytes);
            check_fill(out[i], (size_t)out_bytes, (unsigned)(rank * 1000 + other * 10 + k));
            MPI_Isend(out[i], out_bytes, MPI_BYTE, other, k, MPI_COMM_WORLD, &requests[count + i]);
            MPI_Irecv(in[i], in_bytes, MPI_BYTE, other, k, MPI_COMM_WORLD, &requests[i]);
        }
        MPI_Waitall(2 * count, requests, statuses);
        for (int i = 0; i < count; i++) {
            const int other = (i + rank) % size, k = i / size;
            const int bytes = size_of(other, rank, k, round);
            check_status(&statuses[i], other, k, bytes, "all pairs");
            check_pattern(in[i], (size_t)bytes, (unsigned)(other * 1000 + rank * 10 + k),
                          "all pairs");
            free(out[i]);
            free(in[i]);
        }
    }
    free(out);
    free(in);
    free(requests);
    free(statuses);
    MPI_Finalize();
    return 0;
}
