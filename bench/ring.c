/*
 * A number goes round all ranks, each of which adds to it: the time of a round. One rank at a time
 * has something to do, so on fewer processors than ranks it is what it takes to wake the next one.
 */
#include "bench.h"

typedef struct {
    const Bench* bench;
    long token;
    long rounds;
} Ring;

static void go_round(void* state, int repetitions) {
    Ring* ring = state;
    const int rank = ring->bench->rank;
    const int ranks = ring->bench->ranks;
    const int next = (rank + 1) % ranks;
    const int before = (rank + ranks - 1) % ranks;
    for (int i = 0; i < repetitions; i++) {
        if (rank == 0) {
            ring->token++;
            MPI_Send(&ring->token, 1, MPI_LONG, next, bench_tag, MPI_COMM_WORLD);
        }
        MPI_Recv(&ring->token, 1, MPI_LONG, before, bench_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank != 0) {
            ring->token++;
            MPI_Send(&ring->token, 1, MPI_LONG, next, bench_tag, MPI_COMM_WORLD);
        }
    }
    ring->rounds += repetitions;
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    Bench bench;
    bench_start(&bench, "ring", argc, argv);
    bench_check_options(&bench);
    if (bench.ranks < 2)
        bench_die(&bench, "a ring needs two ranks", "");
    bench_find_pinning(&bench);
    Ring ring = {.bench = &bench};
    BenchTimes times = bench_measure(&bench, go_round, &ring, bench_leader);
    if (bench.rank == 0 && ring.token != ring.rounds * bench.ranks)
        bench_die(&bench, "not what all ranks have added came round", "");
    bench_report_times(&bench, "ring", "", (long long)sizeof(long), "us", &times, 1e6, false, "");
    MPI_Finalize();
    return 0;
}
