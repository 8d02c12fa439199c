/* The header must be C of any age. */
#include <mpi.h>

int c90_part(void);

int c90_part(void) {
    static MPI_Info info = MPI_INFO_NULL;
    return info == MPI_INFO_NULL ? 0 : 1;
}
