/* What a rank has under way and no longer waits for arrives although the rank goes straight on to
   MPI_Finalize: buffered sends, sends and receives whose requests were freed, buffered sends on a
   communicator that was freed. Every rank sends to its right neighbour, which is late. */
#include <unistd.h>

#include "check.h"

enum { messages = 4 };
static const int sizes[messages] = {8, 5000, 20000, 2000000};

static const char* how;
static MPI_Comm comm;
static int rank, size, left, right;
static unsigned char *attached, *sent[messages]; /* in use until the end */

static int is(const char* name) {
    return strcmp(how, name) == 0;
}

static unsigned seed_of(int source, int message) {
    return (unsigned)(source * messages + message);
}

/* Memory for all messages as buffered sends. */
static void attach(void) {
    int room = 0;
    for (int i = 0; i < messages; i++) {
        room += sizes[i] + MPI_BSEND_OVERHEAD;
    }
    attached = check_buffer((size_t)room);
    if (is("buffered")) {
        MPI_Buffer_attach(attached, room);
    } else if (is("buffered_automatically")) {
        MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0);
    } else if (is("freed_communicator")) {
        MPI_Comm_attach_buffer(comm, attached, room);
    } else if (is("freed_communicator_automatically")) {
        MPI_Comm_attach_buffer(comm, MPI_BUFFER_AUTOMATIC, 0);
    }
}

static void send_all(void) {
    attach();
    for (int i = 0; i < messages; i++) {
        unsigned char* data = check_buffer((size_t)sizes[i]);
        check_fill(data, (size_t)sizes[i], seed_of(rank, i));
        if (is("freed_sends")) {
            MPI_Request request;
            (i % 2 == 0 ? MPI_Isend : MPI_Issend)(data, sizes[i], MPI_BYTE, right, i, comm,
                                                  &request);
            MPI_Request_free(&request);
            sent[i] = data;
            continue;
        }
        if (is("freed_receives")) {
            MPI_Send(data, sizes[i], MPI_BYTE, right, i, comm);
        } else {
            MPI_Bsend(data, sizes[i], MPI_BYTE, right, i, comm);
        }
        memset(data, 0xEE, (size_t)sizes[i]);
        free(data);
    }
}

static void receive_all(void) {
    for (int i = 0; i < messages; i++) {
        unsigned char* data = check_buffer((size_t)sizes[i]);
        MPI_Recv(data, sizes[i], MPI_BYTE, left, i, comm, MPI_STATUS_IGNORE);
        check_pattern(data, (size_t)sizes[i], seed_of(left, i), how);
        free(data);
    }
}

static unsigned char* received[messages];

/* Posted, freed, and on to MPI_Finalize; `received` is looked at when it has ended. */
static void receive_and_forget(void) {
    for (int i = 0; i < messages; i++) {
        MPI_Request request;
        received[i] = check_buffer((size_t)sizes[i]);
        MPI_Irecv(received[i], sizes[i], MPI_BYTE, left, i, comm, &request);
        MPI_Request_free(&request);
    }
}

static void check_received(void) {
    for (int i = 0; i < messages; i++) {
        for (int k = 0; k < sizes[i]; k++) {
            if (received[i][k] != check_byte(seed_of(left, i), (size_t)k)) {
                fprintf(stderr, "rank %d: message %d, byte %d did not arrive\n", rank, i, k);
                _exit(1);
            }
        }
        free(received[i]);
    }
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    how = argc > 1 ? argv[1] : "buffered";
    check_ranks(&rank, &size, 2);
    right = (rank + 1) % size;
    left = (rank + size - 1) % size;
    const int own = strncmp(how, "freed_communicator", 18) == 0;
    comm = MPI_COMM_WORLD;
    if (own) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    }
    if (rank > 0 && is("freed_receives")) {
        usleep(rank % 2 == 0 ? 100000 : 0); /* before or after the message is there */
        receive_and_forget();
    } else if (rank > 0) {
        usleep(100000);
        receive_all();
    } else if (is("freed_receives")) {
        usleep(50000);
    }
    if (right != 0) {
        send_all();
    }
    if (rank == 1) { /* nobody sends this one: it holds nothing up */
        static char nothing[8];
        MPI_Request request;
        MPI_Irecv(nothing, 8, MPI_BYTE, left, 99, comm, &request);
        MPI_Request_free(&request);
    }
    if (own) {
        MPI_Comm_free(&comm);
    }
    MPI_Finalize();
    if (rank > 0 && is("freed_receives")) {
        check_received();
    }
    for (int i = 0; i < messages; i++) {
        free(sent[i]);
    }
    free(attached);
    return 0;
}
