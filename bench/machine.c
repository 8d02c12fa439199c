/*
 * What the machine itself allows, without MPI: the limits that the figures are measured against,
 * and the witness of a machine that changes while we measure (a virtual machine whose processors
 * the host moves does so by factors).
 *
 *   cache line   one way of a cache line between two processors: no message can be faster
 *   copy         one processor copying memory, by size, source and destination cached if they fit
 *
 * No MPI process: two threads, on the first two processors that it may use.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { exchanges = 2000, batches = 100 };

static _Alignas(128) atomic_int line;
static int processors[2];

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void stay_on(int processor) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)processor, &set);
    sched_setaffinity(0, sizeof set, &set);
}

static void* answer(void* nothing) {
    stay_on(processors[1]);
    for (int i = 0; i < batches * exchanges; i++) {
        while (atomic_load_explicit(&line, memory_order_acquire) != 2 * i + 1) {
        }
        atomic_store_explicit(&line, 2 * i + 2, memory_order_release);
    }
    return nothing;
}

static int compare_times(const void* a, const void* b) {
    double x = *(const double*)a;
    double y = *(const double*)b;
    return (x > y) - (x < y);
}

static void report(const char* figure, long size, const char* unit, double median, double best) {
    printf("{\"program\":\"machine\",\"figure\":\"%s\",\"mode\":\"\",\"ranks\":0,\"size\":%ld,"
           "\"unit\":\"%s\",\"median\":%.4g,\"best\":%.4g,\"batches\":%d}\n",
           figure, size, unit, median, best, batches);
}

static void measure_line(void) {
    pthread_t other;
    if (pthread_create(&other, NULL, answer, NULL) != 0)
        exit(1);
    double times[batches];
    for (int batch = 0; batch < batches; batch++) {
        double start = now();
        for (int i = batch * exchanges; i < (batch + 1) * exchanges; i++) {
            atomic_store_explicit(&line, 2 * i + 1, memory_order_release);
            while (atomic_load_explicit(&line, memory_order_acquire) != 2 * i + 2) {
            }
        }
        times[batch] = (now() - start) / (double)exchanges / 2;
    }
    pthread_join(other, NULL);
    qsort(times, batches, sizeof times[0], compare_times);
    report("cache line", 64, "us", 1e6 * times[batches / 2], 1e6 * times[0]);
}

static void measure_copy(size_t size) {
    char* from = malloc(size);
    char* to = malloc(size);
    if (from == NULL || to == NULL)
        exit(1);
    memset(from, 1, size);
    memset(to, 2, size);
    double times[batches];
    for (int batch = 0; batch < batches; batch++) {
        int repetitions = (int)(1 + (1 << 18) / size);
        double start = now();
        for (int i = 0; i < repetitions; i++) {
            memcpy(to, from, size);
            __asm__ volatile("" : : "r"(to) : "memory");
        }
        times[batch] = (now() - start) / repetitions;
    }
    free(from);
    free(to);
    qsort(times, batches, sizeof times[0], compare_times);
    report("copy", (long)size, "us", 1e6 * times[batches / 2], 1e6 * times[0]);
}

int main(void) {
    cpu_set_t set;
    sched_getaffinity(0, sizeof set, &set);
    int found = 0;
    for (size_t i = 0; i < CPU_SETSIZE && found < 2; i++)
        if (CPU_ISSET(i, &set))
            processors[found++] = (int)i;
    if (found < 2) {
        fprintf(stderr, "machine: needs two processors\n");
        return 1;
    }
    stay_on(processors[0]);
    measure_line();
    measure_copy(8192);
    measure_copy(65536);
    measure_copy(1 << 20);
    measure_copy(4 << 20);
    return 0;
}
