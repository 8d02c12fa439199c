/*
 * A number goes round all ranks, each of which polls for it and never waits: the time of a hop. On
 * fewer processors than ranks, or beside other programs, it is what it takes until ranks that poll
 * in vain let the one run that has the number.
 *   --mode test|testany|testall|testsome|status|iprobe|improbe
 *   --compute-us N   each rank computes so long after each vain look
 *   --alone          nothing goes round: the time of a vain look and what is computed after it
 */
#include "bench.h"

typedef struct {
    const Bench* bench;
    const char* mode;
    long steps; /* computed after a vain look */
    long token;
} Polling;

static volatile double sink;

static void compute(long steps) {
    double value = sink;
    for (long i = 0; i < steps; i++)
        value = value * 0.999999 + 1;
    sink = value;
}

/* Steps, not a time to be waited for: that would go on while others have the processor. */
static long steps_in(double seconds) {
    const long many = 20000;
    double best = 1;
    for (int attempt = 0; attempt < 100; attempt++) {
        double begin = bench_now();
        compute(many);
        double took = bench_now() - begin;
        best = took < best ? took : best;
    }
    return (long)(seconds * (double)many / best);
}

static bool uses(const Polling* polling, const char* mode) {
    return strcmp(polling->mode, mode) == 0;
}

static bool probes(const Polling* polling) {
    return uses(polling, "iprobe") || uses(polling, "improbe");
}

/* Whether the number is there, which is then taken. */
static bool look(Polling* polling, MPI_Request* request, int source) {
    int flag = 0;
    int index;
    if (uses(polling, "test")) {
        MPI_Test(request, &flag, MPI_STATUS_IGNORE);
    } else if (uses(polling, "testany")) {
        MPI_Testany(1, request, &index, &flag, MPI_STATUS_IGNORE);
    } else if (uses(polling, "testall")) {
        MPI_Testall(1, request, &flag, MPI_STATUSES_IGNORE);
    } else if (uses(polling, "testsome")) {
        MPI_Testsome(1, request, &flag, &index, MPI_STATUSES_IGNORE);
    } else if (uses(polling, "status")) {
        MPI_Request_get_status(*request, &flag, MPI_STATUS_IGNORE);
        if (flag)
            MPI_Wait(request, MPI_STATUS_IGNORE);
    } else if (uses(polling, "iprobe")) {
        MPI_Iprobe(source, bench_tag, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        if (flag)
            MPI_Recv(&polling->token, 1, MPI_LONG, source, bench_tag, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
    } else if (uses(polling, "improbe")) {
        MPI_Message message;
        MPI_Improbe(source, bench_tag, MPI_COMM_WORLD, &flag, &message, MPI_STATUS_IGNORE);
        if (flag)
            MPI_Mrecv(&polling->token, 1, MPI_LONG, &message, MPI_STATUS_IGNORE);
    } else {
        bench_die(polling->bench, "unknown mode ", polling->mode);
    }
    return flag != 0;
}

static void go_round(void* state, int repetitions) {
    Polling* polling = state;
    const int rank = polling->bench->rank;
    const int ranks = polling->bench->ranks;
    const int next = (rank + 1) % ranks;
    const int before = (rank + ranks - 1) % ranks;
    for (int i = 0; i < repetitions; i++) {
        MPI_Request request = MPI_REQUEST_NULL;
        long number = 0;
        if (!probes(polling))
            MPI_Irecv(&polling->token, 1, MPI_LONG, before, bench_tag, MPI_COMM_WORLD, &request);
        if (rank == 0)
            MPI_Send(&number, 1, MPI_LONG, next, bench_tag, MPI_COMM_WORLD);
        while (!look(polling, &request, before))
            compute(polling->steps);
        number = polling->token + 1;
        if (rank != 0)
            MPI_Send(&number, 1, MPI_LONG, next, bench_tag, MPI_COMM_WORLD);
        else if (number != ranks)
            bench_die(polling->bench, "not what all ranks have added came round", "");
    }
}

static void look_alone(void* state, int repetitions) {
    Polling* polling = state;
    MPI_Request request = MPI_REQUEST_NULL;
    if (!probes(polling))
        MPI_Irecv(&polling->token, 1, MPI_LONG, polling->bench->rank, bench_tag, MPI_COMM_WORLD,
                  &request);
    for (int i = 0; i < repetitions; i++) {
        if (look(polling, &request, polling->bench->rank))
            bench_die(polling->bench, "found what nobody has sent", "");
        compute(polling->steps);
    }
    if (request != MPI_REQUEST_NULL) {
        MPI_Cancel(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    Bench bench;
    bench_start(&bench, "polling", argc, argv);
    Polling polling = {.bench = &bench, .mode = bench_option(&bench, "--mode", "test")};
    polling.steps = steps_in(1e-6 * bench_number(&bench, "--compute-us", "0"));
    bool alone = bench_flag(&bench, "--alone");
    bench_check_options(&bench);
    if (bench.ranks < 2 && !alone)
        bench_die(&bench, "a hop needs two ranks", "");
    bench_find_pinning(&bench);
    BenchTimes times = bench_measure(&bench, alone ? look_alone : go_round, &polling, bench_leader);
    if (alone)
        bench_report_times(&bench, "look", polling.mode, 0, "ns", &times, 1e9, false, "");
    else
        bench_report_times(&bench, "hop", polling.mode, (long long)sizeof(long), "us", &times,
                           1e6 / bench.ranks, false, "");
    MPI_Finalize();
    return 0;
}
