/* What a rank has sent arrives although it computes afterwards, and calls MPI no more for a while.
 *
 *     lingering      (2 ranks on 2 nodes)
 */
#include <mpi.h>
#include <stdio.h>

enum { rounds = 3, messages = 5 };
static const double computes_s = 2;
static const double late_s = 1; /* the patience of a loaded machine */

static void compute(void) {
    const double end = MPI_Wtime() + computes_s;
    volatile double number = 1;
    while (MPI_Wtime() < end) {
        for (int turn = 0; turn < 100000; turn++) {
            number *= 1.000001;
        }
    }
}

int main(int argc, char** argv) {
    int rank, wrong = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    /* In the first round the ranks have not talked to each other before. */
    for (int round = 0; round < rounds; round++) {
        if (rank == 0) {
            for (int number = 0; number < messages; number++) {
                MPI_Send(&number, 1, MPI_INT, 1, round, MPI_COMM_WORLD);
            }
            compute();
        } else {
            const double begin = MPI_Wtime();
            for (int number = 0; number < messages; number++) {
                int got = -1;
                MPI_Recv(&got, 1, MPI_INT, 0, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                wrong += got != number;
            }
            const double took = MPI_Wtime() - begin;
            if (took > late_s) {
                printf("round %d: the messages took %g s\n", round, took);
                wrong++;
            }
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return wrong != 0;
}
