/* Random traffic that all ranks know in advance: every round is a list of messages of random
   sizes, modes, communicators and ways to receive and to complete, drawn from a seed, and every
   byte and status is checked. random_traffic [SEED [ROUNDS]] A round cannot deadlock: early
   receives are posted before a barrier, then all sends are started (blocking ones only to receives
   that are posted), then the late receives are made. */
#include "check.h"

/* How the messages of a communicator find their receives. */
enum kind {
    tagged,  /* each has a tag of its own */
    ordered, /* all have the same tag: they come in the order of their sends */
    wild,    /* any source, any tag: the status says which one it was */
    kinds
};
enum mode { standard, synchronous, buffered, ready, modes };
enum form { blocking, immediate, persistent, forms };
enum pickup { by_recv, by_irecv, by_probe, by_iprobe, by_mprobe, by_improbe, pickups };

enum { variants = 2, largest_round = 400, same_tag = 5, unsent_tag = 30000 };

struct message {
    int source, dest; /* ranks in the world */
    int kind, variant;
    int mode, form, strided;
    int early, any_source, pickup;
    int bytes;
    unsigned seed;
    unsigned char* sent; /* memory of the send, until it is complete */
    int arrived;
};

/* A receive: of a message that is known, or (wild) of one that its status tells. */
struct receive {
    struct message* message; /* null while unknown */
    unsigned char* data;
    int room;
    MPI_Status status;
    int kind, variant;
};

static MPI_Comm comms[kinds][variants]; /* variant 1 counts the ranks from the other end */
static int rank, size, round_number;
static unsigned seed_of_run, state;
static struct message messages[largest_round];
static int message_count, largest_wild;
static struct receive receives[largest_round];
static int receive_count;
static MPI_Request requests[2 * largest_round];
static struct receive* receive_of[2 * largest_round]; /* of a request; null: a send's */
static int request_count;

static unsigned draw(unsigned below) {
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state % below;
}

/* Around the limits of the protocols, or anything. */
static int draw_size(int limit) {
    static const int limits[] = {0,     8,      16,     32,     40,      64,
                                 256,   1024,   4096,   8192,   16384,   32768,
                                 65536, 262144, 266240, 524288, 1 << 20, 2 << 20};
    const unsigned count = sizeof limits / sizeof limits[0];
    int bytes;
    switch (draw(8)) {
    case 0:
        bytes = (int)draw(300);
        break;
    case 1:
        bytes = (int)draw(40000);
        break;
    case 2:
        bytes = limits[draw(count)] + (int)draw(3) - 1;
        break;
    default:
        bytes = limits[draw(count - 6)] + (int)draw(3) - 1;
    }
    return bytes < 0 ? 0 : bytes > limit ? limit : bytes;
}

/* The list of a round: the same on all ranks. */
static void draw_round(void) {
    const int early_kind[kinds] = {0, (int)draw(2), (int)draw(2)};
    message_count = 1 + (int)draw((unsigned)size * 12);
    if (message_count > largest_round) {
        message_count = largest_round;
    }
    largest_wild = 0;
    for (int i = 0; i < message_count; i++) {
        struct message* m = &messages[i];
        memset(m, 0, sizeof *m);
        m->source = (int)draw((unsigned)size);
        m->dest = (int)draw((unsigned)size);
        m->kind = (int)draw(kinds);
        m->variant = (int)draw(variants);
        m->early = m->kind == tagged ? (int)draw(2) : early_kind[m->kind];
        m->mode = (int)draw(modes);
        m->form = (int)draw(forms);
        m->strided = draw(8) == 0;
        m->any_source = m->kind == wild || (m->kind == tagged && draw(3) == 0);
        m->pickup = (int)draw(pickups);
        m->bytes = draw_size(m->kind == wild || m->strided ? 70000 : 2 << 20);
        m->seed = draw(1u << 30);
        if (!m->early && m->mode == ready) {
            m->mode = standard;
        }
        if (!m->early && m->form == blocking && m->mode != buffered) {
            m->form = immediate;
        }
        if (m->kind == wild && m->bytes > largest_wild) {
            largest_wild = m->bytes;
        }
    }
}

