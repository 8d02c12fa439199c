/*
 * Time of collective operations over all ranks, any number of them.
 *
 *   --operations barrier,allreduce   also: bcast, reduce, allgather, alltoall, gather, scatter; all
 *   --sizes 8                        bytes per rank (a multiple of 8), for all but the barrier:
 * what one rank broadcasts or reduces, or a pair of ranks exchanges
 *
 * A figure is the time of one operation in a row of the same.
 *
 * Barrier, allreduce, allgather and alltoall keep the ranks in step, so the leader's clock is
 * everybody's. Operations with a root do not: with one root all the time a broadcast's root, or a
 * gather's other ranks, would run ahead as far as the library has buffers, and the figure would be
 * the time to fill these. So the root goes round, operation by operation: nobody gets further ahead
 * than to its own turn, for which it needs what all before it have sent, and on two ranks each
 * operation waits for the one before. The time is taken from the first start to the last end.
 */
#include "bench.h"

typedef struct {
    const Bench* bench;
    double* send;
    double* receive;
    int count; /* of doubles */
    int next;  /* operations so far: the next one's root, modulo the number of ranks */
} Operands;

static int root_of(Operands* operands) {
    return operands->next++ % operands->bench->ranks;
}

static void barrier(void* state, int repetitions) {
    (void)state;
    for (int i = 0; i < repetitions; i++)
        MPI_Barrier(MPI_COMM_WORLD);
}

static void bcast(void* state, int repetitions) {
    Operands* operands = state;
    for (int i = 0; i < repetitions; i++)
        MPI_Bcast(operands->receive, operands->count, MPI_DOUBLE, root_of(operands),
                  MPI_COMM_WORLD);
}

static void reduce(void* state, int repetitions) {
    Operands* operands = state;
    for (int i = 0; i < repetitions; i++)
        MPI_Reduce(operands->send, operands->receive, operands->count, MPI_DOUBLE, MPI_SUM,
                   root_of(operands), MPI_COMM_WORLD);
}

static void allreduce(void* state, int repetitions) {
    Operands* operands = state;
    for (int i = 0; i < repetitions; i++)
        MPI_Allreduce(operands->send, operands->receive, operands->count, MPI_DOUBLE, MPI_SUM,
                      MPI_COMM_WORLD);
}

static void allgather(void* state, int repetitions) {
    Operands* operands = state;
    for (int i = 0; i < repetitions; i++)
        MPI_Allgather(operands->send, operands->count, MPI_DOUBLE, operands->receive,
                      operands->count, MPI_DOUBLE, MPI_COMM_WORLD);
}

static void alltoall(void* state, int repetitions) {
    Operands* operands = state;
    for (int i = 0; i < repetitions; i++)
        MPI_Alltoall(operands->send, operands->count, MPI_DOUBLE, operands->receive,
                     operands->count, MPI_DOUBLE, MPI_COMM_WORLD);
}

static void gather(void* state, int repetitions) {
    Operands* operands = state;
    for (int i = 0; i < repetitions; i++)
        MPI_Gather(operands->send, operands->count, MPI_DOUBLE, operands->receive, operands->count,
                   MPI_DOUBLE, root_of(operands), MPI_COMM_WORLD);
}

static void scatter(void* state, int repetitions) {
    Operands* operands = state;
    for (int i = 0; i < repetitions; i++)
        MPI_Scatter(operands->send, operands->count, MPI_DOUBLE, operands->receive, operands->count,
                    MPI_DOUBLE, root_of(operands), MPI_COMM_WORLD);
}

static const struct {
    const char* name;
    BenchWork work;
    BenchClock clock;
} operations[] = {{"barrier", barrier, bench_leader},     {"bcast", bcast, bench_span},
                  {"reduce", reduce, bench_span},         {"allreduce", allreduce, bench_leader},
                  {"allgather", allgather, bench_leader}, {"alltoall", alltoall, bench_leader},
                  {"gather", gather, bench_span},         {"scatter", scatter, bench_span}};

static bool wanted(const char* list, const char* name) {
    if (strcmp(list, "all") == 0)
        return true;
    size_t length = strlen(name);
    for (const char* at = list; (at = strstr(at, name)) != NULL; at += length)
        if ((at == list || at[-1] == ',') && (at[length] == ',' || at[length] == '\0'))
            return true;
    return false;
}

/* Every element that rank r sends is r + 1: what must have come to the leader, the first root, in
 * the block of a rank, after `done` operations? */
static double expected(const Bench* bench, BenchWork work, int block, int done) {
    if (work == reduce || work == allreduce)
        return (double)bench->ranks * (bench->ranks + 1) / 2;
    if (work == bcast)
        return 1; /* the first root's, passed on by all */
    if (work == scatter)
        return (double)((done - 1) % bench->ranks + 1);
    return block + 1;
}

static void measure(Bench* bench, int which, size_t size) {
    const BenchWork work = operations[which].work;
    Operands operands = {.bench = bench, .count = (int)(size / sizeof(double))};
    const size_t elements = size / sizeof(double) * (size_t)bench->ranks;
    operands.send = (double*)(void*)bench_buffer(bench, elements * sizeof(double));
    operands.receive = (double*)(void*)bench_buffer(bench, elements * sizeof(double));
    for (size_t i = 0; i < elements; i++) {
        operands.send[i] = bench->rank + 1;
        operands.receive[i] = work == bcast && bench->rank == 0 ? 1 : -1;
    }
    BenchTimes times = bench_measure(bench, work, &operands, operations[which].clock);
    const bool blocks = work == allgather || work == alltoall || work == gather;
    for (int block = 0; bench->rank == 0 && work != barrier && block < (blocks ? bench->ranks : 1);
         block++)
        for (int i = 0; i < operands.count; i++)
            if (operands.receive[block * operands.count + i] !=
                expected(bench, work, block, operands.next))
                bench_die(bench, "not what was sent came out of ", operations[which].name);
    bench_report_times(bench, operations[which].name, "", work == barrier ? -1 : (long long)size,
                       "us", &times, 1e6, false, "");
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
