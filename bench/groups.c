/*
 * Two groups of threads, each thread with a partner of its own in the other group; all pairs play
 * at once: half round trip, message rate, bandwidth. Who a thread is to MPI is the question:
 *
 *   mpiexec -n T groups                  every thread is a rank, whatever ranks are: processes, or
 *                                        threads of one process (Warren's --ranks threads)
 *   mpiexec -n 2 groups --threads T/2    a group is one rank with T/2 threads, each with a
 *                                        communicator of its own (MPI_THREAD_MULTIPLE)
 *
 *   --threads N          threads of each rank; without it one, and no MPI_THREAD_MULTIPLE
 *   --latency-size 8     bytes of a message that goes back and forth
 *   --rate-size 16       of a message of the message rate
 *   --bandwidth-size 64K
 *   --window 64          messages under way at once, of each pair
 *
 * The time counts from the first start to the last end of all pairs, so that rates are those of all
 * pairs together, and half round trips are what each pair gets while the others play as well.
 */
#include "window.h"

#include <pthread.h>

enum { most_threads = 64 };

typedef struct Team Team;

/* One thread. */
typedef struct {
    Team* team;
    pthread_t thread;
    Window window; /* its partner and buffer; a round trip's message is that of a window, too */
    bool starts;
    char pair; /* what its messages are full of */
} Player;

/* The threads of this rank. Its first thread, which steers, is one of them. */
struct Team {
    int threads;
    void (*play)(Player* player, int repetitions); /* null: the end */
    int repetitions;
    pthread_barrier_t begin;
    pthread_barrier_t end;
    Player player[most_threads];
};

static void play_ping_pong(Player* player, int repetitions) {
    Window* ball = &player->window;
    for (int i = 0; i < repetitions; i++) {
        if (player->starts)
            MPI_Send(ball->buffer, ball->size, MPI_BYTE, ball->peer, bench_tag, ball->comm);
        MPI_Recv(ball->buffer, ball->size, MPI_BYTE, ball->peer, bench_tag, ball->comm,
                 MPI_STATUS_IGNORE);
        if (!player->starts)
            MPI_Send(ball->buffer, ball->size, MPI_BYTE, ball->peer, bench_tag, ball->comm);
    }
}

static void play_windows(Player* player, int repetitions) {
    window_run(&player->window, repetitions);
}

static void* live(void* argument) {
    Player* player = argument;
    Team* team = player->team;
    for (;;) {
        pthread_barrier_wait(&team->begin);
        if (team->play == NULL)
            return NULL;
        team->play(player, team->repetitions);
        pthread_barrier_wait(&team->end);
    }
}

/* What is measured: all threads of the rank play. */
static void play_all(void* state, int repetitions) {
    Team* team = state;
    if (team->threads == 1) {
        team->play(&team->player[0], repetitions);
        return;
    }
    team->repetitions = repetitions;
    pthread_barrier_wait(&team->begin);
    team->play(&team->player[0], repetitions);
    pthread_barrier_wait(&team->end);
}

/* Finds each thread's partner and gives it a communicator; starts all but the first. */
static void assemble(Bench* bench, Team* team, int messages, bool own_communicators) {
    const int half = bench->ranks / 2;
    pthread_barrier_init(&team->begin, NULL, (unsigned)team->threads);
    pthread_barrier_init(&team->end, NULL, (unsigned)team->threads);
    for (int t = 0; t < team->threads; t++) {
        Player* player = &team->player[t];
        player->team = team;
        player->starts = bench->rank < half;
        player->pair = (char)(1 + (bench->rank % half * team->threads + t) % 100);
        player->window = (Window){.messages = messages,
                                  .sender = player->starts,
                                  .comm = MPI_COMM_WORLD,
                                  .peer = player->starts ? bench->rank + half : bench->rank - half};
        if (own_communicators) {
            MPI_Info number; /* Intel MPI can serve such communicators apart */
            char text[16];
            snprintf(text, sizeof text, "%d", t);
            MPI_Info_create(&number);
            MPI_Info_set(number, "thread_id", text);
            MPI_Comm_dup_with_info(MPI_COMM_WORLD, number, &player->window.comm);
            MPI_Info_free(&number);
        }
        if (t > 0 && pthread_create(&player->thread, NULL, live, player) != 0)
            bench_die(bench, "no further thread", "");
    }
}

