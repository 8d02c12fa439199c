/* Events reach the functions that are registered for them, with their data, and no others. */
#include "tool.h"

static int rank, size, other;

typedef struct {
    int calls, level, last_tag, nested;
    long long last_ns;
    MPI_Count last_time;
    MPI_Comm comm;
} Record;

static void on_message(MPI_T_event_instance instance, MPI_T_event_registration registration,
                       MPI_T_cb_safety safety, void* data) {
    Record* record = data;
    int source = -1, tag = -1, index = -1;
    unsigned length = 0;
    unsigned long long bytes = 0;
    MPI_Count time = 0, now = 0;
    (void)registration;
    record->level = safety;
    CHECK(MPI_T_event_read(instance, 0, &source) == MPI_SUCCESS, "source");
    CHECK(MPI_T_event_read(instance, 1, &tag) == MPI_SUCCESS, "tag");
    CHECK(MPI_T_event_read(instance, 3, &bytes) == MPI_SUCCESS, "bytes");
    CHECK(MPI_T_event_read(instance, 4, &length) == MPI_SUCCESS, "length");
    CHECK(MPI_T_event_read(instance, 6, &length) == MPI_T_ERR_INVALID_INDEX, "beyond the last");
    CHECK(MPI_T_event_read(instance, 0, NULL) == MPI_T_ERR_INVALID, "no buffer");
    CHECK(MPI_T_event_get_source(instance, &index) == MPI_SUCCESS && index == 0, "source %d",
          index);
    CHECK(MPI_T_event_get_timestamp(instance, &time) == MPI_SUCCESS, "time");
    CHECK(MPI_T_source_get_timestamp(0, &now) == MPI_SUCCESS, "time of the source");
    CHECK(time >= record->last_time && time <= now, "an event of time %lld after %lld, at %lld",
          (long long)time, (long long)record->last_time, (long long)now);
    record->last_time = time;
    if (tag < 10 || tag >= 20)
        return; /* another one's */
    CHECK(source == other, "source %d", source);
    CHECK(bytes == 4ull * (unsigned)(tag - 9), "tag %d has %llu bytes", tag, bytes);
    CHECK(length == (unsigned)++record->calls, "event %d at length %u", record->calls, length);
    CHECK(tag > record->last_tag, "tag %d after %d", tag, record->last_tag);
    record->last_tag = tag;
    /* The elements at their displacements, in one piece. */
    MPI_Datatype types[6];
    MPI_Aint places[6];
    int elements = 6, event, copied;
    char all[64];
    MPI_T_event_get_index("unexpected_message", &event);
    MPI_T_event_get_info(event, NULL, NULL, NULL, types, places, &elements, NULL, NULL, NULL, NULL,
                         NULL);
    CHECK(MPI_T_event_copy(instance, all) == MPI_SUCCESS, "copy");
    memcpy(&copied, all + places[1], sizeof copied);
    CHECK(copied == tag && types[1] == MPI_INT, "copied tag %d", copied);
    /* It may call MPI, even wait. */
    int sent = tag, got = 0;
    MPI_Sendrecv(&sent, 1, MPI_INT, 0, tag, &got, 1, MPI_INT, 0, tag, record->comm,
                 MPI_STATUS_IGNORE);
    CHECK(got == tag, "got %d", got);
}

static void on_wait(MPI_T_event_instance instance, MPI_T_event_registration registration,
                    MPI_T_cb_safety safety, void* data) {
    Record* record = data;
    unsigned long long duration = 0;
    int call = -1, event = -1, value = -1, length = 64;
    char name[64];
    MPI_T_enum names;
    (void)registration, (void)safety;
    MPI_T_event_read(instance, 0, &call);
    MPI_T_event_read(instance, 3, &duration);
    MPI_T_event_get_index("long_wait", &event);
    MPI_T_event_get_info(event, NULL, NULL, NULL, NULL, NULL, NULL, &names, NULL, NULL, NULL, NULL);
    CHECK(MPI_T_enum_get_item(names, call, &value, name, &length) == MPI_SUCCESS, "call %d", call);
    CHECK(value == call, "item %d is %d", call, value);
    if (strncmp(name, "MPI_Recv", 8) == 0 && (long long)duration > record->last_ns)
        record->last_ns = (long long)duration;
    record->calls++;
}

