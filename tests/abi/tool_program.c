/* Sends three messages and asks the tool how many it saw. */
#include <mpi.h>

int main(int argc, char** argv) {
    int i;
    int value = 7;
    MPI_Init(&argc, &argv);
    for (i = 0; i < 3; ++i) {
        MPI_Send(&value, 1, MPI_INT, MPI_PROC_NULL, i, MPI_COMM_WORLD);
    }
    i = MPI_Pcontrol(1234);
    MPI_Finalize();
    return i == 3 ? 0 : 1;
}
