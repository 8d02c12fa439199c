/* Probes tell source, tag and size without receiving; a matched message is nobody else's. */
#include "check.h"

static void probes_describe(int rank) {
    unsigned char* data = check_buffer(CHECK_LARGEST);
    for (int i = 0; i < CHECK_SIZES; i++) {
        const int bytes = check_sizes[i];
        for (int form = 0; form < 6; form++) {
            const int tag = 10 * i + form;
            if (rank == 0) {
                check_fill(data, (size_t)bytes, (unsigned)tag);
                MPI_Send(data, bytes, MPI_BYTE, 1, tag, MPI_COMM_WORLD);
                continue;
            }
            if (rank != 1) {
                continue;
            }
            MPI_Status status;
            MPI_Message message = MPI_MESSAGE_NULL;
            MPI_Request request;
            const int source = form % 2 ? MPI_ANY_SOURCE : 0;
            const int wanted = form >= 3 ? MPI_ANY_TAG : tag;
            int flag = 0;
            memset(data, 0, (size_t)bytes);
            switch (form % 4) {
            case 0:
                MPI_Probe(source, wanted, MPI_COMM_WORLD, &status);
                break;
            case 1:
                while (!flag) {
                    MPI_Iprobe(source, wanted, MPI_COMM_WORLD, &flag, &status);
                }
                break;
            case 2:
                MPI_Mprobe(source, wanted, MPI_COMM_WORLD, &message, &status);
                break;
            case 3:
                while (!flag) {
                    MPI_Improbe(source, wanted, MPI_COMM_WORLD, &flag, &message, &status);
                }
                break;
            }
            check_status(&status, 0, tag, bytes, "probed");
            if (form % 4 == 2) {
                MPI_Mrecv(data, bytes, MPI_BYTE, &message, &status);
                CHECK(message == MPI_MESSAGE_NULL, "MPI_Mrecv leaves the message");
            } else if (form % 4 == 3) {
                MPI_Imrecv(data, bytes, MPI_BYTE, &message, &request);
                CHECK(message == MPI_MESSAGE_NULL, "MPI_Imrecv leaves the message");
                MPI_Wait(&request, &status);
            } else {
                MPI_Recv(data, bytes, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD,
                         &status);
            }
            check_status(&status, 0, tag, bytes, "received after a probe");
            check_pattern(data, (size_t)bytes, (unsigned)tag, "received after a probe");
        }
    }
    free(data);
}

static void matched_messages_are_taken(int rank) {
    if (rank == 0) {
        for (int i = 0; i < 3; i++) {
            MPI_Send(&i, 1, MPI_INT, 1, 50, MPI_COMM_WORLD);
        }
    } else if (rank == 1) {
        MPI_Message messages[2];
        MPI_Status status;
        int value = -1, flag = -1;
        MPI_Mprobe(0, 50, MPI_COMM_WORLD, &messages[0], &status);
        MPI_Mprobe(0, 50, MPI_COMM_WORLD, &messages[1], &status);
        MPI_Recv(&value, 1, MPI_INT, 0, 50, MPI_COMM_WORLD, &status);
        CHECK(value == 2, "MPI_Recv took message %d, which was matched before", value);
        MPI_Mrecv(&value, 1, MPI_INT, &messages[1], &status);
        CHECK(value == 1, "the second matched message is message %d", value);
        MPI_Mrecv(&value, 1, MPI_INT, &messages[0], MPI_STATUS_IGNORE);
        CHECK(value == 0, "the first matched message is message %d", value);
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        CHECK(flag == 0, "a message is left");
    }
}

static void nobody_sends_from_proc_null(void) {
    MPI_Status status;
    MPI_Message message = MPI_MESSAGE_NULL;
    int flag = 0, value = 17;
    MPI_Probe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &status);
    check_status(&status, MPI_PROC_NULL, MPI_ANY_TAG, 0, "MPI_Probe");
    MPI_Iprobe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &flag, &status);
    CHECK(flag == 1, "MPI_Iprobe of MPI_PROC_NULL");
    check_status(&status, MPI_PROC_NULL, MPI_ANY_TAG, 0, "MPI_Iprobe");
    MPI_Mprobe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &message, &status);
    CHECK(message == MPI_MESSAGE_NO_PROC, "MPI_Mprobe of MPI_PROC_NULL");
    MPI_Mrecv(&value, 1, MPI_INT, &message, &status);
    CHECK(message == MPI_MESSAGE_NULL, "MPI_Mrecv leaves MPI_MESSAGE_NO_PROC");
    check_status(&status, MPI_PROC_NULL, MPI_ANY_TAG, 0, "MPI_Mrecv");
    CHECK(value == 17, "MPI_Mrecv from MPI_PROC_NULL writes");
}

int main(int argc, char** argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    check_ranks(&rank, &size, 2);
    probes_describe(rank);
    matched_messages_are_taken(rank);
    nobody_sends_from_proc_null();
    MPI_Finalize();
    return 0;
}
