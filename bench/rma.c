/*
 * One-sided communication between two ranks: rank 0 is the origin and rank 1 the target, which
 * takes part only in what a benchmark's epochs ask of it (it waits in a receive otherwise).
 *
 *   --window allocate|shared|create   which window (allocate)
 *   --sizes 4K,64K,1M                 of the bandwidths
 *
 * put, get, accumulate, fetch_and_op, compare_and_swap: one operation of 8 B and a flush; "rate":
 * 64 operations and a flush, millions a second; "time": one operation of a size and a flush;
 * "vector": 1,000 words with gaps at the target; lock: an exclusive or shared lock, a put, unlock;
 * fence: alone, and with a put; pscw: post, start, put, complete, wait, each rank both.
 */
#include "bench.h"

enum { rate_operations = 64, vector_words = 1000, largest = 4 << 20 };

typedef struct {
    MPI_Win win;
    MPI_Group other; /* the other rank */
    MPI_Datatype vector;
    char* own;
    char* result;
    int rank;
    int bytes;
    int lock_type;
} Game;

/* Only the origin runs these, in an epoch that is open. */
static void put8(void* state, int repetitions) {
    Game* game = state;
    for (int i = 0; game->rank == 0 && i < repetitions; i++) {
        MPI_Put(game->own, 1, MPI_INT64_T, 1, 0, 1, MPI_INT64_T, game->win);
        MPI_Win_flush(1, game->win);
    }
}

static void get8(void* state, int repetitions) {
    Game* game = state;
    for (int i = 0; game->rank == 0 && i < repetitions; i++) {
        MPI_Get(game->own, 1, MPI_INT64_T, 1, 0, 1, MPI_INT64_T, game->win);
        MPI_Win_flush(1, game->win);
    }
}

static void accumulate8(void* state, int repetitions) {
    Game* game = state;
    for (int i = 0; game->rank == 0 && i < repetitions; i++) {
        MPI_Accumulate(game->own, 1, MPI_INT64_T, 1, 0, 1, MPI_INT64_T, MPI_SUM, game->win);
        MPI_Win_flush(1, game->win);
    }
}

static void fetch8(void* state, int repetitions) {
    Game* game = state;
    for (int i = 0; game->rank == 0 && i < repetitions; i++) {
        MPI_Fetch_and_op(game->own, game->result, MPI_INT64_T, 1, 0, MPI_SUM, game->win);
        MPI_Win_flush(1, game->win);
    }
}

static void swap8(void* state, int repetitions) {
    Game* game = state;
    for (int i = 0; game->rank == 0 && i < repetitions; i++) {
        MPI_Compare_and_swap(game->own, game->own, game->result, MPI_INT64_T, 1, 0, game->win);
        MPI_Win_flush(1, game->win);
    }
}

static void put_rate(void* state, int repetitions) {
    Game* game = state;
    for (int i = 0; game->rank == 0 && i < repetitions; i++) {
        for (int k = 0; k < rate_operations; k++)
            MPI_Put(game->own, 1, MPI_INT64_T, 1, k, 1, MPI_INT64_T, game->win);
        MPI_Win_flush(1, game->win);
    }
}

static void get_rate(void* state, int repetitions) {
    Game* game = state;
    for (int i = 0; game->rank == 0 && i < repetitions; i++) {
        for (int k = 0; k < rate_operations; k++)
            MPI_Get(game->own, 1, MPI_INT64_T, 1, k, 1, MPI_INT64_T, game->win);
        MPI_Win_flush(1, game->win);
    }
}

static void accumulate_rate(void* state, int repetitions) {
    Game* game = state;
    for (int i = 0; game->rank == 0 && i < repetitions; i++) {
        for (int k = 0; k < rate_operations; k++)
            MPI_Accumulate(game->own, 1, MPI_INT64_T, 1, k, 1, MPI_INT64_T, MPI_SUM, game->win);
        MPI_Win_flush(1, game->win);
    }
}

static void put_many(void* state, int repetitions) {
    Game* game = state;
    for (int i = 0; game->rank == 0 && i < repetitions; i++) {
        MPI_Put(game->own, game->bytes, MPI_BYTE, 1, 0, game->bytes, MPI_BYTE, game->win);
        MPI_Win_flush(1, game->win);
    }
}

static void get_many(void* state, int repetitions) {
    Game* game = state;
    for (int i = 0; game->rank == 0 && i < repetitions; i++) {
        MPI_Get(game->own, game->bytes, MPI_BYTE, 1, 0, game->bytes, MPI_BYTE, game->win);
        MPI_Win_flush(1, game->win);
    }
}

static void put_vector(void* state, int repetitions) {
    Game* game = state;
    for (int i = 0; game->rank == 0 && i < repetitions; i++) {
        MPI_Put(game->own, vector_words, MPI_INT64_T, 1, 0, 1, game->vector, game->win);
        MPI_Win_flush(1, game->win);
    }
}

static void accumulate_many(void* state, int repetitions) {
    Game* game = state;
    for (int i = 0; game->rank == 0 && i < repetitions; i++) {
        MPI_Accumulate(game->own, game->bytes / 8, MPI_DOUBLE, 1, 0, game->bytes / 8, MPI_DOUBLE,
                       MPI_SUM, game->win);
        MPI_Win_flush(1, game->win);
    }
}

