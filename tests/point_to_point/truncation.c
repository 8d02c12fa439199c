/* A message that is longer than its receive is MPI_ERR_TRUNCATE, and nothing else suffers: what
 * lies behind the buffer, and the messages after it. One that ends inside an element of the
 * receive's datatype is MPI_ERR_TYPE. */
#include "check.h"

static const int sizes[] = {8, 100, 5000, 70000, 1000000};

/* What `form` says: how a message of too many bytes is received. */
static int receive_too_little(unsigned char* data, int room, int form, MPI_Status* status) {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Message message;
    int code = MPI_SUCCESS;
    switch (form) {
    case 0: /* whenever it comes */
        code = MPI_Recv(data, room, MPI_BYTE, 0, 1, MPI_COMM_WORLD, status);
        break;
    case 1: /* already there */
        MPI_Probe(0, 1, MPI_COMM_WORLD, status);
        code = MPI_Recv(data, room, MPI_BYTE, 0, 1, MPI_COMM_WORLD, status);
        break;
    case 2: /* posted before */
        MPI_Irecv(data, room, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &request);
        MPI_Send(NULL, 0, MPI_BYTE, 0, 9, MPI_COMM_WORLD);
        code = MPI_Wait(&request, status);
        CHECK(request == MPI_REQUEST_NULL, "MPI_Wait leaves a truncated receive");
        break;
    case 3:
        MPI_Mprobe(0, 1, MPI_COMM_WORLD, &message, status);
        code = MPI_Mrecv(data, room, MPI_BYTE, &message, status);
        break;
    }
    return code;
}

static void send_twice(unsigned char* data, int bytes, int form) {
    check_fill(data, (size_t)bytes, 1);
    if (form == 2) {
        MPI_Recv(NULL, 0, MPI_BYTE, 1, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Send(data, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
    check_fill(data, (size_t)bytes, 2);
    MPI_Send(data, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
}

static void receive_twice(unsigned char* data, int bytes, int form) {
    const int room = bytes / 2;
    MPI_Status status = {0};
    memset(data, 0x99, (size_t)bytes);
    int code = receive_too_little(data, room, form, &status);
    CHECK(check_class(code) == MPI_ERR_TRUNCATE, "%d of %d bytes: class %d", room, bytes,
          check_class(code));
    CHECK(status.MPI_SOURCE == 0 && status.MPI_TAG == 1, "source %d, tag %d", status.MPI_SOURCE,
          status.MPI_TAG);
    for (int i = room; i < bytes; i++) {
        CHECK(data[i] == 0x99, "byte %d behind %d was written", i, room);
    }
    code = MPI_Recv(data, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &status);
    CHECK(code == MPI_SUCCESS, "the next receive fails");
    check_status(&status, 0, 1, bytes, "the next receive");
    check_pattern(data, (size_t)bytes, 2, "the next message");
}

static void parts_of_elements(unsigned char* data, int rank) {
    for (int bytes = 3; bytes <= 9; bytes += 2) {
        if (rank == 0) {
            MPI_Send(data, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
            MPI_Send(data, 8, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
        } else if (rank == 1) {
            MPI_Status status;
            MPI_Datatype strided;
            MPI_Type_vector(4, 1, 2, MPI_INT, &strided);
            MPI_Type_commit(&strided);
            int code = MPI_Recv(data, bytes > 5 ? 1 : 4, bytes > 5 ? strided : MPI_INT, 0, 1,
                                MPI_COMM_WORLD, &status);
            CHECK(check_class(code) == MPI_ERR_TYPE, "%d bytes: class %d", bytes,
                  check_class(code));
            code = MPI_Recv(data, 4, MPI_INT, 0, 1, MPI_COMM_WORLD, &status);
            CHECK(code == MPI_SUCCESS, "two of four ints are wrong");
            MPI_Type_free(&strided);
        }
    }
}

int main(int argc, char** argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    check_ranks(&rank, &size, 2);
    unsigned char* data = check_buffer(1000000);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int s = 0; s < 5; s++) {
        for (int form = 0; form < 4; form++) {
            if (rank == 0) {
                send_twice(data, sizes[s], form);
            } else if (rank == 1) {
                receive_twice(data, sizes[s], form);
            }
        }
    }
    parts_of_elements(data, rank);
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    MPI_Error_string(MPI_ERR_TRUNCATE, text, &length);
    CHECK(length > 0, "MPI_ERR_TRUNCATE has no text");
    free(data);
    MPI_Finalize();
    return 0;
}
