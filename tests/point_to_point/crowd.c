/*
 * Everybody writes to rank 0 at once, more than its queue has room for, and waits for the answer;
 * rank 0 takes them in the order of ranks, so that most are unexpected. Whoever has found no room
 * must get some, however many are quicker than it.
 */
#include <mpi.h>
#include <stdlib.h>

#include "check.h"

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank;
    int ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const int rounds = argc > 1 ? atoi(argv[1]) : 20;
    for (int round = 0; round < rounds; round++) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank != 0) {
            int word = 1000 * round + rank;
            MPI_Send(&word, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
            MPI_Recv(&word, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK(word == round, "round %d", round);
            continue;
        }
        for (int other = 1; other < ranks; other++) {
            int word = -1;
            MPI_Recv(&word, 1, MPI_INT, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK(word == 1000 * round + other, "%d from %d", word, other);
        }
        for (int other = 1; other < ranks; other++)
            MPI_Send(&round, 1, MPI_INT, other, 2, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
