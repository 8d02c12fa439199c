/* Opens a file together, and reads back what a rank of another node has written; or says why not.
 *
 *     files NAME
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_File file;
    const int amode = MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE;
    const int code =
        MPI_File_open(MPI_COMM_WORLD, argc > 1 ? argv[1] : "file", amode, MPI_INFO_NULL, &file);
    if (code != MPI_SUCCESS) {
        char text[MPI_MAX_ERROR_STRING];
        int length;
        MPI_Error_string(code, text, &length);
        printf("rank %d: %s\n", rank, text);
        MPI_Finalize();
        return 0;
    }
    int number = rank + 1, got = 0;
    MPI_File_write_at(file, rank * (MPI_Offset)sizeof number, &number, 1, MPI_INT,
                      MPI_STATUS_IGNORE);
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_sync(file);
    const int other = size - 1 - rank;
    MPI_File_read_at(file, other * (MPI_Offset)sizeof got, &got, 1, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    printf("rank %d: %s\n", rank, got == other + 1 ? "right" : "wrong");
    MPI_Finalize();
    return 0;
}
