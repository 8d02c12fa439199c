/* Each performance variable moves when the thing happens that it counts, and only then. Ranks 0 and
   1 communicate; others only take part in what is collective. "refused": the kernel refuses to read
   other ranks' memory. At the end the list of all variables is compared with those that moved. */
#include <unistd.h>

#include "tool.h"

enum { large = 1000000 };

static int rank, size, other, kind, refused;
static MPI_Comm pair; /* of ranks 0 and 1 */
static unsigned char* data;

/* What this rank has seen of each variable, by its index. */
enum { variables_most = 128 };
static struct {
    double first;
    int opened;
} seen[variables_most];
static int moved[variables_most];

static double look(const Variable* variable) {
    const double value = variable_value(variable);
    moved[variable->index] |= value != seen[variable->index].first;
    return value;
}

static Variable open_watched(const char* name, int var_class) {
    const Variable its = variable_open(name, var_class);
    CHECK(its.index < variables_most, "index %d", its.index);
    if (!seen[its.index].opened++)
        seen[its.index].first = variable_value(&its);
    return its;
}
static Variable open_counter(const char* name) {
    return open_watched(name, MPI_T_PVAR_CLASS_COUNTER);
}
static Variable open_level(const char* name) {
    return open_watched(name, MPI_T_PVAR_CLASS_LEVEL);
}
static Variable open_sum(const char* name) {
    return open_watched(name, MPI_T_PVAR_CLASS_AGGREGATE);
}

static void expect(Variable* variable, double value) {
    const double got = look(variable);
    CHECK(got == value, "%s is %g, not %g", variable->name, got, value);
}
static void expect_at_least(Variable* variable, double value) {
    const double got = look(variable);
    CHECK(got >= value, "%s is %g, less than %g", variable->name, got, value);
}

static void posted_receives(void) {
    MPI_Request requests[3];
    int got[3];
    Variable length = open_level("posted_recvq_length");
    Variable live = open_level("requests");
    Variable attempts = open_counter("posted_recvq_match_attempts");
    const double before = variable_value(&length), live_before = variable_value(&live);
    for (int i = 0; i < 3; i++)
        MPI_Irecv(&got[i], 1, MPI_INT, MPI_ANY_SOURCE, i, MPI_COMM_WORLD, &requests[i]);
    expect(&length, before + 3);
    expect(&live, live_before + 3);
    expect(&attempts, 0);
    MPI_Barrier(pair);
    for (int i = 2; i >= 0; i--) /* the last receive is compared with three messages' worth */
        MPI_Send(&rank, 1, MPI_INT, other, i, MPI_COMM_WORLD);
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    expect(&length, before);
    expect(&live, live_before);
    expect(&attempts, 3 + 2 + 1);
    variable_close(&length);
    variable_close(&live);
    variable_close(&attempts);
}

static void unexpected_messages(void) {
    char bytes[20];
    MPI_Status status;
    Variable length = open_level("unexpected_recvq_length");
    Variable queued = open_level("unexpected_recvq_buffer_size");
    Variable most = open_watched("unexpected_recvq_length_max", MPI_T_PVAR_CLASS_HIGHWATERMARK);
    Variable most_bytes =
        open_watched("unexpected_recvq_buffer_size_max", MPI_T_PVAR_CLASS_HIGHWATERMARK);
    Variable attempts = open_counter("unexpected_recvq_match_attempts");
    Variable count = open_counter("unexpected");
    Variable sum = open_sum("unexpected_bytes");
    MPI_Barrier(pair);
    for (int i = 0; i < 5; i++)
        MPI_Send(data, 20, MPI_CHAR, other, i, MPI_COMM_WORLD);
    MPI_Probe(other, 4, MPI_COMM_WORLD, &status); /* all are here then */
    expect(&length, 5);
    expect(&queued, 100);
    expect(&most, 5);
    expect(&most_bytes, 100);
    expect(&count, 5);
    expect(&sum, 100);
    expect_at_least(&attempts, 1);
    for (int i = 4; i >= 0; i--)
        MPI_Recv(bytes, 20, MPI_CHAR, other, i, MPI_COMM_WORLD, &status);
    expect(&length, 0);
    expect(&queued, 0);
    expect(&most, 5);
    expect_at_least(&attempts, 6);
    MPI_T_pvar_reset(most.session, most.handle);
    expect(&most, 0);
    variable_close(&length);
    variable_close(&queued);
    variable_close(&most);
    variable_close(&most_bytes);
    variable_close(&attempts);
    variable_close(&count);
    variable_close(&sum);
}

