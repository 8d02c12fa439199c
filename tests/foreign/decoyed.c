/* Initialises MPI and ends: with another library in front of Warren's, nobody would notice. */
#include <mpi.h>

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    return 0;
}