static int rank_in(int variant, int world_rank) {
    return variant == 0 ? world_rank : size - 1 - world_rank;
}

static MPI_Comm comm_of(const struct message* m) {
    return comms[m->kind][m->variant];
}

static int tag_of(const struct message* m) {
    return m->kind == ordered ? same_tag : (int)(m - messages);
}

static void describe(const struct message* m, const char* what, char text[200]) {
    snprintf(text, 200,
             "%s: seed %u, round %d, message %d (%d bytes, %d to %d, kind %d, mode %d, form %d, "
             "early %d, pickup %d)",
             what, seed_of_run, round_number, (int)(m - messages), m->bytes, m->source, m->dest,
             m->kind, m->mode, m->form, m->early, m->pickup);
}

/* --- Receiving */

static struct receive* new_receive(struct message* m) {
    struct receive* r = &receives[receive_count++];
    r->message = m->kind == wild ? NULL : m;
    r->kind = m->kind;
    r->variant = m->variant;
    r->room = m->kind == wild ? largest_wild : m->bytes;
    r->data = check_buffer((size_t)r->room + 1);
    memset(r->data, 0xA5, (size_t)r->room + 1);
    return r;
}

static int source_of(const struct message* m) {
    return m->any_source ? MPI_ANY_SOURCE : rank_in(m->variant, m->source);
}

static int tag_to_receive(const struct message* m) {
    return m->kind == wild || (m->kind == ordered && m->any_source) ? MPI_ANY_TAG : tag_of(m);
}

static void receive_early(struct message* m) {
    struct receive* r = new_receive(m);
    MPI_Request* request = &requests[request_count];
    receive_of[request_count++] = r;
    if (m->form == persistent) {
        MPI_Recv_init(r->data, r->room, MPI_BYTE, source_of(m), tag_to_receive(m), comm_of(m),
                      request);
        MPI_Start(request);
    } else {
        MPI_Irecv(r->data, r->room, MPI_BYTE, source_of(m), tag_to_receive(m), comm_of(m), request);
    }
}

static void receive_late(struct message* m) {
    struct receive* r = new_receive(m);
    const MPI_Comm comm = comm_of(m);
    const int source = source_of(m), tag = tag_to_receive(m);
    MPI_Message matched;
    MPI_Request request;
    MPI_Status probed;
    int flag = 0, probed_bytes = -1;
    switch (m->pickup) {
    case by_recv:
        MPI_Recv(r->data, r->room, MPI_BYTE, source, tag, comm, &r->status);
        return;
    case by_irecv:
        MPI_Irecv(r->data, r->room, MPI_BYTE, source, tag, comm, &request);
        while (!flag) {
            MPI_Test(&request, &flag, &r->status);
        }
        return;
    case by_probe:
        MPI_Probe(source, tag, comm, &probed);
        MPI_Recv(r->data, r->room, MPI_BYTE, probed.MPI_SOURCE, probed.MPI_TAG, comm, &r->status);
        break;
    case by_iprobe:
        while (!flag) {
            MPI_Iprobe(source, tag, comm, &flag, &probed);
        }
        MPI_Recv(r->data, r->room, MPI_BYTE, probed.MPI_SOURCE, probed.MPI_TAG, comm, &r->status);
        break;
    case by_mprobe:
        MPI_Mprobe(source, tag, comm, &matched, &probed);
        MPI_Mrecv(r->data, r->room, MPI_BYTE, &matched, &r->status);
        break;
    default:
        while (!flag) {
            MPI_Improbe(source, tag, comm, &flag, &matched, &probed);
        }
        MPI_Imrecv(r->data, r->room, MPI_BYTE, &matched, &request);
        MPI_Wait(&request, &r->status);
    }
    char text[200];
    describe(m, "probed", text);
    MPI_Get_count(&probed, MPI_BYTE, &probed_bytes);
    check_status(&r->status, probed.MPI_SOURCE, probed.MPI_TAG, probed_bytes, text);
}

