/* Initialises MPI and ends: with another library in front of Warren's, nobody would notice. With an
   argument it takes a while before, in which mpiexec looks. */
#include <mpi.h>
#include <unistd.h>

int main(int argc, char** argv) {
    if (argc > 1) {
        sleep(3);
    }
    MPI_Init(&argc, &argv);
    return 0;
}
