/* Sends to a rank that never receives them, and may have left MPI already, can be cancelled: the
 * call that ends them returns, and so does MPI_Finalize. Arguments: bytes; "wait" or "free". */
#include "check.h"

#include <time.h>

enum { sends = 3000, most = 100000 };

int main(int argc, char** argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    check_ranks(&rank, &size, 2);
    CHECK(argc == 3, "usage: cancel_late BYTES wait|free");
    const int bytes = atoi(argv[1]);
    CHECK(bytes >= 0 && bytes <= most, "%d bytes", bytes);
    const int waits = strcmp(argv[2], "wait") == 0;
    static unsigned char data[most];
    static MPI_Request requests[sends];
    static MPI_Status statuses[sends];
    if (rank == 0) {
        /* Some while the others are in MPI, some while they leave, most after. */
        for (int i = 0; i < sends; i++) {
            MPI_Issend(data, bytes, MPI_BYTE, 1 + i % (size - 1), i, MPI_COMM_WORLD, &requests[i]);
            MPI_Cancel(&requests[i]);
            if (i == sends / 2) {
                const struct timespec while_they_leave = {.tv_nsec = 20000000};
                nanosleep(&while_they_leave, NULL);
            }
            if (!waits) {
                MPI_Request_free(&requests[i]);
            } else if (i % 3 == 0) {
                MPI_Wait(&requests[i], &statuses[i]);
            }
        }
        if (waits) {
            for (int i = 0; i < sends; i++) {
                if (i % 3 != 0) {
                    MPI_Wait(&requests[i], &statuses[i]);
                }
                int cancelled = -1;
                MPI_Test_cancelled(&statuses[i], &cancelled);
                CHECK(cancelled == 1, "send %d of %d bytes was not cancelled", i, bytes);
            }
        }
    }
    MPI_Finalize();
    return 0;
}
