/* Messages of all sizes that may be pushed or fetched, so many of each that both ways come about
 * and change: back and forth, in windows, to late receivers, too long for their receives, between
 * buffered and synchronous ones, on both sides at once. Each message has other bytes. */
#include "check.h"

enum { window = 12, largest = 1500000 };

static const int sizes[] = {8191, 8192, 12345, 20000, 65536, 100001, 262144, 262145, largest};

static unsigned char* send_buffers[window];
static unsigned char* receive_buffers[window];

/* Different at each place of a page and for each page and stamp, and quick. */
static void write_pattern(unsigned char* data, int bytes, unsigned stamp) {
    for (int i = 0; i < bytes; i += 509) {
        int step = bytes - i < 509 ? bytes - i : 509;
        memset(data + i, (int)(stamp + (unsigned)(i / 509)) & 255, (size_t)step);
    }
}

static void check_written(const unsigned char* data, int bytes, unsigned stamp, const char* what) {
    for (int i = 0; i < bytes; i++) {
        if (data[i] != ((stamp + (unsigned)(i / 509)) & 255)) {
            CHECK(0, "%s: byte %d of %d is %d, expected %d", what, i, bytes, data[i],
                  (int)((stamp + (unsigned)(i / 509)) & 255));
        }
    }
}

static void back_and_forth(int size, int peer, int first, int turns) {
    for (int turn = 0; turn < turns; turn++) {
        unsigned stamp = (unsigned)(turn * 7 + size);
        if (first || turn > 0) {
            write_pattern(send_buffers[0], size, stamp);
        }
        if (first) {
            MPI_Send(send_buffers[0], size, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
        }
        memset(receive_buffers[0], 0, (size_t)size);
        MPI_Status status;
        MPI_Recv(receive_buffers[0], size, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &status);
        check_status(&status, peer, 1, size, "back and forth");
        check_written(receive_buffers[0], size, stamp, "back and forth");
        if (!first) {
            write_pattern(send_buffers[0], size, stamp);
            MPI_Send(send_buffers[0], size, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
        }
    }
}

/* Both sides send and receive a window at once; some sends are synchronous, some receives too
 * short, and receivers are late in every third. */
static void windows(int size, int peer, int rank, int turns) {
    MPI_Request requests[2 * window];
    MPI_Status statuses[2 * window];
    for (int turn = 0; turn < turns; turn++) {
        int late = turn % 3 == 2;
        int cut = turn % 5 == 4 ? 1000 : 0;
        for (int m = 0; m < window; m++) {
            memset(receive_buffers[m], 0, (size_t)size);
        }
        for (int part = 0; part < 2; part++) {
            for (int m = 0; m < window && (part == 0) == late; m++) {
                unsigned stamp = (unsigned)(turn * 31 + m * 3 + rank);
                write_pattern(send_buffers[m], size, stamp);
                if (m % 5 == 3) {
                    MPI_Issend(send_buffers[m], size, MPI_BYTE, peer, m, MPI_COMM_WORLD,
                               &requests[window + m]);
                } else {
                    MPI_Isend(send_buffers[m], size, MPI_BYTE, peer, m, MPI_COMM_WORLD,
                              &requests[window + m]);
                }
            }
            if (late && part == 0) {
                MPI_Barrier(MPI_COMM_WORLD);
            }
            for (int m = 0; m < window && (part == 1) == late; m++) {
                MPI_Irecv(receive_buffers[m], size - cut, MPI_BYTE, peer, m, MPI_COMM_WORLD,
                          &requests[m]);
            }
        }
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        int result = MPI_Waitall(2 * window, requests, statuses);
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
        CHECK(result == (cut ? MPI_ERR_IN_STATUS : MPI_SUCCESS), "a window gives %d", result);
        for (int m = 0; m < window; m++) {
            CHECK(!cut || statuses[m].MPI_ERROR == MPI_ERR_TRUNCATE, "message %d is not cut", m);
            check_written(receive_buffers[m], size - cut, (unsigned)(turn * 31 + m * 3 + peer),
                          "window");
            for (int i = size - cut; i < size; i++) {
                CHECK(receive_buffers[m][i] == 0, "written behind the receive's end");
            }
        }
    }
}

/* Buffered sends leave at once, whatever their receiver does. */
static void buffered(int size, int peer) {
    static unsigned char room[largest + MPI_BSEND_OVERHEAD];
    MPI_Buffer_attach(room, (int)sizeof room);
    write_pattern(send_buffers[0], size, 5);
    MPI_Bsend(send_buffers[0], size, MPI_BYTE, peer, 2, MPI_COMM_WORLD);
    write_pattern(send_buffers[0], size, 6);
    MPI_Recv(receive_buffers[0], size, MPI_BYTE, peer, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    check_written(receive_buffers[0], size, 5, "buffered");
    void* address;
    int bytes;
    MPI_Buffer_detach(&address, &bytes);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank;
    int ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    CHECK(ranks % 2 == 0, "an even number of ranks is needed");
    for (int m = 0; m < window; m++) {
        send_buffers[m] = malloc(largest);
        receive_buffers[m] = malloc(largest);
        CHECK(send_buffers[m] != NULL && receive_buffers[m] != NULL, "no memory");
    }
    int peer = rank ^ 1;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        int large = sizes[i] > 262145;
        back_and_forth(sizes[i], peer, rank % 2 == 0, large ? 40 : 500);
        windows(sizes[i], peer, rank, large ? 6 : 30);
        buffered(sizes[i], peer);
    }
    for (int m = 0; m < window; m++) {
        free(send_buffers[m]);
        free(receive_buffers[m]);
    }
    MPI_Finalize();
    if (rank == 0) {
        puts("ok");
    }
    return 0;
}