/* Everything about a receive that is complete. */
static void check_receive(struct receive* r) {
    char text[200];
    if (r->kind == wild) {
        const int tag = r->status.MPI_TAG;
        CHECK(tag >= 0 && tag < message_count, "seed %u, round %d: tag %d", seed_of_run,
              round_number, tag);
        r->message = &messages[tag];
    }
    struct message* m = r->message;
    describe(m, "received", text);
    CHECK(m->dest == rank && m->kind == r->kind && m->variant == r->variant && !m->arrived,
          "%s: not the one to come", text);
    m->arrived = 1;
    check_status(&r->status, rank_in(m->variant, m->source), tag_of(m), m->bytes, text);
    check_pattern(r->data, (size_t)m->bytes, m->seed, text);
    for (int i = m->bytes; i <= r->room; i++) {
        CHECK(r->data[i] == 0xA5, "%s: byte %d behind it has been written", text, i);
    }
    free(r->data);
}

/* Receives of any source took the messages of each source in the order of their sends. */
static void check_order(void) {
    for (int i = 0; i < receive_count; i++) {
        for (int k = i + 1; k < receive_count; k++) {
            const struct message *first = receives[i].message, *second = receives[k].message;
            CHECK(receives[i].kind != wild || receives[k].kind != wild ||
                      first->variant != second->variant || first->source != second->source ||
                      first < second,
                  "seed %u, round %d: message %d overtook message %d", seed_of_run, round_number,
                  (int)(first - messages), (int)(second - messages));
        }
    }
}

/* --- Sending */

typedef int blocking_send(const void*, int, MPI_Datatype, int, int, MPI_Comm);
typedef int request_send(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);
static blocking_send* const blocking_sends[modes] = {MPI_Send, MPI_Ssend, MPI_Bsend, MPI_Rsend};
static request_send* const immediate_sends[modes] = {MPI_Isend, MPI_Issend, MPI_Ibsend, MPI_Irsend};
static request_send* const persistent_sends[modes] = {MPI_Send_init, MPI_Ssend_init, MPI_Bsend_init,
                                                      MPI_Rsend_init};

static void start_send(struct message* m) {
    const size_t bytes = (size_t)m->bytes, step = m->strided ? 3 : 1;
    const int dest = rank_in(m->variant, m->dest);
    MPI_Datatype type = MPI_BYTE;
    int count = m->bytes;
    m->sent = check_buffer(bytes * step);
    for (size_t i = 0; i < bytes; i++) {
        m->sent[i * step] = check_byte(m->seed, i);
    }
    if (m->strided) {
        MPI_Type_vector(m->bytes, 1, (int)step, MPI_BYTE, &type);
        MPI_Type_commit(&type);
        count = 1;
    }
    if (m->form == blocking) {
        blocking_sends[m->mode](m->sent, count, type, dest, tag_of(m), comm_of(m));
        memset(m->sent, 0x11, bytes);
    } else {
        MPI_Request* request = &requests[request_count];
        receive_of[request_count++] = NULL;
        (m->form == immediate ? immediate_sends : persistent_sends)[m->mode](
            m->sent, count, type, dest, tag_of(m), comm_of(m), request);
        if (m->form == persistent) {
            MPI_Start(request);
        }
    }
    if (m->strided) {
        MPI_Type_free(&type); /* at once: the send keeps what it needs */
    }
}

static void* attach(void) {
    int room = 0;
    for (int i = 0; i < message_count; i++) {
        if (messages[i].source == rank && messages[i].mode == buffered) {
            room += messages[i].bytes + MPI_BSEND_OVERHEAD;
        }
    }
    if (round_number % 3 == 0) {
        MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0);
        return NULL;
    }
    void* memory = check_buffer((size_t)room + MPI_BSEND_OVERHEAD);
    MPI_Buffer_attach(memory, room + MPI_BSEND_OVERHEAD);
    return memory;
}

/* --- Completing */

