/*
 * What a halo exchange needs without MPI: two workers pack, move and unpack the faces that `halo`
 * exchanges, by loops that know the array. The floor for the same rows of `halo`.
 *
 * Two processes move a face in parts through memory that they share: a worker packs its next part
 * if there is room, and unpacks the part that has come. Parts of several sizes take turns; the best
 * counts. Two threads (--threads) copy straight from the other's faces to their halos.
 *
 *   --edge 512        as `halo`
 *   --seconds 0.4     for each row and size of parts
 *   --threads
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { dimensions = 3, sides = 2, slots = 4, most_part = 1 << 18, most_batches = 4096 };

typedef struct {
    _Alignas(128) atomic_ulong written; /* parts, of all exchanges */
    _Alignas(128) atomic_ulong read;
    _Alignas(4096) char data[slots][most_part];
} Way;

typedef struct {
    Way to[sides]; /* by the receiving worker */
    _Alignas(128) atomic_ulong ready[sides];
    _Alignas(128) atomic_ulong done[sides];
    _Alignas(128) atomic_long agreed; /* exchanges of the next batch; 0: none yet, -1: the end */
    _Alignas(128) double* array[sides];
} Shared;

typedef struct {
    const char* name;
    int size[dimensions];
    int across;
} Row;

/* A face as rows of doubles. `length` doubles lie together, rows are `near` apart, and after
 * `rows` of them comes the next plane, `far` away. */
typedef struct {
    size_t length, rows, planes, near, far, doubles;
} Face;

static Shared* shared;
static bool threads;
static double seconds = 0.4;
static int edge = 512;
static int processors[sides];

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static Face face_of(const Row* row) {
    size_t x = (size_t)row->size[0];
    size_t y = (size_t)row->size[1];
    size_t z = (size_t)row->size[2];
    Face face = {x * y, 1, 1, 0, 0, x * y};
    if (row->across == 1)
        face = (Face){x, z, 1, x * y, 0, x * z};
    if (row->across == 0)
        face = (Face){1, y, z, x, x * y, y * z};
    return face;
}

/* Where plane `at` of the row's direction begins. */
static size_t plane(const Row* row, int at) {
    size_t stride = 1;
    for (int d = 0; d < row->across; d++)
        stride *= (size_t)row->size[d];
    return stride * (size_t)at;
}

/* Copies doubles [first, first + count) of a face between the array and contiguous memory. */
static void move(const Face* face, double* array, double* part, size_t first, size_t count,
                 bool packs) {
    if (face->length == 1) {
        while (count > 0) {
            size_t begin = first % face->rows;
            size_t here = face->rows - begin < count ? face->rows - begin : count;
            double* at = array + first / face->rows * face->far + begin * face->near;
            if (packs)
                for (size_t i = 0; i < here; i++)
                    part[i] = at[i * face->near];
            else
                for (size_t i = 0; i < here; i++)
                    at[i * face->near] = part[i];
            part += here;
            first += here;
            count -= here;
        }
        return;
    }
    while (count > 0) {
        size_t begin = first % face->length;
        size_t here = face->length - begin < count ? face->length - begin : count;
        double* at = array + first / face->length * face->near + begin;
        memcpy(packs ? part : at, packs ? at : part, here * sizeof(double));
        part += here;
        first += here;
        count -= here;
    }
}

/* One direction after the other, as two messages of a pair arrive. */
static void exchange_parts(int me, const Row* row, const Face* face, size_t part) {
    Way* out = &shared->to[1 - me];
    Way* in = &shared->to[me];
    int last = row->size[row->across] - 1;
    size_t sent = 0;
    size_t taken = 0;
    size_t all = sides * face->doubles;
    unsigned long written = atomic_load_explicit(&out->written, memory_order_relaxed);
    unsigned long read = atomic_load_explicit(&in->read, memory_order_relaxed);
    while (sent < all || taken < all) {
        if (sent < all &&
            written - atomic_load_explicit(&out->read, memory_order_acquire) < slots) {
            size_t first = sent % face->doubles;
            size_t here = face->doubles - first < part ? face->doubles - first : part;
            double* plane_at = shared->array[me] + plane(row, sent < face->doubles ? 1 : last - 1);
            move(face, plane_at, (double*)(void*)out->data[written % slots], first, here, true);
            atomic_store_explicit(&out->written, ++written, memory_order_release);
            sent += here;
        }
        if (taken < all && atomic_load_explicit(&in->written, memory_order_acquire) > read) {
            size_t first = taken % face->doubles;
            size_t here = face->doubles - first < part ? face->doubles - first : part;
            double* plane_at = shared->array[me] + plane(row, taken < face->doubles ? last : 0);
            move(face, plane_at, (double*)(void*)in->data[read % slots], first, here, false);
            atomic_store_explicit(&in->read, ++read, memory_order_release);
            taken += here;
        }
    }
}

