// Ways to end, to leave signal handlers, and accesses that lie across two units.
//     hooks_ways first | quick | overflow | execveat | signal N
//     hooks_ways jumps     a handler that leaves by siglongjmp, often; then 1,000 writes
//     hooks_ways unaligned 16 bytes at a time, aligned to 8

#define _GNU_SOURCE
#include <complex.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
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

// Pages that nobody has touched: most of the time is the recorder's.
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
    // Its value lies across the end of the first page.
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

int main(int count, char** words) {
    const char* const what = count > 1 ? words[1] : "";
    volatile char* const page = aligned_alloc(page_bytes, 2 * page_bytes);
    if (strcmp(what, "unaligned") == 0) {
        unaligned(page);
    } else if (strcmp(what, "jumps") == 0) {
        jumps();
    }
    for (int time = 0; time < 1000 && strcmp(what, "unaligned") != 0; ++time) {
        *page = 1;
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
