// Accesses of one thread, each kind in pages of its own, counted by the compiler's calls.
//     hooks_patterns [vectors|signals|libraries]

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "../counts/plain_patterns.h"

struct packed {
    char byte;
    long number;
} __attribute__((packed));

static void unaligned(void) {
    char* pages = new_pages(2);
    volatile struct packed* over = (volatile struct packed*)(pages + page_bytes - 5);
    for (int turn = 0; turn < 10; ++turn) {
        over->number = turn; // four bytes in each page
    }
    expect(pages, 0, 0, 10, 0, 40);
    expect(pages + page_bytes, 0, 0, 10, 0, 40);
    expect_first(pages + page_bytes, 0, 1);
}

#define CHANGES(type, at)                                                                          \
    do {                                                                                           \
        _Atomic type* place = (_Atomic type*)(at);                                                 \
        type expected = 3;                                                                         \
        atomic_store(place, 1);                                                                    \
        atomic_store_explicit(place, 1, memory_order_release);                                     \
        good = good && atomic_fetch_add(place, 2) == 1;                                            \
        good = good && atomic_compare_exchange_strong(place, &expected, 12);                       \
        expected = 5;                                                                              \
        good = good && !atomic_compare_exchange_strong(place, &expected, 9) && expected == 12;     \
        good = good && atomic_exchange(place, 7) == 12 && atomic_fetch_sub(place, 2) == 7;         \
        good = good && atomic_fetch_or(place, 8) == 5 && atomic_fetch_and(place, 12) == 13;        \
        good = good && atomic_fetch_xor(place, 1) == 12 && atomic_load(place) == 13;               \
        good = good && atomic_load_explicit(place, memory_order_relaxed) == 13;                    \
    } while (0)

// Two stores, two loads and eight operations that do both. The results are checked, too.
static void atomics(void) {
    char* pages = new_pages(4);
    int good = 1;
    CHANGES(char, pages);
    CHANGES(short, pages + page_bytes);
    CHANGES(int, pages + 2 * page_bytes);
    CHANGES(long, pages + 3 * page_bytes);
    if (!good) {
        abort();
    }
    for (int page = 0; page < 4; ++page) {
        const unsigned long bytes = 10UL << page;
        expect(pages + page * page_bytes, 0, 10, 10, bytes, bytes);
    }
}

struct large {
    char bytes[3 * page_bytes];
};

// Copies count 64 bytes at a time.
static void copies(void) {
    char* from = new_pages(3);
    char* to = new_pages(3);
    volatile size_t two_pages = 2 * page_bytes; // which the compiler does not know
    memset(from, 1, two_pages);
    memcpy(to, from, two_pages);
    memmove(to + page_bytes, to, page_bytes);
    expect(from, 0, 64, 64, 4096, 4096);
    expect(from + page_bytes, 0, 64, 64, 4096, 4096);
    expect(to, 0, 64, 64, 4096, 4096);
    expect_first(from, 0, 1);
    expect_first(to + page_bytes, 0, 1);
    if (to[2 * page_bytes - 1] != 1) { // in the second page
        abort();
    }
    expect(to + page_bytes, 0, 1, 128, 1, 8192);
    // A structure that is copied as a whole counts once, whatever code copies it.
    struct large* one = new_pages(3);
    struct large* other = new_pages(3);
    *(volatile struct large*)other = *(volatile struct large*)one;
    for (int page = 0; page < 3; ++page) {
        expect((char*)one + page * page_bytes, 0, 64, 0, 4096, 0);
        expect((char*)other + page * page_bytes, 0, 0, 64, 0, 4096);
    }
}

__attribute__((noinline)) static void triad(double* restrict to, const double* restrict left,
                                            const double* restrict right, int count) {
    for (int index = 0; index < count; ++index) {
        to[index] = left[index] + 3 * right[index];
    }
}

// The bytes are the same, however wide the instructions are.
static void vectors(void) {
    double* arrays = new_pages(12);
    for (int turn = 0; turn < 3; ++turn) {
        triad(arrays, arrays + 2048, arrays + 4096, 2048);
    }
    for (int page = 0; page < 4; ++page) {
        expect_bytes(arrays + 512 * page, 0, 0, 3 * 4096);
        expect_bytes(arrays + 512 * (page + 4), 0, 3 * 4096, 0);
        expect_bytes(arrays + 512 * (page + 8), 0, 3 * 4096, 0);
        expect_first(arrays + 512 * page, 0, 1);
        expect_first(arrays + 512 * (page + 4), 0, 0);
    }
}

static volatile char* handled;
static volatile long times_handled;

static void handle(int number) {
    (void)number;
    for (int page = 0; page < 64; ++page) {
        handled[page * page_bytes] = 1;
    }
    ++times_handled;
}

// A handler's accesses count, except those in the middle of an event, which are reported as missed.
static void signals(void) {
    handled = new_pages(64);
    volatile char* pages = new_pages(1000);
    struct sigaction action = {0};
    struct sigaction before;
    action.sa_handler = handle;
    if (sigaction(SIGALRM, &action, &before) != 0 || before.sa_handler != SIG_DFL) {
        abort();
    }
    struct itimerval pause = {{0, 50}, {0, 50}};
    setitimer(ITIMER_REAL, &pause, NULL);
    long turns = 0;
    while (times_handled < 2000) {
        for (int page = 0; page < 1000; ++page) {
            pages[page * page_bytes] = 1;
        }
        ++turns;
    }
    pause = (struct itimerval){{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &pause, NULL);
    expect(pages + 7 * page_bytes, 0, 0, (unsigned long)turns, 0, (unsigned long)turns);
    printf("handled %lx %ld\n", (unsigned long)(uintptr_t)handled, times_handled);
}

int main(int count, char** words) {
    setvbuf(stdout, NULL, _IOFBF, 1 << 16);
    const char* const what = count > 1 ? words[1] : "";
    if (strcmp(what, "vectors") == 0) {
        vectors();
    } else if (strcmp(what, "signals") == 0) {
        signals();
    } else {
        strides();
        statics();
        stack();
        unaligned();
        atomics();
        copies();
    }
    return 0;
}
