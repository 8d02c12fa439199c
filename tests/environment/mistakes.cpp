// Programs that end by a mistake, chosen by the argument; the test looks at what they say.
#include <cstring>

#include <mpi.h>

int main(int argc, char** argv) {
    const char* mistake = argc > 1 ? argv[1] : "";
    int rank = 0;
    if (std::strcmp(mistake, "before_init") == 0) {
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    }
    MPI_Init(&argc, &argv);
    if (std::strcmp(mistake, "fatal") == 0) {
        MPI_Send(&rank, 1, MPI_INT, 99, 0, MPI_COMM_WORLD);
    }
    if (std::strcmp(mistake, "abort") == 0) {
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    if (std::strcmp(mistake, "twice") == 0) {
        MPI_Init(&argc, &argv);
    }
    MPI_Finalize();
    if (std::strcmp(mistake, "after_finalize") == 0) {
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    }
    return 0;
}
