/* Ranks that wait for mutexes, conditions, read-write locks, semaphores, barriers and pthread_once,
   which their own threads or other ranks keep. As fibres they let other ranks run meanwhile. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
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

/* A lock that prefers writers lets one in, however readers follow each other. */
static pthread_rwlock_t preferring;
static atomic_int written, readers;

static void* read_on(void* unused) {
    while (!written) {
        pthread_rwlock_rdlock(&preferring);
        const int number = ++readers;
        /* Nobody leaves before another one has come, unless none can. */
        for (int i = 0; i < 100 && readers == number; ++i) {
            usleep(200);
        }
        pthread_rwlock_unlock(&preferring);
    }
    return unused;
}

static void writers(void) {
    pthread_rwlockattr_t attributes;
    pthread_rwlockattr_init(&attributes);
    pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&preferring, &attributes);
    pthread_t threads[3];
    for (int i = 0; i < 3; ++i) {
        CHECK(pthread_create(&threads[i], NULL, read_on, NULL) == 0);
    }
    while (readers < 6) {
        usleep(100);
    }
    CHECK(pthread_rwlock_wrlock(&preferring) == 0);
    const int before = readers;
    usleep(5000);
    CHECK(readers == before);
    written = 1;
    CHECK(pthread_rwlock_unlock(&preferring) == 0);
    for (int i = 0; i < 3; ++i) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    CHECK(pthread_rwlock_destroy(&preferring) == 0);
}

/* Mutexes with priorities, which the kernel knows by the numbers of its threads. */
static pthread_mutex_t inheriting;

static void* keep_inheriting(void* unused) {
    pthread_mutex_lock(&inheriting);
    kept = 7;
    usleep(keep_us);
    pthread_mutex_unlock(&inheriting);
    while (kept != 8) {
        usleep(100);
    }
    pthread_mutex_lock(&inheriting);
    sum = 8;
    pthread_mutex_unlock(&inheriting);
    return unused;
}

static void priorities(void) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    CHECK(pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT) == 0);
    CHECK(pthread_mutex_init(&inheriting, &attributes) == 0);
    pthread_t keeper;
    CHECK(pthread_create(&keeper, NULL, keep_inheriting, NULL) == 0);
    wait_kept(7);
    CHECK(pthread_mutex_trylock(&inheriting) == EBUSY);
    CHECK(pthread_mutex_lock(&inheriting) == 0);
    kept = 8;
    usleep(1000);
    CHECK(sum != 8);
    CHECK(pthread_mutex_unlock(&inheriting) == 0);
    CHECK(pthread_join(keeper, NULL) == 0 && sum == 8);
    CHECK(pthread_mutex_destroy(&inheriting) == 0);
}

/* A handler posts what its rank waits for. (Handlers are the process's: a rank at a time.) */
static void post(int unused) {
    sem_post(&semaphore);
    (void)unused;
}

static void* interrupt(void* unused) {
    for (int i = 0; i < 20; ++i) {
        usleep(i == 0 ? keep_us : 200);
        kill(getpid(), SIGUSR1);
        wait_kept(100 + i);
    }
    return unused;
}

static void handlers(void) {
    for (int turn = 0; turn < size && turn < 3; ++turn) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (turn == rank) {
            pthread_t thread;
            signal(SIGUSR1, post);
            CHECK(pthread_create(&thread, NULL, interrupt, NULL) == 0);
            for (int i = 0; i < 20; ++i) {
                int error = sem_wait(&semaphore);
                while (error != 0 && errno == EINTR) {
                    error = sem_wait(&semaphore);
                }
                CHECK(error == 0);
                kept = 100 + i;
            }
            CHECK(pthread_join(thread, NULL) == 0);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* The routine of pthread_once lasts long, in a thread or in the rank. */
static pthread_once_t once = PTHREAD_ONCE_INIT, own_once = PTHREAD_ONCE_INIT;
static atomic_int calls;

static void last_long(void) {
    kept = 9;
    usleep(keep_us);
    ++calls;
}

static void* call(void* control) {
    CHECK(pthread_once(control, last_long) == 0);
    CHECK(control == &once ? calls == 1 : calls == 2);
    return control;
}

static void once_only(void) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, call, &once) == 0);
    wait_kept(9);
    call(&once);
    CHECK(pthread_join(thread, NULL) == 0);
    kept = 0;
    CHECK(pthread_create(&thread, NULL, call, &own_once) == 0);
    call(&own_once);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(pthread_once(&once, last_long) == 0 && calls == 2);
}

/* A rank and its threads meet, also more often than a barrier counts. */
static pthread_barrier_t barrier;
static atomic_int serial;

static void* meet(void* unused) {
    for (int round = 0; round < rounds; ++round) {
        serial += pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD;
        if (round == 100) {
            usleep(keep_us);
        }
    }
    return unused;
}

