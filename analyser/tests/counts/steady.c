/* Threads that compute without system calls, for as long as the test wants: what is saved of them
 * when the process is killed, and that saving doesn't disturb what they do.
 *   steady alone | threads | idle   print pages, write each 1,000 times, and compute for ever
 *   steady spawn                    the same, after a program has been run by posix_spawn
 *   steady timer                    has a timer of its own, of the time that it computes
 *   steady exec N                   becomes itself N times while threads compute
 *   steady churn N                  the same while threads get and free memory, and begin and end
 *   steady fork                     forks 20 times while threads compute
 *   steady spawns N                 while threads begin and end: runs N programs, and first many
 *                                   that are not there, by exec and by posix_spawn
 *   steady ignored N                reads from a pipe while threads send it N signals each that it
 *                                   ignores: no call is interrupted, and what it has on its stack
 *                                   stays
 *   steady ends                     threads come and end, one way or another, while others compute
 *   steady abort                    a fatal signal meanwhile
 *   steady cold N                   writes 20 pages, gets memory and frees it, N times
 *   steady faults N                 writes 20 pages, has a signal that it handles, N times
 *   steady blocks N M               gets memory and frees it, N times, then becomes `blocks M 0`
 *   steady taken N F                the same, and then F has the number of the standard error
 *   steady gone N PAGES             writes PAGES pages twice and unmaps them, N times, each at an
 *                                   address of its own; says where
 *   steady hot SECONDS              writes 12,000 pages once, the last 200 of them 500 times more,
 *                                   and all for so long; says where and how often
 *   steady vectors                  sums in vector registers, with rounding of its own
 * Exits with 1 if anything is not as it was. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <fenv.h>
#include <immintrin.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { page_bytes = 4096, threads = 3, writes = 1000 };

static void* pages(size_t number) {
    void* const memory =
        mmap(NULL, number * page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        exit(1);
    }
    return memory;
}

__attribute__((noinline)) static void write_page(volatile long* page) {
    for (int turn = 0; turn < writes; ++turn) {
        page[turn % 512] = turn;
    }
}

/* Branches, strides, and a division, so that it is no single loop. */
__attribute__((noinline)) static long compute(volatile long* memory, long turns) {
    long sum = 0;
    for (long turn = 0; turn < turns; ++turn) {
        memory[turn % (64 * 512)] += turn;
        sum += turn % 7 == 3 ? memory[turn * 17 % (64 * 512)] : turn;
    }
    return sum;
}