static void lock_and_put(void* state, int repetitions) {
    Game* game = state;
    for (int i = 0; game->rank == 0 && i < repetitions; i++) {
        MPI_Win_lock(game->lock_type, 1, 0, game->win);
        MPI_Put(game->own, 1, MPI_INT64_T, 1, 0, 1, MPI_INT64_T, game->win);
        MPI_Win_unlock(1, game->win);
    }
}

static void fence(void* state, int repetitions) {
    Game* game = state;
    for (int i = 0; i < repetitions; i++)
        MPI_Win_fence(0, game->win);
}

static void fence_and_put(void* state, int repetitions) {
    Game* game = state;
    for (int i = 0; i < repetitions; i++) {
        MPI_Put(game->own, 1, MPI_INT64_T, 1 - game->rank, 0, 1, MPI_INT64_T, game->win);
        MPI_Win_fence(0, game->win);
    }
}

static void pscw(void* state, int repetitions) {
    Game* game = state;
    for (int i = 0; i < repetitions; i++) {
        MPI_Win_post(game->other, 0, game->win);
        MPI_Win_start(game->other, 0, game->win);
        MPI_Put(game->own, 1, MPI_INT64_T, 1 - game->rank, 0, 1, MPI_INT64_T, game->win);
        MPI_Win_complete(game->win);
        MPI_Win_wait(game->win);
    }
}

static void measure(Bench* bench, Game* game, const char* window, const char* figure,
                    BenchWork work, double scale, bool rate) {
    BenchTimes times = bench_measure(bench, work, game, bench_leader);
    const char* unit = rate ? "million/s" : "us";
    bench_report_times(bench, figure, window, game->bytes, unit, &times, scale, rate, "");
}

static void passive(Bench* bench, Game* game, const char* window, const size_t* sizes, int count) {
    const double us = 1e6, millions = (double)rate_operations / 1e6;
    MPI_Win_lock_all(0, game->win);
    game->bytes = 8;
    measure(bench, game, window, "put", put8, us, false);
    measure(bench, game, window, "get", get8, us, false);
    measure(bench, game, window, "accumulate", accumulate8, us, false);
    measure(bench, game, window, "fetch_and_op", fetch8, us, false);
    measure(bench, game, window, "compare_and_swap", swap8, us, false);
    measure(bench, game, window, "put rate", put_rate, millions, true);
    measure(bench, game, window, "get rate", get_rate, millions, true);
    measure(bench, game, window, "accumulate rate", accumulate_rate, millions, true);
    game->bytes = vector_words * 8;
    measure(bench, game, window, "put vector", put_vector, us, false);
    for (int i = 0; i < count; i++) {
        game->bytes = (int)sizes[i];
        measure(bench, game, window, "put time", put_many, us, false);
        measure(bench, game, window, "get time", get_many, us, false);
        measure(bench, game, window, "accumulate time", accumulate_many, us, false);
    }
    MPI_Win_unlock_all(game->win);
    game->bytes = 8;
    game->lock_type = MPI_LOCK_EXCLUSIVE;
    measure(bench, game, window, "exclusive lock", lock_and_put, us, false);
    game->lock_type = MPI_LOCK_SHARED;
    measure(bench, game, window, "shared lock", lock_and_put, us, false);
}

static void active(Bench* bench, Game* game, const char* window) {
    MPI_Win_fence(0, game->win);
    measure(bench, game, window, "fence", fence, 1e6, false);
    measure(bench, game, window, "fence and put", fence_and_put, 1e6, false);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, game->win);
    measure(bench, game, window, "pscw", pscw, 1e6, false);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    Bench bench;
    size_t sizes[bench_max_sizes];
    Game game = {0};
    char* memory;
    bench_start(&bench, "rma", argc, argv);
    const char* window = bench_option(&bench, "--window", "allocate");
    const int count = bench_sizes(&bench, "4K,64K,1M", sizes);
    bench_check_options(&bench);
    if (bench.ranks != 2)
        bench_die(&bench, "2 ranks are needed", "");
    for (int i = 0; i < count; i++)
        if (sizes[i] > largest)
            bench_die(&bench, "sizes are up to 4 MiB", "");
    bench_find_pinning(&bench);
    game.rank = bench.rank;
    game.own = bench_buffer(&bench, largest);
    game.result = bench_buffer(&bench, largest);
    if (strcmp(window, "create") == 0) {
        memory = bench_buffer(&bench, largest);
        MPI_Win_create(memory, largest, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &game.win);
    } else if (strcmp(window, "shared") == 0) {
        MPI_Win_allocate_shared(largest, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &game.win);
    } else if (strcmp(window, "allocate") == 0) {
        MPI_Win_allocate(largest, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &game.win);
    } else {
        bench_die(&bench, "no such window: ", window);
    }
    memset(memory, 0, largest);
    memset(game.own, 0, largest);
    MPI_Type_vector(vector_words, 1, 2, MPI_INT64_T, &game.vector);
    MPI_Type_commit(&game.vector);
    int other = 1 - bench.rank;
    MPI_Group all;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, 1, &other, &game.other);
    passive(&bench, &game, window, sizes, count);
    active(&bench, &game, window);
    MPI_Group_free(&all);
    MPI_Group_free(&game.other);
    MPI_Type_free(&game.vector);
    MPI_Win_free(&game.win);
    MPI_Finalize();
    return 0;
}
