/*
 * CPU use of ranks that are blocked in MPI_Recv, in percent of one processor, all of them together.
 *
 * The last rank sleeps in the operating system, every other rank waits in MPI_Recv for its message:
 * start one rank more than should be blocked. The sleeper reads the CPU clocks of the others'
 * processes from outside, all their threads included, once the job has settled and again at the
 * end. What the launcher itself uses is not counted.
 *
 *   --seconds 3   how long to watch
 */
#include "bench.h"

#include <errno.h>
#include <unistd.h>

static void sleep_seconds(double seconds) {
    struct timespec left = {(time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds))};
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
}

/* CPU time of a process and all its threads, in seconds. */
static double cpu_seconds(const Bench* bench, int pid) {
    clockid_t clock;
    struct timespec used;
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &used) != 0)
        bench_die(bench, "cannot read the CPU clock of another rank", "");
    return (double)used.tv_sec + 1e-9 * (double)used.tv_nsec;
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    Bench bench;
    bench_start(&bench, "idle", argc, argv);
    bench.seconds = bench_number(&bench, "--seconds", "3");
    bench_check_options(&bench);
    if (bench.ranks < 2)
        bench_die(&bench, "at least two ranks are needed", "");
    bench_find_pinning(&bench);

    int sleeper = bench.ranks - 1;
    double result[2] = {0, 0}; /* percent; the busiest rank's percent */
    if (bench.rank != sleeper) {
        int pid = (int)getpid();
        MPI_Send(&pid, 1, MPI_INT, sleeper, bench_tag, MPI_COMM_WORLD);
        MPI_Recv(result, 2, MPI_DOUBLE, sleeper, bench_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        int* pids = calloc((size_t)sleeper, sizeof *pids);
        double* used = calloc((size_t)sleeper, sizeof *used);
        if (pids == NULL || used == NULL)
            bench_die(&bench, "no memory", "");
        for (int rank = 0; rank < sleeper; rank++)
            MPI_Recv(&pids[rank], 1, MPI_INT, rank, bench_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        sleep_seconds(0.5); /* all are in their receive now */
        double start = bench_now();
        for (int rank = 0; rank < sleeper; rank++)
            used[rank] = cpu_seconds(&bench, pids[rank]);
        sleep_seconds(bench.seconds);
        double elapsed = bench_now() - start;
        for (int rank = 0; rank < sleeper; rank++) {
            double percent = 100 * (cpu_seconds(&bench, pids[rank]) - used[rank]) / elapsed;
            result[0] += percent;
            result[1] = percent > result[1] ? percent : result[1];
        }
        for (int rank = 0; rank < sleeper; rank++)
            MPI_Send(result, 2, MPI_DOUBLE, rank, bench_tag, MPI_COMM_WORLD);
        free(pids);
        free(used);
    }
    char more[64];
    snprintf(more, sizeof more, "\"blocked\":%d,\"busiest_rank\":%.4g", sleeper, result[1]);
    bench_report(&bench, "idle CPU", "", -1, "%", result[0], result[0], 1, more);
    MPI_Finalize();
    return 0;
}