static void wait_for(atomic_ulong* counter, unsigned long value) {
    while (atomic_load_explicit(counter, memory_order_acquire) < value) {
    }
}

static void copy_plane(const Face* face, double* to, const double* from) {
    if (face->length == 1) {
        for (size_t p = 0; p < face->planes; p++)
            for (size_t r = 0; r < face->rows; r++)
                to[p * face->far + r * face->near] = from[p * face->far + r * face->near];
        return;
    }
    for (size_t r = 0; r < face->rows; r++)
        memcpy(to + r * face->near, from + r * face->near, face->length * sizeof(double));
}

static void exchange_direct(int me, const Row* row, const Face* face, unsigned long number) {
    int last = row->size[row->across] - 1;
    atomic_store_explicit(&shared->ready[me], number, memory_order_release);
    wait_for(&shared->ready[1 - me], number);
    const double* other = shared->array[1 - me];
    copy_plane(face, shared->array[me] + plane(row, last), other + plane(row, 1));
    copy_plane(face, shared->array[me] + plane(row, 0), other + plane(row, last - 1));
    atomic_store_explicit(&shared->done[me], number, memory_order_release);
    wait_for(&shared->done[1 - me], number);
}

static double value(int worker, size_t at) {
    return (double)at + (worker == 0 ? 0.25 : 0.75);
}

/* Fills both faces with the worker's values, or counts the doubles of the halos that differ from
 * the other's. */
static size_t visit(int me, const Row* row, const Face* face, bool checks) {
    int last = row->size[row->across] - 1;
    const int own[sides] = {1, last - 1};
    const int halo[sides] = {last, 0};
    size_t wrong = 0;
    for (int side = 0; side < sides; side++)
        for (size_t p = 0; p < face->planes; p++)
            for (size_t r = 0; r < face->rows; r++)
                for (size_t i = 0; i < face->length; i++) {
                    size_t within = p * face->far + r * face->near + i;
                    size_t at = plane(row, own[side]) + within;
                    if (checks)
                        wrong +=
                            shared->array[me][plane(row, halo[side]) + within] != value(1 - me, at);
                    else
                        shared->array[me][at] = value(me, at);
                }
    return wrong;
}

static int compare_times(const void* a, const void* b) {
    double x = *(const double*)a;
    double y = *(const double*)b;
    return (x > y) - (x < y);
}

/* The median time of an exchange, as worker 0 measures it; worker 1 does the same number. */
static double measure(int me, const Row* row, const Face* face, size_t part,
                      unsigned long* number) {
    static double times[most_batches];
    int batches = 0;
    long repetitions = 1;
    double end = now() + seconds;
    while (me == 1 || batches == 0 || (now() < end && batches < most_batches)) {
        if (me == 0) {
            atomic_store_explicit(&shared->agreed, repetitions, memory_order_release);
        } else {
            while ((repetitions = atomic_load_explicit(&shared->agreed, memory_order_acquire)) ==
                   0) {
            }
            if (repetitions < 0)
                break;
            atomic_store_explicit(&shared->agreed, 0, memory_order_release);
        }
        if (me == 0)
            while (atomic_load_explicit(&shared->agreed, memory_order_acquire) != 0) {
            }
        double begin = now();
        for (long i = 0; i < repetitions; i++)
            if (threads)
                exchange_direct(me, row, face, ++*number);
            else
                exchange_parts(me, row, face, part);
        double time = now() - begin;
        if (me == 0) {
            if (time < 1e-3 && repetitions < 1 << 20) {
                repetitions *= 2;
                continue; /* too short for the clock: not counted */
            }
            times[batches++] = time / (double)repetitions;
        }
    }
    if (me == 1) {
        atomic_store_explicit(&shared->agreed, 0, memory_order_release);
        return 0;
    }
    atomic_store_explicit(&shared->agreed, -1, memory_order_release);
    while (atomic_load_explicit(&shared->agreed, memory_order_acquire) != 0) {
    }
    qsort(times, (size_t)batches, sizeof times[0], compare_times);
    return times[batches / 2];
}

