/* Ranks that wait for mutexes, conditions, read-write locks and semaphores, which their own threads
   or other ranks keep. As fibres they let other ranks run meanwhile. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#define CHECK(holds)                                                                               \
    do {                                                                                           \
        if (!(holds)) {                                                                            \
            ++wrong;                                                                               \
            fprintf(stderr, "rank %d, line %d: %s\n", rank, __LINE__, #holds);                     \
        }                                                                                          \
    } while (0)

static int rank, size, wrong;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t read_write = PTHREAD_RWLOCK_INITIALIZER;
static sem_t semaphore;
static mtx_t c11_mutex;
static cnd_t c11_condition;
static int turn; /* under the mutex; even: the rank's */
static long sum;
static atomic_int kept;

enum { keep_us = 30000, rounds = 300 };

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static struct timespec in_ms(clockid_t clock, long ms) {
    struct timespec time;
    clock_gettime(clock, &time);
    time.tv_nsec += ms * 1000000;
    time.tv_sec += time.tv_nsec / 1000000000;
    time.tv_nsec %= 1000000000;
    return time;
}

/* Keeps each thing for long, in turn, while the rank wants it. */
static void* keep(void* unused) {
    pthread_mutex_lock(&mutex);
    kept = 1;
    usleep(keep_us);
    sum = 1;
    pthread_mutex_unlock(&mutex);
    while (kept != 2) {
        usleep(100);
    }
    pthread_rwlock_wrlock(&read_write);
    kept = 3;
    usleep(keep_us);
    sum = 2;
    pthread_rwlock_unlock(&read_write);
    while (kept != 4) {
        usleep(100);
    }
    pthread_rwlock_rdlock(&read_write);
    kept = 5;
    usleep(keep_us);
    sum = 3;
    pthread_rwlock_unlock(&read_write);
    usleep(keep_us);
    sum = 4;
    sem_post(&semaphore);
    mtx_lock(&c11_mutex);
    kept = 6;
    usleep(keep_us);
    sum = 5;
    mtx_unlock(&c11_mutex);
    return unused;
}

static void wait_kept(int what) {
    while (kept != what) {
        usleep(100);
    }
}

static void long_waits(void) {
    pthread_t keeper;
    CHECK(pthread_create(&keeper, NULL, keep, NULL) == 0);
    wait_kept(1);
    CHECK(pthread_mutex_trylock(&mutex) == EBUSY);
    CHECK(pthread_mutex_lock(&mutex) == 0 && sum == 1);
    CHECK(pthread_mutex_unlock(&mutex) == 0);
    kept = 2;
    wait_kept(3);
    CHECK(pthread_rwlock_rdlock(&read_write) == 0 && sum == 2);
    CHECK(pthread_rwlock_unlock(&read_write) == 0);
    kept = 4;
    wait_kept(5);
    CHECK(pthread_rwlock_wrlock(&read_write) == 0 && sum == 3);
    CHECK(pthread_rwlock_unlock(&read_write) == 0);
    CHECK(sem_wait(&semaphore) == 0 && sum == 4);
    wait_kept(6);
    CHECK(mtx_lock(&c11_mutex) == thrd_success && sum == 5);
    CHECK(mtx_unlock(&c11_mutex) == thrd_success);
    CHECK(pthread_join(keeper, NULL) == 0);
}

/* A thread and the rank take turns. */
static void* play(void* other) {
    for (int round = 0; round < rounds; ++round) {
        pthread_mutex_lock(&mutex);
        while (turn % 2 == 0) {
            pthread_cond_wait(&condition, &mutex);
        }
        ++turn;
        if (round % 2 == 0) {
            pthread_cond_signal(&condition);
            pthread_mutex_unlock(&mutex);
        } else {
            pthread_mutex_unlock(&mutex);
            pthread_cond_broadcast(&condition);
        }
        if (round % 100 == 50) {
            usleep(keep_us / 3);
        }
    }
    mtx_lock(&c11_mutex);
    while (sum != -1) {
        cnd_wait(&c11_condition, &c11_mutex);
    }
    sum = -2;
    cnd_signal(&c11_condition);
    mtx_unlock(&c11_mutex);
    return other;
}

static void turns(void) {
    pthread_t player;
    CHECK(pthread_create(&player, NULL, play, NULL) == 0);
    for (int round = 0; round < rounds; ++round) {
        CHECK(pthread_mutex_lock(&mutex) == 0);
        ++turn;
        pthread_cond_signal(&condition);
        while (turn % 2 != 0) {
            if (round % 3 == 0) {
                const struct timespec late = in_ms(CLOCK_MONOTONIC, 50000);
                CHECK(pthread_cond_clockwait(&condition, &mutex, CLOCK_MONOTONIC, &late) == 0);
            } else {
                CHECK(pthread_cond_wait(&condition, &mutex) == 0);
            }
        }
        CHECK(pthread_mutex_unlock(&mutex) == 0);
    }
    CHECK(turn == 2 * rounds);
    usleep(1000);
    mtx_lock(&c11_mutex);
    sum = -1;
    cnd_broadcast(&c11_condition);
    while (sum != -2) {
        cnd_wait(&c11_condition, &c11_mutex);
    }
    mtx_unlock(&c11_mutex);
    CHECK(pthread_join(player, NULL) == 0);
}

