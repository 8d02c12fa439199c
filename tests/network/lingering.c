/* What a rank has sent arrives although it computes afterwards, and calls MPI no more for a while.
 *
 *     lingering             (2 ranks on 2 nodes)
 *     lingering SECONDS     (the receiver comes so much later, for messages of a frame's size)
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { rounds = 3, messages = 5, large = 15000 };
static int data[large];
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
    (void)number;
}

int main(int argc, char** argv) {
    int rank, wrong = 0;
    const double away_s = argc > 1 ? atof(argv[1]) : 0;
    const int count = argc > 1 ? large : 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    /* In the first round the ranks have not talked to each other before. */
    for (int round = 0; round < rounds; round++) {
        if (rank == 0) {
            for (int number = 0; number < messages; number++) {
                data[0] = number;
                MPI_Send(data, count, MPI_INT, 1, round, MPI_COMM_WORLD);
            }
            compute();
        } else {
            usleep((useconds_t)(1e6 * away_s));
            const double begin = MPI_Wtime();
            for (int number = 0; number < messages; number++) {
                data[0] = -1;
                MPI_Recv(data, count, MPI_INT, 0, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                wrong += data[0] != number;
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