static double seconds(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void* begun(void* page) {
    volatile long* const memory = pages(64);
    write_page(page);
    compute(memory, 1L << 62);
    return NULL;
}

static void* does_nothing(void* unused) {
    return unused;
}

/* While another thread executes a program, or tries to, Linux has no new ones (EAGAIN). */
static void start_and_join(void) {
    pthread_t made;
    int error;
    while ((error = pthread_create(&made, NULL, does_nothing, NULL)) == EAGAIN) {
        sched_yield();
    }
    if (error != 0) {
        fprintf(stderr, "pthread_create: %s\n", strerror(error));
        exit(1);
    }
    pthread_join(made, NULL);
}

static void start(pthread_t* made, int number, void* (*function)(void*), char* first) {
    for (int index = 0; index < number; ++index) {
        const int error = pthread_create(&made[index], NULL, function, first + index * page_bytes);
        if (error != 0) {
            fprintf(stderr, "pthread_create: %s\n", strerror(error));
            exit(1);
        }
    }
}

static void alone(int others, int idle) {
    char* const first = pages(threads + 1);
    pthread_t made[threads];
    for (int index = 0; index <= others; ++index) {
        printf("page %p\n", (void*)(first + index * page_bytes));
    }
    fflush(stdout);
    start(made, others, begun, first + page_bytes);
    if (idle) { /* and the others compute */
        write_page((volatile long*)first);
        pthread_join(made[0], NULL);
    }
    begun(first);
}

static void spawn(void) {
    char* const words[] = {"true", NULL};
    pid_t child;
    int status = 1;
    if (posix_spawnp(&child, "true", NULL, NULL, words, environ) != 0 ||
        waitpid(child, &status, 0) != child || status != 0) {
        exit(1);
    }
    alone(0, 0);
}

static volatile sig_atomic_t ticks;

static void tick(int number) {
    (void)number;
    ++ticks;
}

/* As often as its time goes by, whatever else does. */
static void timer(void) {
    const struct itimerval every = {{0, 20000}, {0, 20000}};
    signal(SIGVTALRM, tick);
    setitimer(ITIMER_VIRTUAL, &every, NULL);
    volatile long* const memory = pages(64);
    for (const double begin = seconds(CLOCK_MONOTONIC); seconds(CLOCK_MONOTONIC) < begin + 3;) {
        compute(memory, 10000000);
    }
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    const double expected =
        ((double)used.ru_utime.tv_sec + 1e-6 * (double)used.ru_utime.tv_usec) / 0.02;
    printf("%d ticks of %.0f\n", (int)ticks, expected);
    if (ticks < expected / 2 || ticks > expected * 1.1 + 2) {
        exit(1);
    }
}

/* What is counted in memory is written when that is freed, and when a thread ends. */
static void* churns(void* unused) {
    (void)unused;
    for (;;) {
        volatile char* const block = malloc(64 * page_bytes);
        for (int page = 0; page < 64; ++page) {
            block[page * page_bytes] = 1;
        }
        free((void*)block);
        start_and_join();
    }
    return NULL;
}

static void execute(char* self, const char* how, int left) {
    char* const first = pages(threads);
    pthread_t made[threads];
    if (left == 0) {
        return;
    }
    start(made, threads, strcmp(how, "churn") == 0 ? churns : begun, first);
    volatile long* const memory = pages(64);
    compute(memory, 20000000);
    if (execl("/nonexistent/program", "program", NULL) == 0) {
        exit(1);
    }
    compute(memory, 5000000);
    char text[16];
    snprintf(text, sizeof text, "%d", left - 1);
    execl(self, self, how, text, NULL);
    perror("execl");
    exit(1);
}

static void* begins_threads(void* unused) {
    for (;;) {
        start_and_join();
    }
    return unused;
}

static double gigabytes_of_addresses(void) {
    double of_pages = 0;
    FILE* const file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%lf", &of_pages) != 1) {
        exit(1);
    }
    fclose(file);
    return of_pages * (double)page_bytes / 1e9;
}

static void begin_programs(int number) {
    char* const words[] = {"true", NULL};
    char* const none[] = {"nonexistent-program", NULL};
    pthread_t made[threads];
    start(made, threads, begins_threads, NULL);
    pid_t child;
    const double before = gigabytes_of_addresses();
    for (int turn = 0; turn < 300; ++turn) {
        if (execl("/nonexistent/program", "program", NULL) == 0 ||
            posix_spawnp(&child, none[0], NULL, NULL, none, environ) == 0) {
            exit(1);
        }
    }
    /* Whatever is kept of a child goes when it has failed; of a few threads it may be there. */
    const double more = gigabytes_of_addresses() - before;
    if (more > 100) {
        fprintf(stderr, "%.0f GB more of addresses\n", more);
        exit(1);
    }
    for (int turn = 0; turn < number; ++turn) {
        int status = 1;
        if (posix_spawnp(&child, words[0], NULL, NULL, words, environ) != 0 ||
            waitpid(child, &status, 0) != child || status != 0) {
            exit(1);
        }
    }
}

static int ends_of_pipe[2];
static pthread_t reader;
static long signals_left;

static void* fills_pipe(void* unused) {
    const char byte = 1;
    for (;;) {
        if (write(ends_of_pipe[1], &byte, 1) != 1) {
            exit(1);
        }
    }
    return unused;
}

static void* sends(void* number) {
    static const int ignored[threads - 1] = {SIGCHLD, SIGURG};
    const int signal = ignored[(size_t)number / page_bytes];
    while (__atomic_fetch_sub(&signals_left, 1, __ATOMIC_RELAXED) > 0) {
        pthread_kill(reader, signal);
        sched_yield();
    }
    return NULL;
}

__attribute__((noinline)) static void read_bytes(int levels, int value) {
    volatile int kept[8];
    char byte;
    for (int index = 0; index < 8; ++index) {
        kept[index] = value + index;
    }
    if (read(ends_of_pipe[0], &byte, 1) != 1) {
        perror("read");
        exit(1);
    }
    if (levels > 0) {
        read_bytes(levels - 1, value + 1);
    }
    for (int index = 0; index < 8; ++index) {
        if (kept[index] != value + index) {
            exit(1);
        }
    }
}

