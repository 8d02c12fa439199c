/*
 * Time of a collective operation over all ranks, any number of them.
 *
 *   --operations barrier,allreduce   also: bcast, alltoall
 *   --sizes 8                        bytes per rank (a multiple of 8), for all but the barrier
 *
 * Barrier, allreduce and alltoall keep the ranks in step, so the leader's clock is everybody's. A
 * broadcast does not: its root may run ahead, and its time is taken from the first start to the
 * last end.
 */
#include "bench.h"

typedef struct {
    double* send;
    double* receive;
    int count; /* of doubles */
} Operands;

static void barrier(void* state, int repetitions) {
    (void)state;
    for (int i = 0; i < repetitions; i++)
        MPI_Barrier(MPI_COMM_WORLD);
}

static void allreduce(void* state, int repetitions) {
    Operands* operands = state;
    for (int i = 0; i < repetitions; i++)
        MPI_Allreduce(operands->send, operands->receive, operands->count, MPI_DOUBLE, MPI_SUM,
                      MPI_COMM_WORLD);
}

static void bcast(void* state, int repetitions) {
    Operands* operands = state;
    for (int i = 0; i < repetitions; i++)
        MPI_Bcast(operands->send, operands->count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
}

static void alltoall(void* state, int repetitions) {
    Operands* operands = state;
    for (int i = 0; i < repetitions; i++)
        MPI_Alltoall(operands->send, operands->count, MPI_DOUBLE, operands->receive,
                     operands->count, MPI_DOUBLE, MPI_COMM_WORLD);
}

static const struct {
    const char* name;
    BenchWork work;
    BenchClock clock;
} operations[] = {{"barrier", barrier, bench_leader},
                  {"allreduce", allreduce, bench_leader},
                  {"bcast", bcast, bench_span},
                  {"alltoall", alltoall, bench_leader}};

static bool wanted(const char* list, const char* name) {
    size_t length = strlen(name);
    for (const char* at = list; (at = strstr(at, name)) != NULL; at += length)
        if ((at == list || at[-1] == ',') && (at[length] == ',' || at[length] == '\0'))
            return true;
    return false;
}

static void measure(Bench* bench, int which, size_t size) {
    Operands operands = {.count = (int)(size / sizeof(double))};
    size_t elements = size / sizeof(double) * (size_t)bench->ranks;
    operands.send = (double*)(void*)bench_buffer(bench, elements * sizeof(double));
    operands.receive = (double*)(void*)bench_buffer(bench, elements * sizeof(double));
    for (size_t i = 0; i < elements; i++)
        operands.send[i] = 1;
    BenchTimes times =
        bench_measure(bench, operations[which].work, &operands, operations[which].clock);
    if (operations[which].work == allreduce && size > 0 && operands.receive[0] != bench->ranks)
        bench_die(bench, "the sum of ones is not the number of ranks", "");
    bench_report_times(bench, operations[which].name, "",
                       operations[which].work == barrier ? -1 : (long long)size, "us", &times, 1e6,
                       false, "");
    free(operands.send);
    free(operands.receive);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    Bench bench;
    size_t sizes[bench_max_sizes];
    bench_start(&bench, "collectives", argc, argv);
    int count = bench_sizes(&bench, "8", sizes);
    const char* list = bench_option(&bench, "--operations", "barrier,allreduce");
    bench_check_options(&bench);
    bench_find_pinning(&bench);
    bench_share_line(&bench);
    for (int which = 0; which < (int)(sizeof operations / sizeof operations[0]); which++) {
        if (!wanted(list, operations[which].name))
            continue;
        for (int i = 0; i < (operations[which].work == barrier ? 1 : count); i++)
            measure(&bench, which, sizes[i]);
    }
    MPI_Finalize();
    return 0;
}
