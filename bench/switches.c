/*
 * What it takes to give the processor to the next rank: all ranks call sched_yield in a row.
 *
 * The figure is the time of the leader's call divided by the number of ranks, which all have one
 * turn meanwhile: of ranks that share one processor (`mpiexec --ranks fibres --workers 1`, or
 * processes bound to one), the time of a switch.
 */
#include "bench.h"

static void yield(void* state, int repetitions) {
    (void)state;
    for (int i = 0; i < repetitions; i++)
        sched_yield();
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    Bench bench;
    bench_start(&bench, "switches", argc, argv);
    bench_check_options(&bench);
    bench_find_pinning(&bench);
    BenchTimes times = bench_measure(&bench, yield, NULL, bench_leader);
    bench_report_times(&bench, "switch", "", -1, "ns", &times, 1e9 / bench.ranks, false, "");
    MPI_Finalize();
    return 0;
}
