/*
 * Making communicators: the time of MPI_Comm_dup and of MPI_Comm_split (odd and even ranks) of the
 * world, and of MPI_Comm_dup with MPI_Comm_free; or, with --memory, what they take.
 *
 *   --memory dup|split   bytes of memory per communicator and rank, of that kind; one kind per run,
 *                        because memory that the first has freed would hide what the second takes
 *   --count 1000         communicators that live at once then
 *
 * Times go from the first rank's start to the last rank's end. Those of dup and split are of the
 * call alone: what a batch has made is freed before the next one's clock starts.
 *
 * Memory is the growth of the ranks' PSS, summed over them: private pages, and pages that ranks
 * share once for all of them. "first use" is the same after a barrier in each.
 */
#include "bench.h"
#include "memory_map.h"

#include <errno.h>

/* Less than what some libraries can have at once. */
enum { most_live = 1000 };

typedef struct {
    const Bench* bench;
    MPI_Comm made[most_live];
    int live;
} Made;

static void free_all(Made* made) {
    while (made->live > 0)
        MPI_Comm_free(&made->made[--made->live]);
}

/* A call of one repetition is the one before the clock starts. */
static MPI_Comm* next_place(Made* made, int repetitions) {
    if (repetitions == 1 || made->live == most_live)
        free_all(made);
    return &made->made[made->live++];
}

static void make_dup(MPI_Comm* comm) {
    MPI_Comm_dup(MPI_COMM_WORLD, comm);
}

static void make_split(const Bench* bench, MPI_Comm* comm) {
    MPI_Comm_split(MPI_COMM_WORLD, bench->rank % 2, bench->rank, comm);
}

static void time_dup(void* state, int repetitions) {
    for (int i = 0; i < repetitions; i++)
        make_dup(next_place(state, repetitions));
}

static void time_split(void* state, int repetitions) {
    Made* made = state;
    for (int i = 0; i < repetitions; i++)
        make_split(made->bench, next_place(made, repetitions));
}

static void time_dup_and_free(void* state, int repetitions) {
    (void)state;
    for (int i = 0; i < repetitions; i++) {
        MPI_Comm comm;
        make_dup(&comm);
        MPI_Comm_free(&comm);
    }
}

static void measure_time(Bench* bench, Made* made, const char* name, BenchWork work) {
    BenchTimes times = bench_measure(bench, work, made, bench_span);
    bench_report_times(bench, name, "", -1, "us", &times, 1e6, false, "");
    free_all(made);
}

/* kB of all ranks; the leader's result. Nobody goes on before all have looked. */
static double all_memory(Bench* bench) {
    bench_agree(bench, 1);
    static MemoryMap map;
    if (!memory_read(&map))
        bench_die(bench, "cannot read /proc/self/smaps: ", strerror(errno));
    double sum = map.pss_kb;
    if (bench->rank != 0) {
        MPI_Send(&sum, 1, MPI_DOUBLE, 0, bench_steering_tag, MPI_COMM_WORLD);
    } else {
        for (int rank = 1; rank < bench->ranks; rank++) {
            double its = 0;
            MPI_Recv(&its, 1, MPI_DOUBLE, rank, bench_steering_tag, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
            sum += its;
        }
    }
    bench_agree(bench, 1);
    return sum;
}

static void measure_memory(Bench* bench, const char* kind, int count) {
    bool splits = strcmp(kind, "split") == 0;
    if (!splits && strcmp(kind, "dup") != 0)
        bench_die(bench, "not a kind of communicator: ", kind);
    MPI_Comm* comms = (MPI_Comm*)(void*)bench_buffer(bench, (size_t)count * sizeof *comms);
    /* What the first call of each kind loads is not the question. */
    MPI_Comm first;
    if (splits)
        make_split(bench, &first);
    else
        make_dup(&first);
    MPI_Barrier(first);
    MPI_Barrier(MPI_COMM_WORLD);
    all_memory(bench);
    double before = all_memory(bench);
    for (int i = 0; i < count; i++) {
        if (splits)
            make_split(bench, &comms[i]);
        else
            make_dup(&comms[i]);
    }
    double made = all_memory(bench);
    for (int i = 0; i < count; i++)
        MPI_Barrier(comms[i]);
    double used = all_memory(bench);
    double each = 1024.0 / count / bench->ranks;
    char figure[32];
    snprintf(figure, sizeof figure, "%s memory", kind);
    bench_report(bench, figure, "", -1, "B", (made - before) * each, (made - before) * each, 1, "");
    bench_report(bench, figure, "first use", -1, "B", (used - before) * each,
                 (used - before) * each, 1, "");
    for (int i = 0; i < count; i++)
        MPI_Comm_free(&comms[i]);
    MPI_Comm_free(&first);
    free(comms);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    static Bench bench;
    bench_start(&bench, "communicators", argc, argv);
    const char* memory = bench_option(&bench, "--memory", "");
    int count = (int)bench_number(&bench, "--count", "1000");
    bench_check_options(&bench);
    bench_find_pinning(&bench);
    bench_share_line(&bench);
    if (memory[0] != '\0') {
        measure_memory(&bench, memory, count > 0 ? count : 1);
    } else {
        static Made made;
        made.bench = &bench;
        measure_time(&bench, &made, "dup", time_dup);
        measure_time(&bench, &made, "split", time_split);
        measure_time(&bench, &made, "dup and free", time_dup_and_free);
    }
    MPI_Finalize();
    return 0;
}
