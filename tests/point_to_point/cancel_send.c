/* A send that nobody has received can be cancelled, and its MPI_Wait returns; one that has been
 * received can't be. Either the cancellation succeeds or the message arrives, never both. */
#include "check.h"

enum { word = 1, first_tag = 10 };

static unsigned char data[CHECK_LARGEST], room[CHECK_LARGEST];
static MPI_Datatype gaps; /* every other byte of two */

/* Which send, of how many bytes. */
enum mode { synchronous, standard, with_gaps, persistent, buffered, modes };

static int is_cancelled(const MPI_Status* status) {
    int flag = -1;
    MPI_Test_cancelled(status, &flag);
    return flag;
}

static MPI_Request start(enum mode mode, int bytes, int to, int tag) {
    MPI_Request request;
    switch (mode) {
    case synchronous:
        MPI_Issend(data, bytes, MPI_BYTE, to, tag, MPI_COMM_WORLD, &request);
        break;
    case standard:
        MPI_Isend(data, bytes, MPI_BYTE, to, tag, MPI_COMM_WORLD, &request);
        break;
    case with_gaps:
        MPI_Isend(data, bytes / 2, gaps, to, tag, MPI_COMM_WORLD, &request);
        break;
    case persistent:
        MPI_Ssend_init(data, bytes, MPI_BYTE, to, tag, MPI_COMM_WORLD, &request);
        MPI_Start(&request);
        break;
    default:
        MPI_Ibsend(data, bytes, MPI_BYTE, to, tag, MPI_COMM_WORLD, &request);
    }
    return request;
}

static int sent_bytes(enum mode mode, int bytes) {
    return mode == with_gaps ? bytes / 2 : bytes;
}

/* Cancels it, and says whether it was. */
static int take_back(MPI_Request* request, enum mode mode) {
    MPI_Status status;
    MPI_Cancel(request);
    MPI_Cancel(request);
    MPI_Wait(request, &status);
    if (mode == persistent) {
        CHECK(*request != MPI_REQUEST_NULL, "cancel freed the persistent request");
    } else {
        CHECK(*request == MPI_REQUEST_NULL, "MPI_Wait leaves a cancelled request");
    }
    return is_cancelled(&status);
}