static void store(int index, const MPI_Status* status) {
    if (receive_of[index] != NULL) {
        receive_of[index]->status = *status;
    }
}

static void complete_all(void) {
    static MPI_Status statuses[2 * largest_round];
    static int indices[2 * largest_round];
    MPI_Status status;
    int left = request_count, index = 0, flag = 0, count = 0;
    const unsigned way = draw(6);
    if (way == 0) {
        MPI_Waitall(request_count, requests, statuses);
    } else if (way == 1) {
        while (!flag) {
            MPI_Testall(request_count, requests, &flag, statuses);
        }
    }
    if (way < 2) {
        for (index = 0; index < request_count; index++) {
            store(index, &statuses[index]);
        }
        return;
    }
    while (left > 0) {
        if (way == 2) {
            MPI_Waitany(request_count, requests, &index, &status);
            store(index, &status);
            left--;
        } else if (way == 3) {
            MPI_Testany(request_count, requests, &index, &flag, &status);
            if (flag) {
                store(index, &status);
                left--;
            }
        } else if (way == 4) {
            (draw(2) ? MPI_Waitsome : MPI_Testsome)(request_count, requests, &count, indices,
                                                    statuses);
            for (int i = 0; i < count; i++) {
                store(indices[i], &statuses[i]);
            }
            left -= count;
        } else {
            left--;
            MPI_Wait(&requests[left], &status);
            store(left, &status);
        }
    }
}

static void run_round(void) {
    MPI_Request unsent;
    MPI_Status status;
    int nothing, cancelled = 0, bytes;
    draw_round();
    receive_count = request_count = 0;
    MPI_Irecv(&nothing, 1, MPI_INT, MPI_ANY_SOURCE, unsent_tag, comms[tagged][0], &unsent);
    for (int i = 0; i < message_count; i++) {
        if (messages[i].dest == rank && messages[i].early) {
            receive_early(&messages[i]);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    void* memory = attach();
    for (int i = 0; i < message_count; i++) {
        if (messages[i].source == rank) {
            start_send(&messages[i]);
        }
    }
    for (int i = 0; i < message_count; i++) {
        if (messages[i].dest == rank && !messages[i].early) {
            receive_late(&messages[i]);
        }
    }
    const unsigned shared_state = state; /* what is drawn here, ranks need not have in common */
    complete_all();
    state = shared_state;
    void* detached;
    MPI_Buffer_detach(&detached, &bytes);
    free(memory);
    MPI_Cancel(&unsent);
    MPI_Wait(&unsent, &status);
    MPI_Test_cancelled(&status, &cancelled);
    CHECK(cancelled, "round %d: a receive of what nobody sent was not cancelled", round_number);
    for (int i = 0; i < request_count; i++) {
        if (requests[i] != MPI_REQUEST_NULL) {
            MPI_Request_free(&requests[i]); /* persistent ones */
        }
    }
    for (int i = 0; i < receive_count; i++) {
        check_receive(&receives[i]);
    }
    check_order();
    for (int i = 0; i < message_count; i++) {
        CHECK(messages[i].dest != rank || messages[i].arrived, "round %d: message %d is missing",
              round_number, i);
        free(messages[i].sent);
    }
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    check_ranks(&rank, &size, 1);
    seed_of_run = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 1;
    const int rounds = argc > 2 ? atoi(argv[2]) : 30;
    state = seed_of_run * 2654435761u + 88675123u;
    state += state == 0;
    for (int kind = 0; kind < kinds; kind++) {
        for (int variant = 0; variant < variants; variant++) {
            MPI_Comm_split(MPI_COMM_WORLD, 0, variant == 0 ? rank : -rank, &comms[kind][variant]);
        }
    }
    for (round_number = 0; round_number < rounds; round_number++) {
        run_round();
    }
    for (int kind = 0; kind < kinds; kind++) {
        for (int variant = 0; variant < variants; variant++) {
            MPI_Comm_free(&comms[kind][variant]);
        }
    }
    MPI_Finalize();
    return 0;
}
