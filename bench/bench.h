/*
 * What the benchmark programs share: options, timed batches, statistics, one JSON line per figure.
 *
 * Every program measures the same way. All ranks run batches of one operation; the leader (rank 0)
 * chooses how many repetitions fill a batch, so a batch is long enough for the clock and short
 * enough that some batches escape the disturbances of a busy machine. The figure is the median over
 * the batches, and the best batch stands beside it.
 *
 * Only point-to-point calls are used to steer a run, so what is measured is not disturbed by
 * collective state, and a library whose collectives are broken can still be measured.
 *
 * Thread rule: none, the programs have one thread. Ranks must be on one node (the clock is shared).
 */
#ifndef WARREN_BENCH_H
#define WARREN_BENCH_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* sched_getaffinity */
#endif
#include <mpi.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    bench_max_batches = 200,
    bench_max_sizes = 64,
    bench_max_arguments = 64,
    bench_tag = 7,
    bench_steering_tag = 9
};

typedef struct {
    int rank;
    int ranks;
    bool human;       /* --human: lines for people instead of JSON */
    double seconds;   /* --seconds: time to spend on one figure */
    char library[80]; /* first line of MPI_Get_library_version */
    int pinned;       /* 1 when every rank has one processor and neighbours have different ones */
    char processors[32]; /* of ranks 0 to 3, "0,1", "*" for a rank that may use several */
    const char* program; /* name of the program, for reports */
    int argc;
    char** argv;
    bool used[bench_max_arguments]; /* which arguments were asked for */
} Bench;

/* Times of the batches, in seconds per repetition. */
typedef struct {
    double median;
    double best;
    int batches;
    int repetitions; /* per batch */
} BenchTimes;

/* Runs `repetitions` of the operation that is measured. */
typedef void (*BenchWork)(void* state, int repetitions);

/* Whose clock counts: the leader's alone (operations that keep the ranks in step) or the span from
 * the first rank's start to the last rank's end (several pairs at once). */
typedef enum { bench_leader, bench_span } BenchClock;

static inline double bench_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static inline _Noreturn void bench_die(const Bench* bench, const char* what, const char* value) {
    fprintf(stderr, "%s: %s%s\n", bench->program, what, value);
    MPI_Abort(MPI_COMM_WORLD, 2);
    exit(2);
}

/* --name present? */
static inline bool bench_flag(Bench* bench, const char* name) {
    for (int i = 1; i < bench->argc; i++) {
        if (strcmp(bench->argv[i], name) == 0) {
            bench->used[i] = true;
            return true;
        }
    }
    return false;
}

/* The value after --name, or the default. */
static inline const char* bench_option(Bench* bench, const char* name, const char* otherwise) {
    for (int i = 1; i + 1 < bench->argc; i++) {
        if (strcmp(bench->argv[i], name) == 0) {
            bench->used[i] = bench->used[i + 1] = true;
            return bench->argv[i + 1];
        }
    }
    return otherwise;
}

static inline double bench_number(Bench* bench, const char* name, const char* otherwise) {
    const char* text = bench_option(bench, name, otherwise);
    char* end = NULL;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || value < 0)
        bench_die(bench, "not a number: ", text);
    return value;
}

/* "0,8,1K,4M" as sizes in bytes; returns how many. */
static inline int bench_sizes(Bench* bench, const char* otherwise, size_t sizes[bench_max_sizes]) {
    const char* text = bench_option(bench, "--sizes", otherwise);
    int count = 0;
    for (const char* at = text; *at != '\0' && count < bench_max_sizes;) {
        char* end = NULL;
        size_t size = strtoull(at, &end, 10);
        if (end == at)
            bench_die(bench, "not a list of sizes: ", text);
        if (*end == 'K' || *end == 'M')
            size <<= *end++ == 'K' ? 10 : 20;
        sizes[count++] = size;
        if (*end != ',' && *end != '\0')
            bench_die(bench, "not a list of sizes: ", text);
        at = *end == ',' ? end + 1 : end;
    }
    return count;
}

/* To be called when all options were asked for: what is left over is a mistake. */
static inline void bench_check_options(Bench* bench) {
    for (int i = 1; i < bench->argc; i++)
        if (!bench->used[i])
            bench_die(bench, "unknown option ", bench->argv[i]);
}

/* A page-aligned buffer whose pages exist. */
static inline char* bench_buffer(const Bench* bench, size_t bytes) {
    size_t rounded = (bytes + 4096) & ~(size_t)4095;
    void* buffer = NULL;
    if (posix_memalign(&buffer, 4096, rounded) != 0)
        bench_die(bench, "no memory for a buffer", "");
    memset(buffer, 1, rounded);
    return buffer;
}

/* The only processor that this process may use, or -1 when it may use several. */
static inline int bench_processor(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0 || CPU_COUNT(&set) != 1)
        return -1;
    int processor = 0;
    while (!CPU_ISSET(processor, &set))
        processor++;
    return processor;
}

