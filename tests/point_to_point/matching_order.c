/* Messages of one sender match in the order of sending, receives in the order of posting, whatever
 * their sizes, modes and wildcards; tags, sources and communicators choose. */
#include "check.h"

enum { messages = 200, largest = 150000 };

static int size_of(int i) {
    static const int sizes[] = {4, 100000, 8, 12000, 0, 64, 150000, 1000};
    const int bytes = sizes[i % 8];
    return bytes < 4 ? 4 : bytes;
}

/* All senders at once; rank 0 receives with wildcards and looks at the order per sender. */
static void no_overtaking(int rank, int size) {
    unsigned char* data = check_buffer(largest);
    if (rank != 0) {
        for (int i = 0; i < messages; i++) {
            MPI_Request request;
            memset(data, i & 0xff, (size_t)size_of(i));
            memcpy(data, &i, sizeof i);
            switch (i % 3) {
            case 0:
                MPI_Send(data, size_of(i), MPI_BYTE, 0, i % 5, MPI_COMM_WORLD);
                break;
            case 1:
                MPI_Ssend(data, size_of(i), MPI_BYTE, 0, i % 5, MPI_COMM_WORLD);
                break;
            default:
                MPI_Isend(data, size_of(i), MPI_BYTE, 0, i % 5, MPI_COMM_WORLD, &request);
                MPI_Wait(&request, MPI_STATUS_IGNORE);
            }
        }
    } else {
        int* next = calloc((size_t)size, sizeof(int));
        for (int k = 0; k < messages * (size - 1); k++) {
            MPI_Status status;
            int i = -1;
            MPI_Recv(data, largest, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
            memcpy(&i, data, sizeof i);
            CHECK(i == next[status.MPI_SOURCE], "message %d of rank %d came when %d was due", i,
                  status.MPI_SOURCE, next[status.MPI_SOURCE]);
            check_status(&status, status.MPI_SOURCE, i % 5, size_of(i), "in order");
            CHECK(data[size_of(i) - 1] == (unsigned char)(i & 0xff) || size_of(i) == 4,
                  "message %d ends with %d", i, data[size_of(i) - 1]);
            next[status.MPI_SOURCE]++;
        }
        free(next);
    }
    free(data);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Posted receives with and without wildcards take messages in the order of posting. */
static void posting_order(int rank) {
    enum { count = 6 };
    if (rank == 1) {
        int values[count];
        MPI_Request requests[count];
        MPI_Irecv(&values[0], 1, MPI_INT, 0, 1, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(&values[1], 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
                  &requests[1]);
        MPI_Irecv(&values[2], 1, MPI_INT, 0, 2, MPI_COMM_WORLD, &requests[2]);
        MPI_Irecv(&values[3], 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &requests[3]);
        MPI_Irecv(&values[4], 1, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[4]);
        MPI_Irecv(&values[5], 1, MPI_INT, 0, 1, MPI_COMM_WORLD, &requests[5]);
        MPI_Send(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
        MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
        /* Sent: (tag 2: 0), (1: 1), (1: 2), (2: 3), (1: 4), (1: 5) */
        const int expected[count] = {1, 0, 3, 2, 4, 5};
        for (int i = 0; i < count; i++) {
            CHECK(values[i] == expected[i], "receive %d took message %d, expected %d", i, values[i],
                  expected[i]);
        }
    } else if (rank == 0) {
        const int tags[count] = {2, 1, 1, 2, 1, 1};
        MPI_Recv(NULL, 0, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < count; i++) {
            MPI_Send(&i, 1, MPI_INT, 1, tags[i], MPI_COMM_WORLD);
        }
    }
}

/* The same tags on two communicators don't meet. */
static void communicators_separate(int rank) {
    MPI_Comm other;
    int first = 1, second = 2, value = 0;
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    if (rank == 0) {
        MPI_Send(&first, 1, MPI_INT, 1, 9, MPI_COMM_WORLD);
        MPI_Send(&second, 1, MPI_INT, 1, 9, other);
    } else if (rank == 1) {
        MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, other, MPI_STATUS_IGNORE);
        CHECK(value == 2, "the duplicate received %d", value);
        MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        CHECK(value == 1, "the world received %d", value);
    }
    MPI_Comm_free(&other);
}

/* Unexpected messages can be taken in any order of tags. */
static void tags_choose(int rank) {
    enum { count = 2000 };
    if (rank == 0) {
        for (int i = 0; i < count; i++) {
            MPI_Send(&i, 1, MPI_INT, 1, i, MPI_COMM_WORLD);
        }
    } else if (rank == 1) {
        for (int i = count - 1; i >= 0; i--) {
            int value = -1;
            MPI_Recv(&value, 1, MPI_INT, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK(value == i, "tag %d brought %d", i, value);
        }
    }
}

int main(int argc, char** argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    check_ranks(&rank, &size, 2);
    no_overtaking(rank, size);
    posting_order(rank);
    communicators_separate(rank);
    tags_choose(rank);
    MPI_Finalize();
    return 0;
}