static void dismiss(Team* team, bool own_communicators) {
    team->play = NULL;
    if (team->threads > 1)
        pthread_barrier_wait(&team->begin);
    for (int t = 0; t < team->threads; t++) {
        if (t > 0)
            pthread_join(team->player[t].thread, NULL);
        if (own_communicators)
            MPI_Comm_free(&team->player[t].window.comm);
    }
    pthread_barrier_destroy(&team->begin);
    pthread_barrier_destroy(&team->end);
}

/* What has come must be the pair's own, whole. */
static BenchTimes measure(Bench* bench, Team* team, void (*play)(Player*, int), size_t size) {
    team->play = play;
    for (int t = 0; t < team->threads; t++) {
        Player* player = &team->player[t];
        player->window.size = (int)size;
        player->window.buffer = bench_buffer(bench, size);
        memset(player->window.buffer, player->starts ? player->pair : 0, size);
    }
    BenchTimes times = bench_measure(bench, play_all, team, bench_span);
    for (int t = 0; t < team->threads; t++) {
        const Player* player = &team->player[t];
        char* buffer = player->window.buffer;
        if (size > 0 && (buffer[0] != player->pair || buffer[size - 1] != player->pair))
            bench_die(bench, "received other bytes than were sent", "");
        free(buffer);
    }
    return times;
}

static size_t size_option(Bench* bench, const char* name, const char* otherwise) {
    char* end = NULL;
    const char* text = bench_option(bench, name, otherwise);
    size_t size = strtoull(text, &end, 10);
    if (end == text || (*end != '\0' && strcmp(end, "K") != 0))
        bench_die(bench, "not a size: ", text);
    return *end == 'K' ? size << 10 : size;
}

int main(int argc, char** argv) {
    bool several = false;
    for (int i = 1; i < argc; i++)
        several = several || strcmp(argv[i], "--threads") == 0;
    int level = MPI_THREAD_SINGLE;
    if (several)
        MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    else
        MPI_Init(&argc, &argv);
    static Team team;
    Bench bench;
    bench_start(&bench, "groups", argc, argv);
    team.threads = (int)bench_number(&bench, "--threads", "1");
    size_t latency_size = size_option(&bench, "--latency-size", "8");
    size_t rate_size = size_option(&bench, "--rate-size", "16");
    size_t bandwidth_size = size_option(&bench, "--bandwidth-size", "64K");
    int messages = (int)bench_number(&bench, "--window", "64");
    bench_check_options(&bench);
    if (several && level != MPI_THREAD_MULTIPLE)
        bench_die(&bench, "the library does not offer MPI_THREAD_MULTIPLE", "");
    if (bench.ranks % 2 != 0)
        bench_die(&bench, "an even number of ranks is needed", "");
    if (team.threads < 1 || team.threads > most_threads)
        bench_die(&bench, "--threads must be from 1 to 64", "");
    if (messages < 1 || messages > window_max)
        bench_die(&bench, "--window must be from 1 to 256", "");
    bench_find_pinning(&bench);
    if (team.threads == 1)
        bench_share_line(&bench);
    assemble(&bench, &team, messages, several);

    const int pairs = bench.ranks / 2 * team.threads;
    char more[64];
    snprintf(more, sizeof more, "\"threads\":%d", team.threads);
    BenchTimes times = measure(&bench, &team, play_ping_pong, latency_size);
    bench_report_times(&bench, "groups latency", "", (long long)latency_size, "us", &times, 1e6 / 2,
                       false, more);
    times = measure(&bench, &team, play_windows, rate_size);
    bench_report_times(&bench, "groups message rate", "", (long long)rate_size, "M/s", &times,
                       1e-6 * messages * pairs, true, more);
    times = measure(&bench, &team, play_windows, bandwidth_size);
    bench_report_times(&bench, "groups bandwidth", "", (long long)bandwidth_size, "GB/s", &times,
                       1e-9 * (double)bandwidth_size * messages * pairs, true, more);
    dismiss(&team, several);
    MPI_Finalize();
    return 0;
}
