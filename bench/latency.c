/*
 * Latency: half the round trip of a message between two ranks, by size.
 *
 * With more than two ranks, ranks i and i + n/2 form pairs that all play at once (the question for
 * more ranks than processors); the time counts from the first start to the last end.
 *
 *   --sizes 0,8,1K   message sizes in bytes
 *   --written        each side writes its whole buffer before each send (the writing is inside the
 *                    time); without it the same cached buffer is sent again and again
 *   --read           each side reads its whole buffer after each receive (inside the time), as
 *                    programs do: what has been stored past the caches is then far away
 */
#include "bench.h"

typedef struct {
    char* send;
    char* receive;
    int size;
    int peer;
    bool first; /* the side that serves */
    bool written;
    bool read;
    uint64_t sum; /* of what was read */
    unsigned char stamp;
} PingPong;

static void write_buffer(PingPong* game) {
    game->stamp++;
    memset(game->send, game->stamp, (size_t)game->size);
    __asm__ volatile("" : : "r"(game->send) : "memory"); /* the write must happen */
}

static void read_buffer(PingPong* game) {
    uint64_t sum = 0;
    size_t words = (size_t)game->size / sizeof sum;
    for (size_t i = 0; i < words; i++) {
        uint64_t word;
        memcpy(&word, game->receive + i * sizeof word, sizeof word);
        sum += word;
    }
    for (size_t at = words * sizeof sum; at < (size_t)game->size; at++)
        sum += (unsigned char)game->receive[at];
    game->sum += sum;
    __asm__ volatile("" : : "r"(&game->sum) : "memory"); /* the read must happen */
}

static void play(void* state, int repetitions) {
    PingPong* game = state;
    for (int i = 0; i < repetitions; i++) {
        if (game->first) {
            if (game->written)
                write_buffer(game);
            MPI_Send(game->send, game->size, MPI_BYTE, game->peer, bench_tag, MPI_COMM_WORLD);
        }
        MPI_Recv(game->receive, game->size, MPI_BYTE, game->peer, bench_tag, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        if (game->read)
            read_buffer(game);
        if (!game->first) {
            if (game->written)
                write_buffer(game);
            MPI_Send(game->send, game->size, MPI_BYTE, game->peer, bench_tag, MPI_COMM_WORLD);
        }
    }
}

static void write_only(void* state, int repetitions) {
    for (int i = 0; i < repetitions; i++)
        write_buffer(state);
}

/* What the leader received last is what its peer wrote last: both count their writings. */
static void check_received(const Bench* bench, const PingPong* game) {
    size_t last = (size_t)game->size - 1;
    unsigned char expected = game->written ? game->stamp : 1;
    if (game->size > 0 && ((unsigned char)game->receive[0] != expected ||
                           (unsigned char)game->receive[last] != expected))
        bench_die(bench, "received other bytes than were sent", "");
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    Bench bench;
    size_t sizes[bench_max_sizes];
    bench_start(&bench, "latency", argc, argv);
    int count = bench_sizes(&bench, "0,8,1K,8K,64K,1M", sizes);
    PingPong game = {.written = bench_flag(&bench, "--written"),
                     .read = bench_flag(&bench, "--read")};
    const char* const modes[] = {"cached", "written", "read", "written and read"};
    bench_check_options(&bench);
    if (bench.ranks % 2 != 0)
        bench_die(&bench, "an even number of ranks is needed", "");
    bench_find_pinning(&bench);
    bench_share_line(&bench);

    int half = bench.ranks / 2;
    game.first = bench.rank < half;
    game.peer = game.first ? bench.rank + half : bench.rank - half;
    for (int i = 0; i < count; i++) {
        game.size = (int)sizes[i];
        game.send = bench_buffer(&bench, sizes[i]);
        game.receive = bench_buffer(&bench, sizes[i]);
        game.stamp = 1;
        BenchTimes times =
            bench_measure(&bench, play, &game, bench.ranks > 2 ? bench_span : bench_leader);
        check_received(&bench, &game);
        char more[64] = "";
        if (game.written && bench.rank == 0) {
            double start = bench_now();
            write_only(&game, 100);
            snprintf(more, sizeof more, "\"writing_us\":%.4g", 1e6 * (bench_now() - start) / 100);
        }
        bench_report_times(&bench, bench.ranks > 2 ? "pairs latency" : "latency",
                           modes[game.written + 2 * game.read], (long long)sizes[i], "us", &times,
                           1e6 / 2, false, more);
        free(game.send);
        free(game.receive);
    }
    MPI_Finalize();
    return 0;
}
