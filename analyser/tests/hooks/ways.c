// Ways to end, to leave signal handlers, and accesses that lie across two units.
//     hooks_ways first | quick | overflow | execveat | signal N
//     hooks_ways jumps     a handler that leaves by siglongjmp, often; then 1,000 writes
//     hooks_ways full      no descriptor is left, all the time
//     hooks_ways closed F  all descriptors are closed, and many numbers are those of the file F
//     hooks_ways limit     files may have 16 KiB, and the signal for more waits
//     hooks_ways unaligned 16 bytes at a time, aligned to 8

#define _GNU_SOURCE
#include <complex.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "expectation.h"

int execveat(int, const char*, char* const*, char* const*, int);

static sigjmp_buf back;
static volatile long left;

static void leave(int number) {
    (void)number;
    ++left;
    siglongjmp(back, 1);
}

// The pages are untouched, so that the recorder takes most of the time.
static void jumps(void) {
    enum { wanted = 300 };
    static volatile long at;
    static volatile char* pages;
    const long count = 1L << 15;
    signal(SIGALRM, leave);
    struct itimerval often = {{0, 200}, {0, 200}};
    pages =
        mmap(NULL, count * page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (sigsetjmp(back, 1) == 0) {
        setitimer(ITIMER_REAL, &often, NULL);
    }
    while (left < wanted) {
        pages[at % count * page_bytes] = 1;
        at = at + 1;
    }
    memset(&often, 0, sizeof often);
    setitimer(ITIMER_REAL, &often, NULL);
}

struct Wide {
    double head;
    double complex value;
};

static double complex from = 1;

static void unaligned(volatile char* page) {
    // The value crosses the end of the first page.
    struct Wide* const wide = (struct Wide*)(page + page_bytes - 16);
    for (int time = 0; time < 50; ++time) {
        wide->value = from;
        __asm__ volatile("" ::: "memory");
    }
}

static int deeper(volatile char* above, int depth) {
    volatile char room[4096];
    room[0] = above[0];
    return depth == 0 ? 0 : deeper(room, depth + 1) + room[5];
}

static void take_descriptors(void) {
    const struct rlimit few = {500, 500};
    setrlimit(RLIMIT_NOFILE, &few);
    while (dup(1) >= 0) {
    }
}

static void change_descriptors(const char* path) {
    syscall(SYS_close_range, 3U, ~0U, 0U);
    const int file = open(path, O_RDWR | O_CREAT, 0600);
    for (int number = 400; number < 5000; ++number) {
        dup2(file, number);
    }
}

static void limit_files(void) {
    const struct rlimit small = {16384, 16384};
    setrlimit(RLIMIT_FSIZE, &small);
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, SIGXFSZ);
    sigprocmask(SIG_BLOCK, &one, NULL);
    volatile char* const pages =
        mmap(NULL, 4000 * page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (long at = 0; at < 4000; ++at) {
        pages[at * page_bytes] = 1;
    }
    usleep(300000); // it is saved meanwhile
    sigprocmask(SIG_UNBLOCK, &one, NULL);
}

int main(int count, char** words) {
    const char* const what = count > 1 ? words[1] : "";
    volatile char* const page = aligned_alloc(page_bytes, 2 * page_bytes);
    if (strcmp(what, "full") == 0) {
        take_descriptors();
    } else if (strcmp(what, "closed") == 0) {
        change_descriptors(words[2]);
    } else if (strcmp(what, "limit") == 0) {
        limit_files();
    }
    if (strcmp(what, "unaligned") == 0) {
        unaligned(page);
    } else if (strcmp(what, "jumps") == 0) {
        jumps();
    }
    for (int time = 0; time < 1000 && strcmp(what, "unaligned") != 0; ++time) {
        *page = 1;
    }
    if (strcmp(what, "full") == 0 || strcmp(what, "closed") == 0) {
        usleep(300000); // it is saved meanwhile
    }
    printf("page %lx\n", (unsigned long)(uintptr_t)page);
    fflush(stdout);
    if (strcmp(what, "first") == 0) {
        pthread_exit(NULL);
    } else if (strcmp(what, "quick") == 0) {
        quick_exit(3);
    } else if (strcmp(what, "overflow") == 0) {
        volatile char top = 1;
        return deeper(&top, 1);
    } else if (strcmp(what, "execveat") == 0) {
        char* const arguments[] = {(char*)"true", NULL};
        char* const environment[] = {NULL};
        execveat(-100, "/bin/true", arguments, environment, 0);
    } else if (strcmp(what, "signal") == 0) {
        raise(atoi(words[2]));
    }
    return 0;
}
