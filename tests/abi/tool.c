/* A profiling tool: counts the sends of a program and passes them on. */
#include <mpi.h>

static int sends;

int MPI_Send(const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm) {
    ++sends;
    return PMPI_Send(buf, count, datatype, dest, tag, comm);
}

/* How the program asks: a level that means nothing to anybody else. */
int MPI_Pcontrol(const int level, ...) {
    return level == 1234 ? sends : PMPI_Pcontrol(level);
}
