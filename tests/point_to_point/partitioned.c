/* Partitioned communication around a ring of ranks: one rank talks to itself. */
#include "check.h"

static int rank, size, next, before;

static MPI_Request send_of(const void* data, int partitions, int count, MPI_Datatype type,
                           int tag) {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Psend_init(data, partitions, count, type, next, tag, MPI_COMM_WORLD, MPI_INFO_NULL,
                   &request);
    return request;
}

static MPI_Request receive_of(void* data, int partitions, int count, MPI_Datatype type, int tag) {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Precv_init(data, partitions, count, type, before, tag, MPI_COMM_WORLD, MPI_INFO_NULL,
                   &request);
    return request;
}

static int arrived(MPI_Request request, int partition) {
    int flag = -1;
    MPI_Parrived(request, partition, &flag);
    CHECK(flag == 0 || flag == 1, "flag = %d", flag);
    return flag;
}

/* Bytes of the message of a rank in a round. */
static unsigned seed_of(int from, int round) {
    return (unsigned)(17 * from + round);
}

/* `total` bytes in so many partitions at the two sides, several times. */
static void rounds(int sender, int receiver, int total) {
    unsigned char* out = check_buffer((size_t)total);
    unsigned char* in = check_buffer((size_t)total);
    MPI_Request requests[2] = {send_of(out, sender, total / sender, MPI_BYTE, 3),
                               receive_of(in, receiver, total / receiver, MPI_BYTE, 3)};
    for (int round = 0; round < 4; round++) {
        char what[80];
        snprintf(what, sizeof what, "%d to %d partitions, %d bytes, round %d", sender, receiver,
                 total, round);
        check_fill(out, (size_t)total, seed_of(rank, round));
        memset(in, 0, (size_t)total);
        MPI_Startall(2, requests);
        for (int partition = sender; partition-- > 0;)
            MPI_Pready((5 * partition + round) % sender, requests[0]);
        if (round % 2 == 0) {
            int part = total / receiver;
            for (int partition = 0; partition < receiver; partition++) {
                while (!arrived(requests[1], partition)) {
                }
                for (int i = partition * part; i < (partition + 1) * part; i++)
                    CHECK(in[i] == check_byte(seed_of(before, round), (size_t)i), "%s: byte %d",
                          what, i);
            }
        }
        MPI_Status statuses[2];
        MPI_Waitall(2, requests, statuses);
        check_empty(&statuses[0], what);
        check_status(&statuses[1], before, 3, total, what);
        check_pattern(in, (size_t)total, seed_of(before, round), what);
        CHECK(arrived(requests[1], 0), "%s: not arrived at the end", what);
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
    free(out);
    free(in);
}

/* Partitions are used one by one, in an order of the sender's choice. */
static void early_use(void) {
    enum { partitions = 6, count = 1000 };
    static int out[partitions * count], in[partitions * count];
    static const int order[partitions] = {4, 0, 5, 2, 1, 3};
    MPI_Request send = send_of(out, partitions, count, MPI_INT, 0);
    MPI_Request receive = receive_of(in, partitions / 2, 2 * count, MPI_INT, 0);
    MPI_Start(&send);
    MPI_Start(&receive);
    for (int step = 0; step < partitions; step++) {
        for (int i = 0; i < count; i++)
            out[order[step] * count + i] = rank * 100 + order[step];
        MPI_Pready_list(1, &order[step], send);
        /* The other half of the receiver's partition may still be missing. */
        int pair = order[step] / 2, both = 0;
        for (int done = 0; done <= step; done++)
            both += order[done] / 2 == pair;
        if (both == 2) {
            while (!arrived(receive, pair)) {
            }
            CHECK(in[2 * pair * count] == before * 100 + 2 * pair, "%d", in[2 * pair * count]);
            CHECK(in[(2 * pair + 2) * count - 1] == before * 100 + 2 * pair + 1, "%d",
                  in[(2 * pair + 2) * count - 1]);
        } else {
            CHECK(size > 1 || !arrived(receive, pair), "half has arrived as a whole");
        }
        int flag = 1;
        MPI_Test(&send, &flag, MPI_STATUS_IGNORE);
        CHECK(flag == 0 || step + 1 == partitions, "sent before all is ready");
        if (flag)
            break;
    }
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    MPI_Wait(&receive, MPI_STATUS_IGNORE);
    MPI_Request_free(&send);
    MPI_Request_free(&receive);
}

/* Partitions of the sender end inside elements of the receiver's type, which has gaps. */
static void gaps(void) {
    enum { elements = 60 };
    int out[2 * elements];
    int in[3 * elements];
    MPI_Datatype pair, spread;
    MPI_Type_vector(2, 1, 2, MPI_INT, &pair); /* an int, a gap, an int */
    MPI_Type_commit(&pair);
    MPI_Type_vector(elements, 2, 3, MPI_INT, &spread);
    MPI_Type_commit(&spread);
    for (int partitions = 1; partitions <= 2 * elements; partitions++) {
        if (2 * elements % partitions != 0)
            continue;
        for (int i = 0; i < 2 * elements; i++)
            out[i] = 1000 * rank + i;
        memset(in, -1, sizeof in);
        MPI_Request requests[4] = {send_of(out, partitions, 2 * elements / partitions, MPI_INT, 1),
                                   receive_of(in, elements, 1, pair, 1), MPI_REQUEST_NULL,
                                   MPI_REQUEST_NULL};
        MPI_Startall(2, requests);
        MPI_Pready_range(0, partitions - 1, requests[0]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < elements; i++)
            CHECK(in[3 * i] == 1000 * before + 2 * i && in[3 * i + 1] == -1 &&
                      in[3 * i + 2] == 1000 * before + 2 * i + 1,
                  "%d partitions: element %d is %d, %d, %d", partitions, i, in[3 * i],
                  in[3 * i + 1], in[3 * i + 2]);
        /* And back into the packed form. */
        requests[2] = send_of(in, elements, 1, pair, 2);
        requests[3] = receive_of(out, partitions, 2 * elements / partitions, MPI_INT, 2);
        MPI_Startall(2, requests + 2);
        for (int i = 0; i < elements; i++)
            MPI_Pready(i, requests[2]);
        MPI_Waitall(2, requests + 2, MPI_STATUSES_IGNORE);
        int origin = (before - 1 + size) % size;
        for (int i = 0; i < 2 * elements; i++)
            CHECK(out[i] == 1000 * origin + i, "%d partitions: out[%d] is %d", partitions, i,
                  out[i]);
        for (int i = 0; i < 4; i++)
            MPI_Request_free(&requests[i]);
    }
    MPI_Type_free(&pair);
    MPI_Type_free(&spread);
}

/* Operations belong together by their tags, and among those of one tag in the order of their
 * making; also those that are never started. */
static void order(void) {
    int out[4] = {10, 20, 30, 40};
    int in[4] = {0, 0, 0, 0};
    MPI_Request sends[4], receives[4];
    static const int send_tags[4] = {1, 2, 1, 2}, receive_tags[4] = {2, 1, 1, 2};
    for (int i = 0; i < 4; i++)
        sends[i] = send_of(&out[i], 1, 1, MPI_INT, send_tags[i]);
    for (int i = 0; i < 4; i++)
        receives[i] = receive_of(&in[i], 1, 1, MPI_INT, receive_tags[i]);
    /* The second pair of tag 2 goes without having been used. */
    MPI_Request_free(&sends[3]);
    MPI_Request_free(&receives[3]);
    CHECK(sends[3] == MPI_REQUEST_NULL && receives[3] == MPI_REQUEST_NULL, "not null");
    /* One that is freed before anything was heard of its sender keeps its place. */
    int unused = -1, used = -1;
    MPI_Request first = receive_of(&unused, 1, 1, MPI_INT, 5);
    MPI_Request_free(&first);
    MPI_Request second = receive_of(&used, 1, 1, MPI_INT, 5);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Request first_send = send_of(&out[0], 1, 1, MPI_INT, 5);
    MPI_Request second_send = send_of(&out[1], 1, 1, MPI_INT, 5);
    MPI_Startall(3, receives);
    for (int i = 2; i >= 0; i--) {
        MPI_Start(&sends[i]);
        MPI_Pready(0, sends[i]);
    }
    MPI_Waitall(3, receives, MPI_STATUSES_IGNORE);
    MPI_Waitall(3, sends, MPI_STATUSES_IGNORE);
    CHECK(in[0] == 20 && in[1] == 10 && in[2] == 30 && in[3] == 0, "%d %d %d %d", in[0], in[1],
          in[2], in[3]);
    MPI_Start(&second);
    MPI_Start(&second_send);
    MPI_Pready(0, second_send);
    MPI_Wait(&second, MPI_STATUS_IGNORE);
    MPI_Wait(&second_send, MPI_STATUS_IGNORE);
    CHECK(used == 20 && unused == -1, "%d %d", used, unused);
    MPI_Request_free(&first_send);
    MPI_Request_free(&second_send);
    MPI_Request_free(&second);
    for (int i = 0; i < 3; i++) {
        MPI_Request_free(&sends[i]);
        MPI_Request_free(&receives[i]);
    }
}

/* Nobody, nothing, and messages of other kinds between. */
static void corners(void) {
    int value = 5, flag = 0;
    MPI_Status status;
    MPI_Request request;
    MPI_Psend_init(&value, 3, 0, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_INFO_NULL,
                   &request);
    MPI_Start(&request);
    MPI_Pready_range(0, 2, request);
    MPI_Wait(&request, &status);
    MPI_Request_free(&request);
    MPI_Precv_init(&value, 1, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_INFO_NULL,
                   &request);
    MPI_Start(&request);
    MPI_Wait(&request, &status);
    check_status(&status, MPI_PROC_NULL, MPI_ANY_TAG, 0, "from nobody");
    MPI_Request_free(&request);
    MPI_Parrived(MPI_REQUEST_NULL, 0, &flag);
    CHECK(flag == 1, "nothing has not arrived");

    /* No bytes, no partitions. */
    for (int partitions = 0; partitions < 3; partitions++) {
        MPI_Request requests[2] = {send_of(&value, partitions, 0, MPI_INT, 0),
                                   receive_of(&value, 2, 0, MPI_INT, 0)};
        MPI_Startall(2, requests);
        if (partitions > 0) {
            CHECK(!arrived(requests[1], 0) && !arrived(requests[1], 1), "nobody has said ready");
            MPI_Barrier(MPI_COMM_WORLD);
            MPI_Pready_range(0, partitions - 1, requests[0]);
        }
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        MPI_Request_free(&requests[0]);
        MPI_Request_free(&requests[1]);
    }

    /* A receive of any tag does not get what is partitioned, and the other way round. */
    int out = 1, in = 0, other = 0;
    MPI_Request requests[3] = {send_of(&out, 1, 1, MPI_INT, 9), receive_of(&in, 1, 1, MPI_INT, 9),
                               MPI_REQUEST_NULL};
    MPI_Irecv(&other, 1, MPI_INT, before, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[2]);
    MPI_Startall(2, requests);
    MPI_Pready(0, requests[0]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    /* (Who is ahead may have sent the 2 already.) */
    CHECK(in == 1 && other != 1, "%d %d", in, other);
    value = 2;
    MPI_Send(&value, 1, MPI_INT, next, 9, MPI_COMM_WORLD);
    MPI_Wait(&requests[2], MPI_STATUS_IGNORE);
    CHECK(other == 2, "%d", other);
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
}

static void expect(int code, int error_class, const char* what) {
    CHECK(check_class(code) == error_class, "%s: class %d, expected %d", what, check_class(code),
          error_class);
}

static void errors_of_making(void) {
    int out[4] = {1, 2, 3, 4}, in[4], flag;
    MPI_Request plain, none = MPI_REQUEST_NULL;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    expect(MPI_Psend_init(out, -1, 1, MPI_INT, next, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &plain),
           MPI_ERR_ARG, "negative partitions");
    expect(MPI_Precv_init(in, -1, 1, MPI_INT, next, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &plain),
           MPI_ERR_ARG, "negative partitions to receive");
    /* The count is an MPI_Count, of which all bits count. */
    const MPI_Count negative = -((MPI_Count)1 << 32);
    expect(
        MPI_Psend_init(out, 1, negative, MPI_INT, next, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &plain),
        MPI_ERR_COUNT, "negative count");
    expect(
        MPI_Precv_init(in, 1, negative, MPI_INT, before, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &plain),
        MPI_ERR_COUNT, "negative count to receive");
    expect(
        MPI_Precv_init(in, 1, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &plain),
        MPI_ERR_RANK, "any source");
    expect(MPI_Precv_init(in, 1, 1, MPI_INT, size, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &plain),
           MPI_ERR_RANK, "no source");
    expect(MPI_Precv_init(in, 1, 1, MPI_INT, before, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_INFO_NULL,
                          &plain),
           MPI_ERR_TAG, "any tag");
    expect(MPI_Pready(0, none), MPI_ERR_REQUEST, "null request");
    MPI_Send_init(out, 1, MPI_INT, next, 0, MPI_COMM_WORLD, &plain);
    expect(MPI_Pready(0, plain), MPI_ERR_REQUEST, "another persistent request");
    expect(MPI_Parrived(plain, 0, &flag), MPI_ERR_REQUEST, "another persistent request arrived");
    MPI_Request_free(&plain);
}

static void errors_of_use(void) {
    int out[4] = {1, 2, 3, 4}, in[4], flag;
    MPI_Request send = send_of(out, 4, 1, MPI_INT, 0);
    MPI_Request receive = receive_of(in, 2, 2, MPI_INT, 0);
    expect(MPI_Pready(0, send), MPI_ERR_REQUEST, "not started");
    expect(MPI_Parrived(send, 0, &flag), MPI_ERR_REQUEST, "a send arrived");
    MPI_Start(&send);
    MPI_Start(&receive);
    expect(MPI_Start(&send), MPI_ERR_REQUEST, "started twice");
    expect(MPI_Pready(0, receive), MPI_ERR_REQUEST, "a receive is ready");
    expect(MPI_Pready(-1, send), MPI_ERR_ARG, "partition -1");
    expect(MPI_Pready(4, send), MPI_ERR_ARG, "partition 4");
    expect(MPI_Pready_range(2, 1, send), MPI_ERR_ARG, "backwards");
    expect(MPI_Pready_range(2, 4, send), MPI_ERR_ARG, "too far");
    expect(MPI_Parrived(receive, 2, &flag), MPI_ERR_ARG, "partition 2 arrived");
    expect(MPI_Parrived(receive, -1, &flag), MPI_ERR_ARG, "partition -1 arrived");
    MPI_Pready(1, send);
    expect(MPI_Pready(1, send), MPI_ERR_ARG, "ready twice");
    expect(MPI_Pready_range(0, 2, send), MPI_ERR_ARG, "ready before");
    int list[2] = {0, 1};
    expect(MPI_Pready_list(2, list, send), MPI_ERR_ARG, "ready before, in a list");
    expect(MPI_Cancel(&send), MPI_ERR_REQUEST, "cancelled");
    expect(MPI_Request_free(&send), MPI_ERR_REQUEST, "freed with partitions missing");
    /* None of that has done anything. */
    MPI_Pready(0, send);
    MPI_Pready_range(2, 3, send);
    MPI_Wait(&receive, MPI_STATUS_IGNORE);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    CHECK(in[0] == 1 && in[1] == 2 && in[2] == 3 && in[3] == 4, "wrong data");
    MPI_Request_free(&send);
    MPI_Request_free(&receive);
}

static void more_than_there_is_room_for(void) {
    int out[4] = {1, 2, 3, 4}, in[4];
    MPI_Request send = send_of(out, 4, 1, MPI_INT, 0);
    MPI_Request receive = receive_of(in, 1, 3, MPI_INT, 0);
    in[3] = -1;
    MPI_Start(&send);
    MPI_Start(&receive);
    MPI_Pready_range(0, 3, send);
    expect(MPI_Wait(&receive, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE, "too long");
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    CHECK(in[3] == -1, "written behind the buffer");
    MPI_Request_free(&send);
    MPI_Request_free(&receive);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    check_ranks(&rank, &size, 1);
    next = (rank + 1) % size;
    before = (rank - 1 + size) % size;
    rounds(1, 1, 8);
    rounds(4, 4, 64);
    rounds(17, 33, 561 * 4);
    rounds(33, 17, 561 * 4);
    rounds(3, 64, 192 * 1000);
    rounds(64, 1, 1 << 20);
    rounds(2, 8, 1 << 22);
    early_use();
    gaps();
    order();
    corners();
    errors_of_making();
    errors_of_use();
    more_than_there_is_room_for();
    /* A send that nobody receives, a receive that nothing is sent to, both without use. */
    static int last;
    MPI_Request unused[2] = {send_of(&last, 1, 1, MPI_INT, 77),
                             receive_of(&last, 1, 1, MPI_INT, 78)};
    MPI_Request_free(&unused[0]);
    MPI_Request_free(&unused[1]);
    MPI_Finalize();
    return 0;
}