static MPI_T_event_registration listen_to(const char* name, MPI_T_cb_safety safety, Record* record,
                                          MPI_T_event_cb_function function) {
    int event = -1;
    MPI_T_event_registration made;
    CHECK(MPI_T_event_get_index(name, &event) == MPI_SUCCESS, "%s", name);
    CHECK(MPI_T_event_handle_alloc(event, NULL, MPI_INFO_NULL, &made) == MPI_SUCCESS, "%s", name);
    CHECK(MPI_T_event_register_callback(made, safety, MPI_INFO_NULL, record, function) ==
              MPI_SUCCESS,
          "%s", name);
    return made;
}

static void send_some(void) {
    int values[10] = {0};
    for (int tag = 10; tag < 20; tag++)
        MPI_Send(values, tag - 9, MPI_INT, other, tag, MPI_COMM_WORLD);
}

static void receive_some(void) {
    int values[10];
    MPI_Probe(other, 19, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    int flag;
    MPI_Iprobe(other, 77, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE); /* what Probe left to tell */
    for (int tag = 19; tag >= 10; tag--)
        MPI_Recv(values, 10, MPI_INT, other, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void messages(void) {
    Record record = {.comm = MPI_COMM_SELF};
    MPI_Comm_dup(MPI_COMM_SELF, &record.comm);
    MPI_T_event_registration first =
        listen_to("unexpected_message", MPI_T_CB_REQUIRE_THREAD_SAFE, &record, on_message);
    /* Of several functions of a registration, the one with the fewest restrictions is called. */
    CHECK(MPI_T_event_register_callback(first, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL, &record,
                                        on_message) == MPI_SUCCESS,
          "a second level");
    MPI_Barrier(MPI_COMM_WORLD);
    send_some();
    receive_some();
    CHECK(record.calls == 10, "%d of 10 events", record.calls);
    CHECK(record.level == MPI_T_CB_REQUIRE_NONE, "level %d", record.level);
    /* Without a function, nothing is told; nor after the end. */
    MPI_T_event_register_callback(first, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL, NULL, NULL);
    record.calls = record.last_tag = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    send_some();
    receive_some();
    CHECK(record.calls == 10 && record.level == MPI_T_CB_REQUIRE_THREAD_SAFE, "%d, level %d",
          record.calls, record.level);
    CHECK(MPI_T_event_handle_free(first, NULL, NULL) == MPI_SUCCESS, "free");
    MPI_Barrier(MPI_COMM_WORLD);
    send_some();
    receive_some();
    CHECK(record.calls == 10, "%d events after the end", record.calls);
    MPI_Comm_free(&record.comm);
}

static void long_waits(void) {
    Record record = {.calls = 0};
    int got;
    const unsigned long long before = control_set("long_wait_ns", 20000000);
    MPI_T_event_registration waits =
        listen_to("long_wait", MPI_T_CB_REQUIRE_MPI_RESTRICTED, &record, on_wait);
    for (int round = 0; round < 2; round++) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) {
            pause_ms(50);
            MPI_Send(&rank, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
        } else {
            MPI_Recv(&got, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        int flag;
        MPI_Iprobe(other, 77, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        if (rank == 1 && round == 0) {
            CHECK(record.last_ns >= 20000000, "a wait of %lld ns in MPI_Recv", record.last_ns);
        }
        if (rank == 1 && round == 1)
            CHECK(record.last_ns == 0, "a wait of %lld ns in spite of the limit", record.last_ns);
        record.last_ns = 0;
        control_set("long_wait_ns", 3600000000000);
    }
    control_set("long_wait_ns", before);
    CHECK(MPI_T_event_handle_free(waits, NULL, NULL) == MPI_SUCCESS, "free");
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    check_ranks(&rank, &size, 2);
    tool_init();
    other = 1 - rank;
    if (rank < 2) {
        messages();
        long_waits();
    } else {
        for (int i = 0; i < 3 + 3; i++)
            MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_T_finalize();
    MPI_Finalize();
    return 0;
}