static void run_row(int me, const Row* row, unsigned long* number) {
    static const char* const plane_names[dimensions] = {"yz", "xz", "xy"};
    static const size_t parts[] = {1 << 12, 1 << 14, 1 << 15, 1 << 16, 1 << 17, 1 << 18};
    Face face = face_of(row);
    visit(me, row, &face, false);
    double best = 0;
    size_t best_part = 0;
    for (size_t i = 0; i < (threads ? 1 : sizeof parts / sizeof *parts); i++) {
        double time = measure(me, row, &face, parts[i] / sizeof(double), number);
        if (best == 0 || time < best) {
            best = time;
            best_part = parts[i];
        }
    }
    if (visit(me, row, &face, true) != 0) {
        fprintf(stderr, "halo_bare: halos hold other numbers than they should\n");
        exit(1);
    }
    if (me == 0)
        printf("{\"program\":\"halo_bare\",\"figure\":\"halo\",\"mode\":\"%s "
               "%s\",\"ranks\":2,\"size\":%zu,"
               "\"unit\":\"us\",\"median\":%.4g,\"part\":%zu}\n",
               row->name, plane_names[row->across], face.doubles * sizeof(double),
               1e6 * best / (double)sides, threads ? 0 : best_part);
    fflush(stdout);
}

static void* work(void* number_of_worker) {
    int me = (int)(intptr_t)number_of_worker;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)processors[me], &set);
    sched_setaffinity(0, sizeof set, &set);
    size_t bytes = sizeof(double) * (size_t)edge * (size_t)edge * (size_t)edge;
    shared->array[me] = aligned_alloc(4096, bytes);
    if (shared->array[me] == NULL)
        exit(1);
    memset((void*)shared->array[me], 0, bytes);
    const Row shapes[] = {{"cube", {edge, edge, edge}, 0},
                          {"long-x", {32 * edge, edge / 4, edge / 8}, 0},
                          {"long-y", {edge / 4, 32 * edge, edge / 8}, 0},
                          {"long-z", {edge / 4, edge / 8, 32 * edge}, 0}};
    unsigned long number = 0;
    atomic_fetch_add(&shared->done[me], 0);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int across = dimensions - 1; across >= 0; across--) {
            Row row = shapes[i];
            row.across = across;
            run_row(me, &row, &number);
        }
    return NULL;
}

int main(int argc, char** argv) {
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--threads") == 0)
            threads = true;
        else if (strcmp(argv[i], "--edge") == 0 && i + 1 < argc)
            edge = atoi(argv[++i]);
        else if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc)
            seconds = atof(argv[++i]);
        else {
            fprintf(stderr, "usage: halo_bare [--edge N] [--seconds S] [--threads]\n");
            return 2;
        }
    }
    cpu_set_t set;
    sched_getaffinity(0, sizeof set, &set);
    int found = 0;
    for (int i = 0; i < CPU_SETSIZE && found < sides; i++)
        if (CPU_ISSET((size_t)i, &set))
            processors[found++] = i;
    if (found < sides || edge < 32 || edge % 8 != 0) {
        fprintf(stderr,
                "halo_bare: two processors and an --edge that is a multiple of 8 are needed\n");
        return 1;
    }
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return 1;
    if (threads) {
        pthread_t other;
        if (pthread_create(&other, NULL, work, (void*)(intptr_t)1) != 0)
            return 1;
        work(NULL);
        return pthread_join(other, NULL);
    }
    pid_t child = fork();
    if (child == 0) {
        work((void*)(intptr_t)1);
        return 0;
    }
    work(NULL);
    int status = 1;
    waitpid(child, &status, 0);
    return status == 0 ? 0 : 1;
}
