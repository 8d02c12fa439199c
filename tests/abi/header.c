/* The header in C: what the standard lets a program do with its constants at compile time. */
#include <mpi.h>
#include <stddef.h>

int c90_part(void);

/* Handles initialise statics; numbers are constant expressions. */
static MPI_Comm communicator = MPI_COMM_WORLD;
static const MPI_Datatype types[] = {MPI_INT, MPI_DOUBLE, MPI_DATATYPE_NULL};
static MPI_Op operation = MPI_SUM;
static MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
static MPI_Comm_copy_attr_function* copy = MPI_COMM_DUP_FN;
static char text[MPI_MAX_ERROR_STRING + MPI_MAX_PROCESSOR_NAME];
enum { any = MPI_ANY_SOURCE, null = MPI_PROC_NULL };

_Static_assert(sizeof(MPI_Status) == 32, "the ABI's status");
_Static_assert(offsetof(MPI_Status, MPI_SOURCE) == 0, "the ABI's status");
_Static_assert(offsetof(MPI_Status, MPI_TAG) == 4, "the ABI's status");
_Static_assert(offsetof(MPI_Status, MPI_ERROR) == 8, "the ABI's status");
_Static_assert(sizeof(MPI_Aint) == sizeof(void*), "the ABI's integers");
_Static_assert(sizeof(MPI_Offset) == 8 && sizeof(MPI_Count) == 8, "the ABI's integers");
#if MPI_VERSION < 5 || MPI_ABI_VERSION != 1
#error "the preprocessor must know the versions"
#endif

int main(int argc, char** argv) {
    int rank = -1;
    int length = 0;
    MPI_Init(&argc, &argv);
    switch (MPI_ERR_RANK) {
    case MPI_SUCCESS:
        return 1;
    case MPI_ERR_RANK:
        break;
    }
    if (communicator != MPI_COMM_WORLD || types[2] != MPI_DATATYPE_NULL || operation != MPI_SUM ||
        requests[1] != MPI_REQUEST_NULL || copy != MPI_COMM_DUP_FN || any == null) {
        return 1;
    }
    MPI_Get_processor_name(text, &length);
    MPI_Is_thread_main(&rank);
    MPI_Finalize();
    return rank == 1 && length > 0 ? c90_part() : 1;
}
