/* Two worlds that talk all the time, for kills.py: the first argument is a mark of the job, the
   second one "stay" (one spawned world, for ever) or "cycle" (worlds one after the other, for two
   seconds). */
#include <stdio.h>
#include <string.h>

#include <mpi.h>

enum { rounds_of_a_cycle = 3, rounds_per_merge = 7, bytes = 40000 };
static const double seconds_of_cycles = 2;

static int rank;

/* Collectives, messages of several blocks, and communicators of both worlds. */
static void talk(MPI_Comm inter, int is_child, int rounds) {
    static char data[bytes];
    for (int round = 0; rounds == 0 || round < rounds; ++round) {
        int one = 1, sum = 0;
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, inter);
        if (round % rounds_per_merge == 0) {
            MPI_Comm merged;
            MPI_Intercomm_merge(inter, is_child, &merged);
            MPI_Barrier(merged);
            MPI_Comm_free(&merged);
        }
        if (rank == 0) {
            MPI_Sendrecv_replace(data, bytes, MPI_CHAR, 0, 0, 0, 0, inter, MPI_STATUS_IGNORE);
        }
    }
}

int main(int argc, char** argv) {
    MPI_Comm parent, children;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_get_parent(&parent);
    const int rounds = strcmp(argv[2], "cycle") == 0 ? rounds_of_a_cycle : 0;
    if (parent != MPI_COMM_NULL) {
        talk(parent, 1, rounds);
        MPI_Comm_disconnect(&parent);
        MPI_Finalize();
        return 0;
    }
    if (rank == 0) {
        printf("starts\n");
        fflush(stdout);
    }
    const double begin = MPI_Wtime();
    int goes_on = 1;
    for (int cycle = 0; goes_on; ++cycle) {
        MPI_Comm_spawn(argv[0], argv + 1, 1 + (cycle + 1) % 3, MPI_INFO_NULL, 0, MPI_COMM_WORLD,
                       &children, MPI_ERRCODES_IGNORE);
        talk(children, 0, rounds);
        MPI_Comm_disconnect(&children);
        goes_on = MPI_Wtime() - begin < seconds_of_cycles;
        MPI_Bcast(&goes_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
