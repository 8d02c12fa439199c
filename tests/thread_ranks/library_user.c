/* A program of which another MPI library is shown by what it says of itself. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
    int rank, size, bytes;
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Get_library_version(version, &bytes);
    if (argc > 1 && rank == 1) {
        MPI_Abort(MPI_COMM_WORLD, 9);
    }
    printf("rank %d of %d, %s\n", rank, size, version);
    MPI_Finalize();
    return 0;
}
