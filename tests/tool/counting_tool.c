/* A profiling tool: counts a rank's calls of two procedures and passes them on to the next tool in
   the row, or to the library. TOOL_CALLS is the name by which a program asks for its counts; each
   tool has another. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>

typedef int (*Send)(const void*, int, MPI_Datatype, int, int, MPI_Comm);
typedef int (*Allreduce)(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm);

static int sends;
static int reductions;
static int constructions;

__attribute__((constructor)) static void construct(void) {
    ++constructions;
}

int MPI_Send(const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm) {
    Send next;
    *(void**)&next = dlsym(RTLD_NEXT, "MPI_Send");
    ++sends;
    return next(buf, count, datatype, dest, tag, comm);
}

int MPI_Allreduce(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
                  MPI_Comm comm) {
    Allreduce next;
    *(void**)&next = dlsym(RTLD_NEXT, "MPI_Allreduce");
    ++reductions;
    return next(sendbuf, recvbuf, count, datatype, op, comm);
}

void TOOL_CALLS(int* own_sends, int* own_reductions);
void TOOL_CALLS(int* own_sends, int* own_reductions) {
    *own_sends = constructions == 1 ? sends : -1;
    *own_reductions = reductions;
}
