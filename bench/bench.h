/*
 * What the benchmark programs share: options, timed batches, statistics, one JSON line per figure.
 *
 * Every program measures the same way. All ranks run batches of one operation; the leader (rank 0)
 * chooses how many repetitions fill a batch, so a batch is long enough for the clock and short
 * enough that some batches escape the disturbances of a busy machine. The figure is the median over
 * the batches, and the best batch stands beside it.
 *
 * With two pinned ranks, the time of a bare cache line between them is taken before every batch
 * without MPI's help and printed with it. Virtual machines need that: the host moves their
 * processors between cores, and then everything changes by a factor of two to five in mid-run.
 * compare sorts the batches by it.
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
#include <fcntl.h>
#include <mpi.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    bench_batches = 80,
    bench_line_exchanges = 100,
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
    atomic_int* line;               /* shared by two pinned ranks, see bench_share_line */
    int line_turn;
} Bench;

/* Times of the batches, in seconds per repetition. */
typedef struct {
    double median;
    double best;
    int batches;
    int repetitions; /* per batch */
    double batch[bench_batches];
    double line[bench_batches]; /* one way of a cache line just before the batch, seconds */
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

/* Asks every rank where it may run: binding options are believed only when they took effect. */
static inline void bench_find_pinning(Bench* bench) {
    cpu_set_t mine;
    CPU_ZERO(&mine);
    sched_getaffinity(0, sizeof mine, &mine);
    if (bench->rank != 0) {
        MPI_Send(&mine, (int)sizeof mine, MPI_BYTE, 0, bench_steering_tag, MPI_COMM_WORLD);
        return;
    }
    cpu_set_t before;
    CPU_ZERO(&before);
    size_t length = 0;
    bench->pinned = bench->ranks > 1;
    for (int rank = 0; rank < bench->ranks; rank++) {
        cpu_set_t its = mine;
        if (rank != 0)
            MPI_Recv(&its, (int)sizeof its, MPI_BYTE, rank, bench_steering_tag, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        cpu_set_t common;
        CPU_AND(&common, &its, &before);
        if (CPU_COUNT(&common) != 0)
            bench->pinned = 0;
        before = its;
        if (rank >= 4)
            continue;
        size_t first = 0;
        while (first < CPU_SETSIZE - 1 && !CPU_ISSET(first, &its))
            first++;
        length += (size_t)snprintf(bench->processors + length, sizeof bench->processors - length,
                                   "%s%zu%s", rank == 0 ? "" : ",", first,
                                   CPU_COUNT(&its) > 1 ? "+" : "");
    }
}

/* Lets two pinned ranks share one cache line behind MPI's back. Without success there is none. */
static inline void bench_share_line(Bench* bench) {
    int fit[3] = {bench->pinned && bench->ranks == 2, (int)syscall(SYS_gettid), -1};
    int file = -1;
    if (bench->ranks != 2)
        return;
    if (bench->rank == 0) {
        file = memfd_create("cache line", MFD_CLOEXEC);
        if (file < 0 || ftruncate(file, 4096) != 0)
            fit[0] = 0;
        fit[2] = file;
        MPI_Send(fit, 3, MPI_INT, 1, bench_steering_tag, MPI_COMM_WORLD);
    } else {
        MPI_Recv(fit, 3, MPI_INT, 0, bench_steering_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        char path[64];
        snprintf(path, sizeof path, "/proc/%d/fd/%d", fit[1], fit[2]);
        file = fit[0] ? open(path, O_RDWR | O_CLOEXEC) : -1;
    }
    void* page = MAP_FAILED;
    if (fit[0] && file >= 0)
        page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    int mine = page != MAP_FAILED;
    int its = 0;
    MPI_Sendrecv(&mine, 1, MPI_INT, 1 - bench->rank, bench_steering_tag, &its, 1, MPI_INT,
                 1 - bench->rank, bench_steering_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (file >= 0)
        close(file);
    if (mine && its)
        bench->line = page;
}

/* Seconds that the line takes one way; 0 without a line. */
static inline double bench_time_line(Bench* bench) {
    if (bench->line == NULL)
        return 0;
    double start = 0;
    for (int i = 0; i <= bench_line_exchanges; i++) {
        if (i == 1)
            start = bench_now(); /* the first exchange waits for the other rank to come */
        int turn = bench->line_turn + 2 * i;
        int awaited = bench->rank == 0 ? turn + 2 : turn + 1;
        if (bench->rank == 0)
            atomic_store_explicit(bench->line, turn + 1, memory_order_release);
        while (atomic_load_explicit(bench->line, memory_order_acquire) != awaited) {
        }
        if (bench->rank == 1)
            atomic_store_explicit(bench->line, turn + 2, memory_order_release);
    }
    bench->line_turn += 2 * (bench_line_exchanges + 1);
    return (bench_now() - start) / (double)bench_line_exchanges / 2;
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
static inline double bench_batch(Bench* bench, BenchWork work, void* state, BenchClock clock,
                                 int repetitions, double* line) {
    *line = bench_time_line(bench);
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
static inline BenchTimes bench_measure(Bench* bench, BenchWork work, void* state,
                                       BenchClock clock) {
    const int at_least = 5;
    BenchTimes times = {.repetitions = 1};
    double line;
    if (bench->rank != 0) {
        for (int repetitions; (repetitions = bench_agree(bench, 0)) != 0;)
            bench_batch(bench, work, state, clock, repetitions, &line);
        return times;
    }
    double batch_seconds = bench->seconds / (double)bench_batches;
    double each = bench_batch(bench, work, state, clock, bench_agree(bench, 1), &line);
    while (each * times.repetitions < batch_seconds / 2) {
        double factor = each > 0 ? batch_seconds / (each * times.repetitions) : 10;
        factor = factor > 10 ? 10 : factor < 2 ? 2 : factor;
        times.repetitions = (int)(times.repetitions * factor);
        bench_agree(bench, times.repetitions);
        each = bench_batch(bench, work, state, clock, times.repetitions, &line);
    }
    double start = bench_now();
    while (times.batches < bench_batches) {
        if (times.batches >= at_least && bench_now() - start > 3 * bench->seconds)
            break; /* slower than expected: a few batches must do */
        bench_agree(bench, times.repetitions);
        times.batch[times.batches] =
            bench_batch(bench, work, state, clock, times.repetitions, &times.line[times.batches]);
        times.batches++;
    }
    bench_agree(bench, 0);
    double sorted[bench_batches];
    memcpy(sorted, times.batch, sizeof sorted);
    qsort(sorted, (size_t)times.batches, sizeof sorted[0], bench_compare_times);
    int middle = times.batches / 2;
    times.median =
        times.batches % 2 != 0 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
    times.best = sorted[0];
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

/* A figure from times: scale * seconds, or as a rate scale / seconds. */
static inline void bench_report_times(const Bench* bench, const char* figure, const char* mode,
                                      long long size, const char* unit, const BenchTimes* times,
                                      double scale, bool rate, const char* more) {
    if (bench->rank != 0)
        return;
    char text[bench_batches * 32 + 256];
    size_t length = (size_t)snprintf(text, sizeof text, "%s", more);
    if (bench->line != NULL) { /* pairs of nanoseconds of the cache line and the batch's figure */
        length += (size_t)snprintf(text + length, sizeof text - length, "%s\"batch\":[",
                                   length > 0 ? "," : "");
        for (int i = 0; i < times->batches; i++)
            length += (size_t)snprintf(text + length, sizeof text - length, "%s[%.4g,%.5g]",
                                       i > 0 ? "," : "", 1e9 * times->line[i],
                                       rate ? scale / times->batch[i] : scale * times->batch[i]);
        snprintf(text + length, sizeof text - length, "]");
    }
    bench_report(bench, figure, mode, size, unit,
                 rate ? scale / times->median : scale * times->median,
                 rate ? scale / times->best : scale * times->best, times->batches, text);
}

#endif