static void read_meanwhile(long signals) {
    pthread_t made[threads];
    reader = pthread_self();
    signals_left = signals * (threads - 1);
    if (pipe(ends_of_pipe) != 0) {
        exit(1);
    }
    start(made, 1, fills_pipe, NULL);
    start(made + 1, threads - 1, sends, NULL);
    for (int turn = 0; __atomic_load_n(&signals_left, __ATOMIC_RELAXED) > 0; ++turn) {
        read_bytes(5, turn);
    }
}

static void get_blocks(char* self, const char* turns, char* then) {
    for (int left = atoi(turns); left > 0; --left) {
        volatile char* const block = malloc(page_bytes);
        *block = 1;
        free((void*)block);
    }
    if (atoi(then) != 0) {
        if (execl("/nonexistent/program", "program", NULL) == 0) {
            exit(1);
        }
        execl(self, self, "blocks", then, "0", NULL);
        exit(1);
    }
}

static void fork_often(void) {
    char* const first = pages(threads);
    pthread_t made[threads];
    start(made, threads, begun, first);
    volatile long* const memory = pages(64);
    for (int turn = 0; turn < 20; ++turn) {
        const pid_t child = fork();
        if (child == 0) {
            compute(memory, 3000000);
            _exit(turn);
        }
        int status = 0;
        compute(memory, 1000000);
        if (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != turn) {
            exit(1);
        }
    }
}

static void* ends(void* page) {
    volatile long* const memory = pages(64);
    write_page(page);
    compute(memory, 200000);
    munmap((void*)memory, 64 * page_bytes);
    if ((((size_t)page) / page_bytes) % 2 == 0) {
        pthread_exit(NULL);
    }
    return NULL;
}

static void end_often(void) {
    char* const first = pages(2 * threads);
    pthread_t computing[threads];
    start(computing, threads, begun, first);
    for (int turn = 0; turn < 100; ++turn) {
        pthread_t made[threads];
        start(made, threads, ends, first + threads * page_bytes);
        for (int index = 0; index < threads; ++index) {
            pthread_join(made[index], NULL);
        }
    }
    pthread_exit(NULL); /* of the first thread; another ends the process */
}

static void* end_process(void* unused) {
    (void)unused;
    volatile long* const memory = pages(64);
    compute(memory, 30000000);
    exit(0);
}

static void abort_soon(void) {
    char* const first = pages(threads);
    pthread_t made[threads];
    start(made, threads, begun, first);
    compute(pages(64), 50000000);
    abort();
}

/* 1 / 3 rounded down and up differ, and a sum stays in sixteen vectors all the time. */
__attribute__((noinline, target("avx"))) static int sums(volatile long* memory) {
    __m256d sum[8];
    for (int index = 0; index < 8; ++index) {
        sum[index] = _mm256_setzero_pd();
    }
    const __m256d one = _mm256_set1_pd(1);
    for (long turn = 0; turn < 40000000; ++turn) {
        memory[turn % (64 * 512)] += turn;
        for (int index = 0; index < 8; ++index) {
            sum[index] = _mm256_add_pd(sum[index], one);
        }
    }
    for (int index = 0; index < 8; ++index) {
        double parts[4];
        _mm256_storeu_pd(parts, sum[index]);
        for (int part = 0; part < 4; ++part) {
            if (parts[part] != 40000000) {
                return 0;
            }
        }
    }
    return 1;
}

static void vectors(void) {
    fesetround(FE_UPWARD);
    volatile double third = 1;
    third /= 3;
    if (!__builtin_cpu_supports("avx")) {
        exit(77);
    }
    if (!sums(pages(64))) {
        exit(1);
    }
    volatile double again = 1;
    again /= 3;
    if (third != again || fegetround() != FE_UPWARD) {
        exit(1);
    }
}

static char* protected_page;

static void allow(int number) {
    (void)number;
    mprotect(protected_page, page_bytes, PROT_READ | PROT_WRITE);
}

