// Accesses of several threads to the same memory.
//     counts_threads             shared pages, and each thread's own
//     counts_threads example     the pages A and B of FACTS: who touches first, who how often
//     counts_threads transfers   2,000 lines that one thread writes, and others read and write
//     counts_threads bytes       a line of which each writes its own, one where two meet
//     counts_threads lines       false sharing: neighbours in one page, in lines of their own

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "expectation.h"

enum { threads = 3, lines = 2000, turns_of_transfers = 8 };

static volatile char* pages;
static const char* mode = "";
static pthread_barrier_t barrier;

static void access_times(volatile char* at, long times) {
    for (long time = 0; time < times; ++time) {
        *at = 1;
    }
}

static void turn_of(int turn, int self, int who, volatile char* at, int write) {
    if (self == who) {
        for (int line = 0; line < lines; ++line) {
            if (write) {
                at[64 * line] = (char)turn;
            } else {
                (void)at[64 * line];
            }
        }
    }
    pthread_barrier_wait(&barrier);
}

// Work of threads 1, 2, 3 of the process, which begin one after the other and take turns.
static void* work(void* argument) {
    const int self = (int)(intptr_t)argument;
    pthread_barrier_wait(&barrier);
    if (strcmp(mode, "transfers") == 0) {
        static const int turns[turns_of_transfers][2] = {{0, 1}, {1, 0}, {1, 0}, {0, 0},
                                                         {2, 1}, {1, 0}, {0, 1}, {0, 1}};
        for (int turn = 0; turn < turns_of_transfers; ++turn) {
            turn_of(turn, self, turns[turn][0], pages, turns[turn][1]);
        }
    } else if (strcmp(mode, "example") == 0) {
        static const long accesses[2][threads] = {{20, 5, 10}, {0, 1, 10}};
        static const int first[2] = {0, 1};
        for (int page = 0; page < 2; ++page) {
            for (int turn = 0; turn < threads; ++turn) {
                const int who = (first[page] + turn) % threads;
                if (who == self) {
                    access_times(pages + page * page_bytes, accesses[page][self]);
                }
                pthread_barrier_wait(&barrier);
            }
        }
    } else if (strcmp(mode, "bytes") == 0) {
        for (int time = 0; time < 1000; ++time) {
            ((volatile long*)pages)[self] = time;                  // eight bytes each
            ((volatile int*)pages)[16 + (self == 2 ? 5 : 0)] += 1; // in the next line
        }
    } else if (strcmp(mode, "lines") == 0) {
        access_times(pages + 64 * self, 1000 * (self + 1));
    } else {
        access_times(pages + self, 10000 + self);                    // shared
        access_times(pages + (1 + self) * page_bytes, 20000 + self); // its own
        for (int time = 0; time < 300; ++time) {
            (void)pages[(1 + threads) * page_bytes]; // read by all
        }
    }
    pthread_barrier_wait(&barrier);
    return NULL;
}

int main(int count, char** words) {
    mode = count > 1 ? words[1] : "";
    pages = aligned_alloc(page_bytes, 64 * page_bytes);
    if (*mode == 0) {
        pages[(1 + threads) * page_bytes] = 1;
    }
    pthread_t ids[threads];
    const int transfers = strcmp(mode, "transfers") == 0;
    pthread_barrier_init(&barrier, NULL, threads + 1);
    for (int thread = 0; thread < threads; ++thread) {
        pthread_create(&ids[thread], NULL, work, (void*)(intptr_t)thread);
        struct timespec moment = {0, 100000000}; // it gets its number when it starts
        nanosleep(&moment, NULL);
    }
    pthread_barrier_wait(&barrier);
    if (strcmp(mode, "example") == 0) {
        for (int turn = 0; turn < 2 * threads; ++turn) {
            pthread_barrier_wait(&barrier);
        }
    }
    for (int turn = 0; transfers && turn < turns_of_transfers; ++turn) {
        pthread_barrier_wait(&barrier);
    }
    pthread_barrier_wait(&barrier);
    for (int thread = 0; thread < threads; ++thread) {
        pthread_join(ids[thread], NULL);
    }
    const int line = strcmp(mode, "lines") == 0;
    for (int thread = 0; thread < threads && *mode == 0; ++thread) {
        const unsigned long number = (unsigned long)thread;
        expect(pages, thread + 1, 0, 10000 + number, 0, 10000 + number);
        expect(pages + (1 + thread) * page_bytes, thread + 1, 0, 20000 + number, 0, 20000 + number);
        expect_first(pages + (1 + thread) * page_bytes, thread + 1, 1);
        expect(pages + (1 + threads) * page_bytes, thread + 1, 300, 0, 300, 0);
    }
    if (*mode == 0) {
        expect_first(pages + (1 + threads) * page_bytes, 0, 1);
    }
    for (int thread = 0; thread < threads && line; ++thread) {
        const unsigned long times = 1000 * ((unsigned long)thread + 1);
        expect(pages + 64 * thread, thread + 1, 0, times, 0, times);
        expect_first(pages + 64 * thread, thread + 1, 1);
    }
    printf("pages %lx\n", (unsigned long)(uintptr_t)pages);
    return 0;
}
