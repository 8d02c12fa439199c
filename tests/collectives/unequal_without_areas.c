/* Calls of two ranks that do not match end with errors, also when the node has no memory left for
 * large data of one more communicator: then one call takes messages and the other doesn't. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { holders = 20, bytes = 200000 };

static char own[bytes], all[2 * bytes];

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
    for (int first = 0; first < 2; first++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
        const int error = rank == first
                              ? MPI_Barrier(comm)
                              : MPI_Allgather(own, bytes, MPI_CHAR, all, bytes, MPI_CHAR, comm);
        if (error == MPI_SUCCESS) {
            fprintf(stderr, "rank %d: a call that does not match succeeded\n", rank);
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
