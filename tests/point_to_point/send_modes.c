/* All send modes deliver every size; synchronous sends wait for their receive, buffered ones don't.
 */
#include "check.h"

#include <stdint.h>

static void send_in(int mode, int tag, unsigned char* data, int bytes) {
    MPI_Request request = MPI_REQUEST_NULL;
    check_fill(data, (size_t)bytes, (unsigned)tag);
    if (mode % 4 == 2) {
        /* Ready: the receiver says that it has posted. */
        MPI_Recv(NULL, 0, MPI_BYTE, 1, 9999, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    switch (mode) {
    case 0:
        MPI_Send(data, bytes, MPI_BYTE, 1, tag, MPI_COMM_WORLD);
        break;
    case 1:
        MPI_Bsend(data, bytes, MPI_BYTE, 1, tag, MPI_COMM_WORLD);
        break;
    case 2:
        MPI_Rsend(data, bytes, MPI_BYTE, 1, tag, MPI_COMM_WORLD);
        break;
    case 3:
        MPI_Ssend(data, bytes, MPI_BYTE, 1, tag, MPI_COMM_WORLD);
        break;
    case 4:
        MPI_Isend(data, bytes, MPI_BYTE, 1, tag, MPI_COMM_WORLD, &request);
        break;
    case 5:
        MPI_Ibsend(data, bytes, MPI_BYTE, 1, tag, MPI_COMM_WORLD, &request);
        break;
    case 6:
        MPI_Irsend(data, bytes, MPI_BYTE, 1, tag, MPI_COMM_WORLD, &request);
        break;
    case 7:
        MPI_Issend(data, bytes, MPI_BYTE, 1, tag, MPI_COMM_WORLD, &request);
        break;
    }
    if (mode >= 4) {
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(request == MPI_REQUEST_NULL, "MPI_Wait leaves the request of mode %d", mode);
    }
    /* The buffer is the sender's again. */
    memset(data, 0xee, (size_t)bytes);
    MPI_Recv(NULL, 0, MPI_BYTE, 1, 9998, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void receive_from(int mode, int tag, unsigned char* data, int bytes) {
    MPI_Request request;
    MPI_Status status;
    memset(data, 0x11, (size_t)bytes);
    if (mode % 4 == 2) {
        MPI_Irecv(data, bytes, MPI_BYTE, 0, tag, MPI_COMM_WORLD, &request);
        MPI_Send(NULL, 0, MPI_BYTE, 0, 9999, MPI_COMM_WORLD);
        MPI_Wait(&request, &status);
    } else {
        MPI_Recv(data, bytes, MPI_BYTE, 0, tag, MPI_COMM_WORLD, &status);
    }
    check_status(&status, 0, tag, bytes, "received");
    check_pattern(data, (size_t)bytes, (unsigned)tag, "send mode");
    MPI_Send(NULL, 0, MPI_BYTE, 0, 9998, MPI_COMM_WORLD);
}

static void every_size(int rank) {
    const int buffered_space = 2 * (CHECK_LARGEST + MPI_BSEND_OVERHEAD);
    unsigned char* data = check_buffer(CHECK_LARGEST);
    void* space = check_buffer((size_t)buffered_space);
    MPI_Buffer_attach(space, buffered_space);
    for (int i = 0; i < CHECK_SIZES; i++) {
        const int bytes = check_sizes[i];
        for (int mode = 0; mode < 8; mode++) {
            const int tag = 10 * i + mode;
            if (rank == 0) {
                send_in(mode, tag, data, bytes);
            } else if (rank == 1) {
                receive_from(mode, tag, data, bytes);
            }
        }
    }
    void* detached = NULL;
    int detached_bytes = 0;
    MPI_Buffer_detach(&detached, &detached_bytes);
    CHECK(detached == space, "MPI_Buffer_detach gives another buffer");
    CHECK(detached_bytes == buffered_space, "MPI_Buffer_detach gives %d bytes", detached_bytes);
    free(space);
    free(data);
}

static void synchronous_sends_wait(int rank) {
    const int sizes[] = {0, 8, 100000};
    unsigned char* data = check_buffer(100000);
    for (int i = 0; i < 3; i++) {
        if (rank == 0) {
            MPI_Request request;
            int done = 0;
            MPI_Issend(data, sizes[i], MPI_BYTE, 1, 5, MPI_COMM_WORLD, &request);
            for (int turn = 0; turn < 1000; turn++) {
                MPI_Test(&request, &done, MPI_STATUS_IGNORE);
                CHECK(!done, "MPI_Issend of %d bytes is done before any receive", sizes[i]);
            }
            MPI_Send(NULL, 0, MPI_BYTE, 1, 6, MPI_COMM_WORLD);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else if (rank == 1) {
            MPI_Recv(NULL, 0, MPI_BYTE, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Recv(data, sizes[i], MPI_BYTE, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    }
    free(data);
}

static void buffered_sends_need_no_receive(int rank) {
    enum { count = 50, bytes = 20000 };
    unsigned char* data = check_buffer(bytes);
    if (rank == 0) {
        const int space_bytes = count * (bytes + MPI_BSEND_OVERHEAD);
        void* space = check_buffer((size_t)space_bytes);
        MPI_Buffer_attach(space, space_bytes);
        for (int i = 0; i < count; i++) {
            check_fill(data, bytes, (unsigned)i);
            MPI_Bsend(data, bytes, MPI_BYTE, 1, i, MPI_COMM_WORLD);
        }
        MPI_Send(NULL, 0, MPI_BYTE, 1, 1000, MPI_COMM_WORLD);
        /* Waits until all of them have left the buffer. */
        MPI_Buffer_detach(&space, &(int){0});
        memset(space, 0, (size_t)space_bytes);
        free(space);
    } else if (rank == 1) {
        MPI_Recv(NULL, 0, MPI_BYTE, 0, 1000, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = count - 1; i >= 0; i--) {
            MPI_Recv(data, bytes, MPI_BYTE, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            check_pattern(data, bytes, (unsigned)i, "buffered send");
        }
    }
    free(data);
}

static void a_full_buffer_is_an_error(int rank) {
    if (rank == 0) {
        unsigned char data[2000] = {0};
        int code;
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        code = MPI_Bsend(data, 2000, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        CHECK(check_class(code) == MPI_ERR_BUFFER, "MPI_Bsend without a buffer gives class %d",
              check_class(code));
        void* space = check_buffer(1000);
        MPI_Buffer_attach(space, 1000);
        code = MPI_Bsend(data, 2000, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        CHECK(check_class(code) == MPI_ERR_BUFFER, "MPI_Bsend with a small buffer gives class %d",
              check_class(code));
        /* With its header, a message of this size is longer than 64 bits count. */
        code = MPI_Bsend_c(data, INT64_MAX, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        CHECK(check_class(code) == MPI_ERR_BUFFER, "MPI_Bsend of the largest count gives class %d",
              check_class(code));
        MPI_Buffer_detach(&space, &(int){0});
        free(space);
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    }
}

int main(int argc, char** argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    check_ranks(&rank, &size, 2);
    every_size(rank);
    synchronous_sends_wait(rank);
    buffered_sends_need_no_receive(rank);
    a_full_buffer_is_an_error(rank);
    MPI_Finalize();
    return 0;
}