static void cold(long turns, int faults) {
    enum { often = 20, each = 50, blocks = 64, others = 1000 };
    char* const first = pages(often);
    char* const other = pages(others);
    signal(SIGSEGV, allow);
    for (long turn = 0; turn < turns; ++turn) {
        for (int write = 0; write < often * each; ++write) {
            *(volatile long*)(first + write % often * page_bytes) = turn;
        }
        if (faults) {
            for (int page = 0; page < others; ++page) {
                *(volatile char*)(other + page * page_bytes) = 1;
            }
            protected_page = other + turn % others * page_bytes;
            mprotect(protected_page, page_bytes, PROT_READ);
            *(volatile char*)protected_page = 2;
        } else {
            volatile char* const block = malloc((size_t)blocks * page_bytes);
            for (int page = 0; page < blocks; ++page) {
                block[page * page_bytes] = 1;
            }
            free((void*)block);
        }
    }
    printf("page %p %ld\n", (void*)first, turns * each);
}

static void gone(long turns, size_t number) {
    const size_t bytes = number * page_bytes;
    char* const all = mmap(NULL, (size_t)turns * bytes, PROT_NONE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED) {
        exit(1);
    }
    for (long turn = 0; turn < turns; ++turn) {
        char* const block = all + (size_t)turn * bytes;
        if (mmap(block, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                 0) != block) {
            exit(1);
        }
        for (size_t page = 0; page < number; ++page) {
            *(volatile long*)(block + page * page_bytes) = 1;
            *(volatile long*)(block + page * page_bytes) = 2;
        }
        munmap(block, bytes);
    }
    printf("page %p\n", (void*)all);
}

/* No system call: the clock is read without. */
static void hot(double how_long) {
    enum { all = 12000, often = 200, more = 500 };
    char* const first = pages(all);
    for (int page = 0; page < all; ++page) {
        *(volatile long*)(first + page * page_bytes) = page;
    }
    for (int turn = 0; turn < more; ++turn) {
        for (int page = all - often; page < all; ++page) {
            *(volatile long*)(first + page * page_bytes) = turn;
        }
    }
    int turns = 0;
    for (const double end = seconds(CLOCK_MONOTONIC) + how_long; seconds(CLOCK_MONOTONIC) < end;
         ++turns) {
        for (int page = 0; page < all; ++page) {
            *(volatile long*)(first + page * page_bytes) = turns;
        }
    }
    printf("page %p %d\n", (void*)first, turns);
}

int main(int count, char** words) {
    const char* const what = count > 1 ? words[1] : "";
    if (strcmp(what, "alone") == 0) {
        alone(0, 0);
    } else if (strcmp(what, "threads") == 0) {
        alone(threads, 0);
    } else if (strcmp(what, "idle") == 0) {
        alone(threads, 1);
    } else if (strcmp(what, "spawn") == 0) {
        spawn();
    } else if (strcmp(what, "timer") == 0) {
        timer();
    } else if (strcmp(what, "exec") == 0 || strcmp(what, "churn") == 0) {
        execute(words[0], what, atoi(words[2]));
    } else if (strcmp(what, "spawns") == 0) {
        begin_programs(atoi(words[2]));
    } else if (strcmp(what, "ignored") == 0) {
        read_meanwhile(atol(words[2]));
    } else if (strcmp(what, "fork") == 0) {
        fork_often();
    } else if (strcmp(what, "ends") == 0) {
        pthread_t last;
        if (pthread_create(&last, NULL, end_process, NULL) != 0) {
            return 1;
        }
        end_often();
    } else if (strcmp(what, "abort") == 0) {
        abort_soon();
    } else if (strcmp(what, "cold") == 0 || strcmp(what, "faults") == 0) {
        cold(atol(words[2]), strcmp(what, "faults") == 0);
    } else if (strcmp(what, "blocks") == 0) {
        get_blocks(words[0], words[2], words[3]);
    } else if (strcmp(what, "taken") == 0) {
        get_blocks(words[0], words[2], "0");
        close(2);
        return open(words[3], O_WRONLY | O_CREAT, 0666) != 2;
    } else if (strcmp(what, "gone") == 0) {
        gone(atol(words[2]), (size_t)atol(words[3]));
    } else if (strcmp(what, "hot") == 0) {
        hot(atof(words[2]));
    } else if (strcmp(what, "vectors") == 0) {
        vectors();
    } else {
        return 2;
    }
    return 0;
}
