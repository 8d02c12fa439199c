/* Calls of two ranks that do not match end, with errors where ranks wait for each other, also when
 * the node has no memory left for large data of one more communicator: then one call takes messages
 * and the other doesn't, or both do, with algorithms that differ in how many messages each rank
 * waits for. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { holders = 20, bytes = 200000, few = 5000, many = 600000 };

static char own[many], all[2 * bytes + many];

static int barrier_or_allgather(int rank, int first, MPI_Comm comm) {
    return rank == first ? MPI_Barrier(comm)
                         : MPI_Allgather(own, bytes, MPI_CHAR, all, bytes, MPI_CHAR, comm);
}
static int other_size(int rank, int first, MPI_Comm comm) {
    return MPI_Allreduce(own, all, rank == first ? few : many, MPI_CHAR, MPI_MAX, comm);
}
static int other_root(int rank, int first, MPI_Comm comm) {
    return MPI_Bcast(own, bytes, MPI_CHAR, rank == first, comm);
}
static const struct {
    int (*make)(int rank, int first, MPI_Comm comm);
    int may_succeed; /* a root that has sent its data needs nobody */
} calls[] = {{barrier_or_allgather, 0}, {other_size, 0}, {other_root, 1}};

int main(int argc, char** argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size != 2) {
        fprintf(stderr, "needs 2 ranks\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Comm held[holders], comm;
    for (int i = 0; i < holders; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &held[i]);
        MPI_Allgather(own, bytes, MPI_CHAR, all, bytes, MPI_CHAR, held[i]);
    }
    for (int i = 0; i < 2 * (int)(sizeof calls / sizeof calls[0]); i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
        const int error = calls[i / 2].make(rank, i % 2, comm);
        if (error == MPI_SUCCESS && !calls[i / 2].may_succeed) {
            fprintf(stderr, "rank %d: call %d, which does not match, succeeded\n", rank, i);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
        MPI_Comm_free(&comm);
    }
    for (int i = 0; i < holders; i++) {
        MPI_Comm_free(&held[i]);
    }
    MPI_Finalize();
    return 0;
}
