/*
 * Message rate from rank 0 to rank 1: how many small messages per second.
 *
 *   --sizes 8       message sizes in bytes
 *   --window 64     messages under way at once
 *   --written       write every message's own buffer before sending it
 */
#include "window.h"

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    Bench bench;
    size_t sizes[bench_max_sizes];
    bench_start(&bench, "message_rate", argc, argv);
    int count = bench_sizes(&bench, "8", sizes);
    int messages = (int)bench_number(&bench, "--window", "64");
    bool written = bench_flag(&bench, "--written");
    bench_check_options(&bench);
    if (bench.ranks != 2)
        bench_die(&bench, "exactly two ranks are needed", "");
    if (messages < 1 || messages > window_max)
        bench_die(&bench, "--window must be from 1 to 256", "");
    bench_find_pinning(&bench);
    bench_share_line(&bench);

    for (int i = 0; i < count; i++) {
        BenchTimes times = window_measure(&bench, sizes[i], messages, written);
        double millions = 1e-6 * messages;
        bench_report_times(&bench, "message rate", written ? "written" : "cached",
                           (long long)sizes[i], "M/s", &times, millions, true, "");
    }
    MPI_Finalize();
    return 0;
}
