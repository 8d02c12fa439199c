/* One message of more than 2 GiB by the large-count forms. Needs 5 GB of memory for two ranks, so
 * it does that only with the argument "large"; without it 40 MB take the same way. */
#include "check.h"

int main(int argc, char** argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    check_ranks(&rank, &size, 2);
    const int large = argc > 1 && strcmp(argv[1], "large") == 0;
    const MPI_Count count = large ? ((MPI_Count)1 << 31) + 4099 : 40000003;
    unsigned char* data = rank <= 1 ? check_buffer((size_t)count) : NULL;
    if (rank == 0) {
        for (MPI_Count i = 0; i < count; i++) {
            data[i] = (unsigned char)((i >> 12) ^ i);
        }
        MPI_Send_c(data, count, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
        MPI_Request request;
        MPI_Isend_c(data, count, MPI_BYTE, 1, 2, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else if (rank == 1) {
        for (int tag = 1; tag <= 2; tag++) {
            MPI_Status status;
            MPI_Count received = -1;
            int narrow = -1;
            memset(data, 0, (size_t)count);
            MPI_Recv_c(data, count, MPI_BYTE, 0, tag, MPI_COMM_WORLD, &status);
            MPI_Get_count_c(&status, MPI_BYTE, &received);
            CHECK(received == count, "%lld bytes", (long long)received);
            MPI_Get_count(&status, MPI_BYTE, &narrow);
            CHECK(narrow == (large ? MPI_UNDEFINED : (int)count), "MPI_Get_count gives %d", narrow);
            for (MPI_Count i = 0; i < count; i++) {
                CHECK(data[i] == (unsigned char)((i >> 12) ^ i), "byte %lld is %d", (long long)i,
                      data[i]);
            }
        }
    }
    free(data);
    MPI_Finalize();
    return 0;
}