static void tell(int to, int value) {
    MPI_Send(&value, 1, MPI_INT, to, word, MPI_COMM_WORLD);
}
static int hear(int from) {
    int value;
    MPI_Recv(&value, 1, MPI_INT, from, word, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return value;
}

static void receive(int from, enum mode mode, int bytes, int tag) {
    MPI_Status status;
    MPI_Recv(room, sizeof room, MPI_BYTE, from, tag, MPI_COMM_WORLD, &status);
    check_status(&status, from, tag, sent_bytes(mode, bytes), "a send that was not cancelled");
    for (int i = 0; i < sent_bytes(mode, bytes); i++) {
        const int at = mode == with_gaps ? 2 * i : i;
        CHECK(room[i] == data[at], "byte %d of %d is %d, expected %d", i, bytes, room[i], data[at]);
    }
}

/* Nobody receives it, until it has been cancelled. */
static void unreceived(int rank, enum mode mode, int bytes, int tag) {
    if (rank == 0) {
        MPI_Request request = start(mode, bytes, 1, tag);
        const int cancelled = take_back(&request, mode);
        CHECK(cancelled || (mode != synchronous && mode != persistent),
              "%d bytes of mode %d were not cancelled", bytes, mode);
        tell(1, cancelled);
        if (mode == persistent) {
            MPI_Start(&request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            MPI_Request_free(&request);
        }
        hear(1);
    } else {
        const int cancelled = hear(0);
        if (!cancelled) {
            receive(0, mode, bytes, tag);
        }
        int flag;
        if (mode == persistent) {
            receive(0, mode, bytes, tag);
        }
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        CHECK(!flag, "%d bytes of mode %d: something is left", bytes, mode);
        tell(0, 0);
    }
}

/* The receive is on its way, too: posted before, or just then. */
static void crossing(int rank, enum mode mode, int bytes, int tag) {
    if (rank == 0) {
        MPI_Request request = start(mode, bytes, 1, tag);
        tell(1, take_back(&request, mode));
        if (mode == persistent) {
            MPI_Request_free(&request);
        }
    } else {
        MPI_Request request;
        MPI_Status status;
        MPI_Irecv(room, sizeof room, MPI_BYTE, 0, tag, MPI_COMM_WORLD, &request);
        if (hear(0)) {
            MPI_Cancel(&request);
            MPI_Wait(&request, &status);
            CHECK(is_cancelled(&status), "what was cancelled has arrived, or hasn't left");
        } else {
            MPI_Wait(&request, &status);
            check_status(&status, 0, tag, sent_bytes(mode, bytes), "a cancel that came too late");
        }
    }
}

/* Several, of which every other one is cancelled: the others arrive, in their order. */
static void among_others(int rank, int bytes, int tag) {
    enum { count = 40 };
    if (rank == 0) {
        MPI_Request requests[count];
        int cancelled[count] = {0};
        for (int i = 0; i < count; i++) {
            requests[i] = start(i % 4 < 2 ? standard : synchronous, bytes + i, 1, tag);
        }
        for (int i = 0; i < count; i += 2) {
            cancelled[i] = take_back(&requests[i], standard);
        }
        MPI_Send(cancelled, count, MPI_INT, 1, word, MPI_COMM_WORLD);
        MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    } else {
        int cancelled[count];
        MPI_Recv(cancelled, count, MPI_INT, 0, word, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < count; i++) {
            if (!cancelled[i]) {
                receive(0, standard, bytes + i, tag);
            }
        }
    }
}

/* To the rank itself, where nothing has to be asked of another. */
static void to_itself(int rank, int bytes, int tag) {
    MPI_Request request = start(synchronous, bytes, rank, tag);
    int flag;
    MPI_Iprobe(rank, tag, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    CHECK(flag, "a message to itself isn't there");
    CHECK(take_back(&request, synchronous), "a message to itself was not cancelled");
    MPI_Iprobe(rank, tag, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    CHECK(!flag, "a cancelled message to itself is there");

    /* Taken by a matched probe it is no longer to be cancelled. */
    MPI_Message message;
    MPI_Status status;
    request = start(synchronous, bytes, rank, tag);
    MPI_Improbe(rank, tag, MPI_COMM_WORLD, &flag, &message, MPI_STATUS_IGNORE);
    CHECK(flag, "a message to itself isn't there");
    MPI_Cancel(&request);
    MPI_Mrecv(room, sizeof room, MPI_BYTE, &message, &status);
    check_status(&status, rank, tag, bytes, "what a matched probe has taken");
    MPI_Wait(&request, &status);
    CHECK(!is_cancelled(&status), "a received message was cancelled");
}

/* The request is not waited for. */
static void freed(int rank, int bytes, int tag) {
    if (rank == 0) {
        MPI_Request request = start(synchronous, bytes, 1, tag);
        MPI_Cancel(&request);
        MPI_Request_free(&request);
        tell(1, 0);
        hear(1);
    } else {
        hear(0);
        int flag;
        MPI_Iprobe(0, tag, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        CHECK(!flag, "a message of %d bytes that was cancelled and freed is there", bytes);
        tell(0, 0);
    }
}

int main(int argc, char** argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    check_ranks(&rank, &size, 2);
    check_fill(data, sizeof data, 5);
    MPI_Type_create_resized(MPI_BYTE, 0, 2, &gaps);
    MPI_Type_commit(&gaps);
    const int attached = 8 * CHECK_LARGEST; /* of messages on their way */
    void* buffer = check_buffer(attached);
    MPI_Buffer_attach(buffer, attached);
    if (rank < 2) {
        int tag = first_tag;
        for (int i = 0; i < CHECK_SIZES; i++) {
            for (enum mode mode = synchronous; mode < modes; mode++) {
                unreceived(rank, mode, check_sizes[i], tag++);
                for (int round = 0; round < 5; round++) {
                    crossing(rank, mode, check_sizes[i], tag++);
                }
            }
            if (check_sizes[i] < 200000) {
                among_others(rank, check_sizes[i], tag++);
            }
            to_itself(rank, check_sizes[i], tag++);
            freed(rank, check_sizes[i], tag++);
        }
    }
    MPI_Buffer_detach(&buffer, &(int){0});
    free(buffer);
    MPI_Type_free(&gaps);
    MPI_Finalize();
    return 0;
}