/* What is kept by the rank itself, or by nobody: limits and errors. */
static void limits(void) {
    pthread_mutexattr_t attributes;
    pthread_mutex_t checked, recursive;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&checked, &attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&recursive, &attributes);
    CHECK(pthread_mutex_lock(&checked) == 0);
    CHECK(pthread_mutex_lock(&checked) == EDEADLK);
    CHECK(pthread_mutex_unlock(&checked) == 0);
    CHECK(pthread_mutex_unlock(&checked) == EPERM);
    CHECK(pthread_mutex_lock(&recursive) == 0 && pthread_mutex_lock(&recursive) == 0);
    CHECK(pthread_mutex_unlock(&recursive) == 0 && pthread_mutex_unlock(&recursive) == 0);
    CHECK(pthread_rwlock_wrlock(&read_write) == 0);
    CHECK(pthread_rwlock_rdlock(&read_write) == EDEADLK);
    CHECK(pthread_rwlock_wrlock(&read_write) == EDEADLK);
    CHECK(pthread_rwlock_unlock(&read_write) == 0);

    struct timespec until = in_ms(CLOCK_REALTIME, 20);
    double begin = seconds();
    CHECK(pthread_mutex_lock(&mutex) == 0);
    CHECK(pthread_mutex_timedlock(&mutex, &until) == ETIMEDOUT);
    until = in_ms(CLOCK_REALTIME, 20);
    CHECK(pthread_cond_timedwait(&condition, &mutex, &until) == ETIMEDOUT);
    until = in_ms(CLOCK_MONOTONIC, 20);
    CHECK(pthread_cond_clockwait(&condition, &mutex, CLOCK_MONOTONIC, &until) == ETIMEDOUT);
    CHECK(pthread_mutex_unlock(&mutex) == 0);
    until = in_ms(CLOCK_REALTIME, 20);
    CHECK(sem_timedwait(&semaphore, &until) == -1 && errno == ETIMEDOUT);
    CHECK(seconds() - begin > 0.079);
    until.tv_nsec = 2000000000;
    CHECK(sem_timedwait(&semaphore, &until) == -1 && errno == EINVAL);
    CHECK(sem_trywait(&semaphore) == -1 && errno == EAGAIN);

    pthread_condattr_t by_clock;
    pthread_cond_t timed;
    pthread_condattr_init(&by_clock);
    pthread_condattr_setclock(&by_clock, CLOCK_MONOTONIC);
    pthread_cond_init(&timed, &by_clock);
    until = in_ms(CLOCK_MONOTONIC, 20);
    begin = seconds();
    CHECK(pthread_mutex_lock(&mutex) == 0);
    CHECK(pthread_cond_timedwait(&timed, &mutex, &until) == ETIMEDOUT);
    CHECK(pthread_mutex_unlock(&mutex) == 0);
    CHECK(seconds() - begin > 0.019 && seconds() - begin < 10);
    CHECK(pthread_cond_destroy(&timed) == 0);
}

/* One mutex of all ranks, each of which gives way while it has it. */
struct Common {
    pthread_mutex_t mutex;
    long inside, count;
};

static void common_mutex(void) {
    char name[64];
    snprintf(name, sizeof name, "/warren-locks-%d", (int)getpid());
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    const int file = shm_open(name, O_RDWR | O_CREAT, 0600);
    CHECK(file >= 0 && ftruncate(file, sizeof(struct Common)) == 0);
    struct Common* common = mmap(NULL, sizeof *common, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (rank == 0) {
        pthread_mutexattr_t attributes;
        pthread_mutexattr_init(&attributes);
        pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
        pthread_mutex_init(&common->mutex, &attributes);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    shm_unlink(name);
    for (int round = 0; round < 20; ++round) {
        CHECK(pthread_mutex_lock(&common->mutex) == 0);
        CHECK(++common->inside == 1);
        sched_yield();
        ++common->count;
        --common->inside;
        CHECK(pthread_mutex_unlock(&common->mutex) == 0);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(common->count == 20L * size);
    munmap(common, sizeof *common);
}

int main(int argc, char** argv) {
    int given, all;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &given);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    sem_init(&semaphore, 0, 0);
    mtx_init(&c11_mutex, mtx_plain);
    cnd_init(&c11_condition);
    const double begin = seconds();
    long_waits();
    turns();
    limits();
    common_mutex();
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%.3f s\n", seconds() - begin);
    }
    MPI_Finalize();
    return all != 0;
}
