/* Shared windows whose ranks differ in alloc_shared_noncontig: their parts lie apart from each
 * other's. */
#include <stdlib.h>
#include <string.h>

#include "window.h"

static int rank, size;

static void parts_lie_apart(int odd, MPI_Aint bytes) {
    MPI_Info info;
    MPI_Win win;
    unsigned char* own;
    MPI_Info_create(&info);
    MPI_Info_set(info, "alloc_shared_noncontig", rank == odd ? "true" : "false");
    MPI_Win_allocate_shared(bytes, 1, info, MPI_COMM_WORLD, &own, &win);
    MPI_Win_fence(0, win);
    memset(own, rank + 1, (size_t)bytes);
    MPI_Win_fence(0, win);
    MPI_Aint others = 0;
    for (MPI_Aint i = 0; i < bytes; i++)
        others += own[i] != rank + 1;
    CHECK(others == 0, "%ld of %ld bytes are others', with gaps at rank %d", (long)others,
          (long)bytes, odd);
    MPI_Win_free(&win);
    MPI_Info_free(&info);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    check_ranks(&rank, &size, 1);
    for (int odd = 0; odd < size; odd++) {
        parts_lie_apart(odd, 100);
        parts_lie_apart(odd, 4097);
    }
    MPI_Finalize();
    return 0;
}