static void barriers(void) {
    pthread_t threads[2];
    CHECK(pthread_barrier_init(&barrier, NULL, 3) == 0);
    for (int i = 0; i < 2; ++i) {
        CHECK(pthread_create(&threads[i], NULL, meet, NULL) == 0);
    }
    for (int round = 0; round < rounds; ++round) {
        serial += pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD;
    }
    CHECK(pthread_barrier_destroy(&barrier) == 0);
    for (int i = 0; i < 2; ++i) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    CHECK(serial == rounds);
}

/* What all ranks share, each by an address of its own: a mutex, whose holder gives way; a barrier;
   a condition, for which a row of ranks waits; a semaphore. */
struct Common {
    pthread_mutex_t mutex;
    pthread_barrier_t barrier;
    pthread_cond_t condition;
    sem_t semaphore;
    long inside, count, turn;
};

static void common_condition(struct Common* common) {
    for (int round = 0; round < 3; ++round) {
        CHECK(pthread_mutex_lock(&common->mutex) == 0);
        while (common->turn != (long)round * size + rank) {
            CHECK(pthread_cond_wait(&common->condition, &common->mutex) == 0);
        }
        ++common->turn;
        if (rank == 0) {
            CHECK(pthread_mutex_unlock(&common->mutex) == 0);
            usleep(keep_us);
            CHECK(pthread_mutex_lock(&common->mutex) == 0);
        }
        CHECK(pthread_cond_broadcast(&common->condition) == 0);
        CHECK(pthread_mutex_unlock(&common->mutex) == 0);
    }
    if (rank == 0) { /* nobody says anything */
        const struct timespec until = in_ms(CLOCK_REALTIME, 30);
        const double begin = seconds();
        CHECK(pthread_mutex_lock(&common->mutex) == 0);
        int error = 0;
        while (error == 0) {
            error = pthread_cond_timedwait(&common->condition, &common->mutex, &until);
        }
        CHECK(error == ETIMEDOUT && (seconds() - begin > 0.029 || size > 1));
        CHECK(pthread_mutex_unlock(&common->mutex) == 0);
    }
}

static void common_semaphore(struct Common* common) {
    if (rank == 0) {
        usleep(keep_us);
        for (int i = 1; i < size; ++i) {
            CHECK(sem_post(&common->semaphore) == 0);
        }
    } else {
        CHECK(sem_wait(&common->semaphore) == 0);
    }
}

static void common_barrier(struct Common* common) {
    for (int round = 0; round < 5; ++round) {
        if (rank == round % size) {
            usleep(keep_us / 2);
            ++common->inside;
        }
        const int result = pthread_barrier_wait(&common->barrier);
        CHECK(result == 0 || result == PTHREAD_BARRIER_SERIAL_THREAD);
        CHECK(common->inside == round + 1);
        pthread_barrier_wait(&common->barrier);
    }
}

/* In memory without a name, which nobody has to clear away. */
static struct Common* share(void) {
    char name[64];
    int file = -1;
    if (rank == 0) {
        file = (int)syscall(SYS_memfd_create, "locks", 0);
        CHECK(file >= 0 && ftruncate(file, sizeof(struct Common)) == 0);
        snprintf(name, sizeof name, "/proc/%d/task/%d/fd/%d", (int)getpid(),
                 (int)syscall(SYS_gettid), file);
    }
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (rank != 0) {
        file = open(name, O_RDWR);
        CHECK(file >= 0);
    }
    struct Common* common = mmap(NULL, sizeof *common, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    CHECK(common != MAP_FAILED);
    if (rank == 0) {
        pthread_mutexattr_t of_mutex;
        pthread_barrierattr_t of_barrier;
        pthread_condattr_t of_condition;
        pthread_mutexattr_init(&of_mutex);
        pthread_barrierattr_init(&of_barrier);
        pthread_condattr_init(&of_condition);
        pthread_mutexattr_setpshared(&of_mutex, PTHREAD_PROCESS_SHARED);
        pthread_barrierattr_setpshared(&of_barrier, PTHREAD_PROCESS_SHARED);
        pthread_condattr_setpshared(&of_condition, PTHREAD_PROCESS_SHARED);
        pthread_mutex_init(&common->mutex, &of_mutex);
        pthread_barrier_init(&common->barrier, &of_barrier, (unsigned)size);
        pthread_cond_init(&common->condition, &of_condition);
        sem_init(&common->semaphore, 1, 0);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    close(file);
    return common;
}

static void common_objects(void) {
    struct Common* common = share();
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
    common_semaphore(common);
    common_condition(common);
    MPI_Barrier(MPI_COMM_WORLD);
    common_barrier(common);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        CHECK(pthread_barrier_destroy(&common->barrier) == 0);
        CHECK(pthread_cond_destroy(&common->condition) == 0);
    }
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
    writers();
    priorities();
    handlers();
    once_only();
    barriers();
    common_objects();
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%.3f s\n", seconds() - begin);
    }
    MPI_Finalize();
    return all != 0;
}