/* Begins when the other rank has looked at its variables. */
static void exchange(int bytes, int synchronous) {
    MPI_Request request;
    MPI_Barrier(pair);
    unsigned char* got = check_buffer((size_t)bytes);
    MPI_Irecv(got, bytes, MPI_BYTE, other, 9, MPI_COMM_WORLD, &request);
    MPI_Request send;
    if (synchronous)
        MPI_Issend(data, bytes, MPI_BYTE, other, 9, MPI_COMM_WORLD, &send);
    else
        MPI_Isend(data, bytes, MPI_BYTE, other, 9, MPI_COMM_WORLD, &send);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check_pattern(got, (size_t)bytes, 3, "exchange");
    free(got);
}

static void short_messages(void) {
    int got, one = 1;
    Variable sent = open_counter("eager_sent"), sent_bytes = open_sum("eager_sent_bytes");
    Variable received = open_counter("received"), received_bytes = open_sum("received_bytes");
    Variable self = open_counter("self_sent"), self_bytes = open_sum("self_sent_bytes");
    MPI_Barrier(pair); /* nobody sends before both count */
    for (int i = 0; i < 10; i++) {
        if (rank == 0)
            MPI_Send(&one, 1, MPI_INT, other, i, MPI_COMM_WORLD);
        MPI_Recv(&got, 1, MPI_INT, other, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == 1)
            MPI_Send(&one, 1, MPI_INT, other, i, MPI_COMM_WORLD);
    }
    expect(&sent, 10);
    expect(&sent_bytes, 40);
    expect(&received, 10);
    expect(&received_bytes, 40);
    /* Stopped, it stands. */
    MPI_T_pvar_stop(sent.session, sent.handle);
    exchange(100, 0);
    expect(&sent, 10);
    expect(&received, 11);
    expect(&received_bytes, 140);
    MPI_T_pvar_start(sent.session, sent.handle);
    exchange(100, 0);
    expect(&sent, 11);
    MPI_Sendrecv(&one, 1, MPI_INT, rank, 0, &got, 1, MPI_INT, rank, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    expect(&self, 1);
    expect(&self_bytes, 4);
    expect(&sent, 11);
    variable_close(&sent);
    variable_close(&sent_bytes);
    variable_close(&received);
    variable_close(&received_bytes);
    variable_close(&self);
    variable_close(&self_bytes);
}

/* Two handles of one variable in two sessions. */
static void sessions(void) {
    unsigned long long value = 1000;
    Variable one = open_counter("received"), two = open_counter("received");
    MPI_Barrier(pair);
    exchange(8, 0);
    MPI_T_pvar_stop(one.session, one.handle);
    exchange(8, 0);
    expect(&one, 1);
    expect(&two, 2);
    CHECK(MPI_T_pvar_write(one.session, one.handle, &value) == MPI_SUCCESS, "write");
    MPI_T_pvar_start(one.session, one.handle);
    CHECK(MPI_T_pvar_readreset(two.session, two.handle, &value) == MPI_SUCCESS, "readreset");
    CHECK(value == 2, "read before the reset: %llu", value);
    exchange(8, 0);
    expect(&one, 1001);
    expect(&two, 1);
    variable_close(&one);
    exchange(8, 0);
    expect(&two, 2);
    variable_close(&two);
}

static void protocols(void) {
    Variable streams = open_counter("streams_sent"), streamed = open_sum("streams_sent_bytes");
    Variable offers = open_counter("rendezvous_sent"), offered = open_sum("rendezvous_sent_bytes");
    Variable direct = open_counter("direct_sent"), direct_bytes = open_sum("direct_sent_bytes");
    Variable fetches = open_counter("fetches"), fetched = open_sum("fetched_bytes");
    Variable refusals = open_counter("fetches_refused");
    MPI_Barrier(pair);
    exchange(large, 1); /* a synchronous send leaves its data where it is */
    if (kind == by_processes) {
        expect(&offers, 1);
        expect(&offered, large);
        expect(&direct, 0);
        if (refused) {
            expect(&refusals, 1);
            expect(&fetches, 0);
        } else {
            expect(&refusals, 0);
            expect_at_least(&fetches, 1);
            /* (With a peer that helps, a rank reads a part itself.) */
            expect_at_least(&fetched, 1);
        }
    } else {
        expect(&direct, 1);
        expect(&direct_bytes, large);
        expect(&offers, 0);
    }
    if (control_get("pair_rings") > 0) {
        for (int i = 0; i < 20; i++)
            exchange(100000, 0);
        expect_at_least(&streams, 1);
        const double sent = variable_value(&streams);
        expect(&streamed, sent * 100000);
    } else {
        expect(&streams, 0);
    }
    variable_close(&streams);
    variable_close(&streamed);
    variable_close(&offers);
    variable_close(&offered);
    variable_close(&direct);
    variable_close(&direct_bytes);
    variable_close(&fetches);
    variable_close(&fetched);
    variable_close(&refusals);
}

static void pending_sends(void) {
    enum { count = 5000 };
    static MPI_Request requests[count];
    static int values[count];
    Variable pending = open_level("pending_sends");
    if (rank == 0) {
        for (int i = 0; i < count; i++)
            MPI_Isend(&values[i], 1, MPI_INT, 1, i, MPI_COMM_WORLD, &requests[i]);
        expect_at_least(&pending, 1);
        MPI_Send(NULL, 0, MPI_INT, 1, count, MPI_COMM_WORLD);
        MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
        expect(&pending, 0);
    } else {
        pause_ms(300);
        for (int i = 0; i < count; i++)
            MPI_Recv(&values[i], 1, MPI_INT, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(NULL, 0, MPI_INT, 0, count, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    variable_close(&pending);
}

static void waiting(void) {
    Variable waits = open_counter("waits");
    Variable time = open_watched("waiting_time", MPI_T_PVAR_CLASS_TIMER);
    Variable yields = open_counter("yields"), sleeps = open_counter("sleeps");
    Variable wakes = open_counter("wakes");
    MPI_Barrier(pair);
    MPI_T_pvar_reset(waits.session, waits.handle);
    MPI_T_pvar_reset(time.session, time.handle);
    int got;
    if (rank == 0) {
        pause_ms(60);
        MPI_Send(&rank, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
    } else {
        MPI_Recv(&got, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        expect_at_least(&waits, 1);
        expect_at_least(&time, 0.03);
        CHECK(variable_value(&time) < 60, "%g s", variable_value(&time));
        expect_at_least(&sleeps, 1);
        expect_at_least(&wakes, 1);
        if (control_get("ranks_share_processors") && kind != by_fibres)
            expect_at_least(&yields, 1);
    }
    variable_close(&waits);
    variable_close(&time);
    variable_close(&yields);
    variable_close(&sleeps);
    variable_close(&wakes);
}

static void windows(void) {
    long long* memory;
    long long value = 5;
    MPI_Win win;
    enum { many = 8 << 20 };
    Variable open = open_level("windows"), operations = open_counter("window_operations");
    Variable bytes = open_sum("window_bytes"), waits = open_counter("window_lock_waits");
    Variable used = open_level("segment_bytes_in_use");
    Variable room = open_watched("segment_bytes", MPI_T_PVAR_CLASS_SIZE);
    const double before = variable_value(&open), used_before = variable_value(&used);
    expect_at_least(&room, 4096);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_allocate(many, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    memset(memory, 1, many);
    MPI_Barrier(MPI_COMM_WORLD);
    expect(&open, before + 1);
    expect_at_least(&used, used_before + many / 2);
    if (rank < 2) {
        MPI_Win_lock(MPI_LOCK_SHARED, other, 0, win);
        for (int i = 0; i < 4; i++)
            MPI_Put(&value, 1, MPI_LONG_LONG, other, i, 1, MPI_LONG_LONG, win);
        MPI_Accumulate(&value, 1, MPI_LONG_LONG, other, 9, 1, MPI_LONG_LONG, MPI_SUM, win);
        MPI_Get(&value, 1, MPI_LONG_LONG, other, 3, 1, MPI_LONG_LONG, win);
        MPI_Win_unlock(other, win);
        expect(&operations, 6);
        expect(&bytes, 48);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    expect(&waits, 0);
    if (rank == 0) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
        MPI_Send(NULL, 0, MPI_INT, 1, 0, MPI_COMM_WORLD);
        pause_ms(400);
        MPI_Win_unlock(0, win);
    } else if (rank == 1) {
        MPI_Recv(NULL, 0, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
        MPI_Win_unlock(0, win);
        expect(&waits, 1);
    }
    MPI_Win_free(&win);
    expect(&open, before);
    variable_close(&open);
    variable_close(&operations);
    variable_close(&bytes);
    variable_close(&waits);
    variable_close(&used);
    variable_close(&room);
}

static void files(void) {
    char name[64] = "";
    MPI_File file;
    MPI_Request request;
    Variable open = open_level("files"), read = open_sum("file_bytes_read");
    Variable written = open_sum("file_bytes_written");
    if (rank == 0) {
        snprintf(name, sizeof name, "/tmp/warren_tool_XXXXXX");
        const int descriptor = mkstemp(name);
        CHECK(descriptor >= 0, "no file %s", name);
        close(descriptor);
    }
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                  &file);
    expect(&open, 1);
    MPI_File_write_at(file, 1000 * rank, data, 700, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_iwrite_at(file, 1000 * rank + 700, data, 300, MPI_BYTE, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect(&written, 1000);
    expect(&read, 0);
    MPI_File_read_at_all(file, 1000 * rank, data, 600, MPI_BYTE, MPI_STATUS_IGNORE);
    expect(&read, 600);
    MPI_File_close(&file);
    expect(&open, 0);
    variable_close(&open);
    variable_close(&read);
    variable_close(&written);
}

static int begins_with(const char* name, const char* begin) {
    return strncmp(name, begin, strlen(begin)) == 0;
}

/* Whether a variable can't move here: how ranks are carried decides which ways messages go. */
static int may_stand(const char* name) {
    if (strcmp(name, "segment_bytes") == 0) /* a size */
        return 1;
    if (strcmp(name, "wait_state") == 0 || strcmp(name, "thread_lock_waits") == 0)
        return 1; /* threads.c moves them */
    if (strcmp(name, "fetches_refused") == 0)
        return kind != by_processes || !refused;
    if (begins_with(name, "fetch"))
        return kind != by_processes || refused;
    if (begins_with(name, "rendezvous_sent"))
        return kind != by_processes;
    if (begins_with(name, "direct_sent"))
        return kind == by_processes;
    if (begins_with(name, "streams_sent"))
        return control_get("pair_rings") == 0;
    return strcmp(name, "yields") == 0 &&
           (kind == by_fibres || !control_get("ranks_share_processors"));
}

static void all_have_moved(void) {
    int count = 0, length;
    char name[64];
    MPI_T_pvar_get_num(&count);
    CHECK(count > 0 && count <= variables_most, "%d variables", count);
    MPI_Allreduce(MPI_IN_PLACE, moved, count, MPI_INT, MPI_LOR, MPI_COMM_WORLD);
    for (int i = 0; i < count; i++) {
        length = sizeof name;
        MPI_T_pvar_get_info(i, name, &length, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
                            NULL);
        CHECK(moved[i] || may_stand(name), "%s has not moved", name);
    }
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    check_ranks(&rank, &size, 2);
    tool_init();
    refused = argc > 1 && strcmp(argv[1], "refused") == 0;
    kind = (int)control_get("ranks");
    other = 1 - rank;
    data = check_buffer(large);
    check_fill(data, large, 3);
    void (*const pairs[])(void) = {posted_receives, unexpected_messages, short_messages, sessions,
                                   protocols,       pending_sends,       waiting};
    MPI_Comm_split(MPI_COMM_WORLD, rank < 2, rank, &pair);
    for (size_t i = 0; rank < 2 && i < sizeof pairs / sizeof *pairs; i++) {
        pairs[i]();
        MPI_Barrier(pair);
    }
    MPI_Comm_free(&pair);
    MPI_Barrier(MPI_COMM_WORLD);
    windows();
    files();
    all_have_moved();
    MPI_T_finalize();
    free(data);
    MPI_Finalize();
    return 0;
}
