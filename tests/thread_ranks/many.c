/* As many ranks as there are: a number goes round in a ring, all sum up their ranks, and (of up to
 * a thousand) each sends each its own number, also as blocks with gaps. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static long number; /* each rank's own */

/* Of `count` integers, every second one of a block where there are gaps. */
static int all_to_all(int rank, int size, int count, int gaps) {
    const int width = gaps ? 2 * count : count;
    int* sent = malloc((size_t)size * (size_t)width * sizeof *sent);
    int* received = malloc((size_t)size * (size_t)width * sizeof *received);
    for (int at = 0; at < size * width; ++at) {
        sent[at] = rank * 100003 + at / width;
        received[at] = -1;
    }
    MPI_Datatype block;
    MPI_Datatype spaced;
    MPI_Type_vector(count, 1, gaps ? 2 : 1, MPI_INT, &block);
    MPI_Type_create_resized(block, 0, width * (MPI_Aint)sizeof(int), &spaced);
    MPI_Type_commit(&spaced);
    if (gaps) {
        MPI_Alltoall(sent, 1, spaced, received, 1, spaced, MPI_COMM_WORLD);
    } else if (rank % 2 == 0) { /* not all ranks say it alike */
        MPI_Alltoall(sent, count, MPI_INT, received, 1, spaced, MPI_COMM_WORLD);
    } else {
        MPI_Alltoall(sent, 1, spaced, received, count, MPI_INT, MPI_COMM_WORLD);
    }
    int right = 1;
    for (int at = 0; at < size * width; ++at) {
        right &= received[at] == (gaps && at % width % 2 == 1 ? -1 : at / width * 100003 + rank);
    }
    MPI_Type_free(&block);
    MPI_Type_free(&spaced);
    free(sent);
    free(received);
    return right;
}

int main(int argc, char** argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const int next = (rank + 1) % size;
    const int before = (rank + size - 1) % size;
    if (rank > 0) {
        MPI_Recv(&number, 1, MPI_LONG, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    ++number;
    MPI_Send(&number, 1, MPI_LONG, next, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        MPI_Recv(&number, 1, MPI_LONG, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    long sum = 0;
    const long own = rank;
    MPI_Allreduce(&own, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    int right = sum == (long)size * (size - 1) / 2 && number == (rank == 0 ? size : rank + 1);
    if (size <= 1000) {
        right &= all_to_all(rank, size, 1, 0) & all_to_all(rank, size, 3, 0) &
                 all_to_all(rank, size, 2, 0) & all_to_all(rank, size, 2, 1);
    }
    if (!right) {
        printf("rank %d: number %ld, sum %ld\n", rank, number, sum);
    }
    MPI_Finalize();
    return right ? 0 : 1;
}