/* Asks every rank where it may run: binding options are believed only when they took effect. */
static inline void bench_find_pinning(Bench* bench) {
    int mine = bench_processor();
    if (bench->rank != 0) {
        MPI_Send(&mine, 1, MPI_INT, 0, bench_steering_tag, MPI_COMM_WORLD);
        return;
    }
    size_t length = 0;
    int last = -2;
    bench->pinned = 1;
    for (int rank = 0; rank < bench->ranks; rank++) {
        int its = mine;
        if (rank != 0)
            MPI_Recv(&its, 1, MPI_INT, rank, bench_steering_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (its < 0 || its == last)
            bench->pinned = 0;
        last = its;
        const char* comma = rank == 0 ? "" : ",";
        char* end = bench->processors + length;
        size_t room = sizeof bench->processors - length;
        if (rank < 4 && its >= 0)
            length += (size_t)snprintf(end, room, "%s%d", comma, its);
        else if (rank < 4)
            length += (size_t)snprintf(end, room, "%s*", comma);
    }
}

/* Reads the common options and who we are. Sends nothing. After MPI_Init. */
static inline void bench_start(Bench* bench, const char* program, int argc, char** argv) {
    memset(bench, 0, sizeof *bench);
    bench->program = program;
    bench->argc = argc < bench_max_arguments ? argc : bench_max_arguments;
    bench->argv = argv;
    MPI_Comm_rank(MPI_COMM_WORLD, &bench->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &bench->ranks);
    bench->human = bench_flag(bench, "--human");
    bench->seconds = bench_number(bench, "--seconds", "0.4");
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    MPI_Get_library_version(version, &length);
    version[strcspn(version, "\n\"\\,")] = '\0';
    snprintf(bench->library, sizeof bench->library, "%.79s", version);
    for (char* at = bench->library; *at != '\0'; at++)
        if (*at == '\t')
            *at = ' ';
}

/* The leader tells everybody how many repetitions come next; 0 ends the measurement. */
static inline int bench_agree(const Bench* bench, int repetitions) {
    if (bench->rank != 0) {
        MPI_Recv(&repetitions, 1, MPI_INT, 0, bench_steering_tag, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        return repetitions;
    }
    for (int rank = 1; rank < bench->ranks; rank++)
        MPI_Send(&repetitions, 1, MPI_INT, rank, bench_steering_tag, MPI_COMM_WORLD);
    return repetitions;
}

/* One batch. The repetition before the clock starts lets sleepers wake and caches settle. */
static inline double bench_batch(const Bench* bench, BenchWork work, void* state, BenchClock clock,
                                 int repetitions) {
    work(state, 1);
    double span[2] = {bench_now(), 0};
    work(state, repetitions);
    span[1] = bench_now();
    if (clock == bench_span && bench->rank != 0) {
        MPI_Send(span, 2, MPI_DOUBLE, 0, bench_steering_tag, MPI_COMM_WORLD);
    } else if (clock == bench_span) {
        for (int rank = 1; rank < bench->ranks; rank++) {
            double its[2];
            MPI_Recv(its, 2, MPI_DOUBLE, rank, bench_steering_tag, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
            span[0] = its[0] < span[0] ? its[0] : span[0];
            span[1] = its[1] > span[1] ? its[1] : span[1];
        }
    }
    return (span[1] - span[0]) / repetitions;
}

static int bench_compare_times(const void* a, const void* b) {
    double x = *(const double*)a;
    double y = *(const double*)b;
    return (x > y) - (x < y);
}

/* Measures on all ranks; the result is the leader's. */
static inline BenchTimes bench_measure(const Bench* bench, BenchWork work, void* state,
                                       BenchClock clock) {
    const int wanted = 80;
    const int at_least = 5;
    BenchTimes times = {0, 0, 0, 1};
    if (bench->rank != 0) {
        for (int repetitions; (repetitions = bench_agree(bench, 0)) != 0;)
            bench_batch(bench, work, state, clock, repetitions);
        return times;
    }
    double batch_seconds = bench->seconds / wanted;
    double each = bench_batch(bench, work, state, clock, bench_agree(bench, 1));
    while (each * times.repetitions < batch_seconds / 2) {
        double factor = each > 0 ? batch_seconds / (each * times.repetitions) : 10;
        factor = factor > 10 ? 10 : factor < 2 ? 2 : factor;
        times.repetitions = (int)(times.repetitions * factor);
        each = bench_batch(bench, work, state, clock, bench_agree(bench, times.repetitions));
    }
    double batch[bench_max_batches];
    double start = bench_now();
    while (times.batches < wanted) {
        if (times.batches >= at_least && bench_now() - start > 3 * bench->seconds)
            break; /* slower than expected: a few batches must do */
        batch[times.batches++] =
            bench_batch(bench, work, state, clock, bench_agree(bench, times.repetitions));
    }
    bench_agree(bench, 0);
    qsort(batch, (size_t)times.batches, sizeof batch[0], bench_compare_times);
    int middle = times.batches / 2;
    times.median = times.batches % 2 != 0 ? batch[middle] : (batch[middle - 1] + batch[middle]) / 2;
    times.best = batch[0];
    return times;
}

/* One figure. `median` and `best` are already in `unit`; `more` is further JSON ("\"k\":1") or "".
 * `size` < 0: the figure has no size. */
static inline void bench_report(const Bench* bench, const char* figure, const char* mode,
                                long long size, const char* unit, double median, double best,
                                int batches, const char* more) {
    if (bench->rank != 0)
        return;
    if (bench->human) {
        char what[64];
        snprintf(what, sizeof what, "%s%s%s", figure, mode[0] != '\0' ? ", " : "", mode);
        if (size >= 0)
            printf("%-28s %9lld B   %10.4g %s (best %.4g)\n", what, size, median, unit, best);
        else
            printf("%-28s             %10.4g %s (best %.4g)\n", what, median, unit, best);
    } else {
        printf("{\"program\":\"%s\",\"figure\":\"%s\",\"mode\":\"%s\",\"ranks\":%d,",
               bench->program, figure, mode, bench->ranks);
        if (size >= 0)
            printf("\"size\":%lld,", size);
        printf("\"unit\":\"%s\",\"median\":%.6g,\"best\":%.6g,\"batches\":%d,", unit, median, best,
               batches);
        printf("\"pinned\":%d,\"processors\":\"%s\",\"library\":\"%s\"%s%s}\n", bench->pinned,
               bench->processors, bench->library, more[0] != '\0' ? "," : "", more);
    }
    fflush(stdout);
}

#endif
