// Loops of one block, whose turns are counted together: of all lengths, upwards and downwards, with
// each condition, with flags and registers that the program needs before and behind them.
//     counts_loops [fault]    fault: the last turn writes where there is no memory

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "expectation.h"

static char* new_pages(long pages) {
    char* const made = mmap(NULL, (size_t)(pages * page_bytes), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (made == MAP_FAILED) {
        abort();
    }
    return made;
}

// Enough turns for DynamoRIO to make a trace of the loop.
enum { often = 200 };

static void lengths(void) {
    char* const pages = new_pages(4);
    unsigned long expected[4] = {0};
    for (int repeat = 0; repeat < often; ++repeat) {
        for (long begin = 0, turns = 1; turns < 1500; begin += 24, turns += 1 + turns / 3) {
            const char* at = pages + begin;
            long left = turns;
            __asm__ volatile("1: mov (%0), %%rax\n"
                             "add $8, %0\n"
                             "sub $1, %1\n"
                             "jne 1b\n"
                             : "+r"(at), "+r"(left)
                             :
                             : "rax", "cc", "memory");
            for (long turn = 0; turn < turns; ++turn) {
                ++expected[(begin + 8 * turn) / page_bytes];
            }
        }
    }
    for (int page = 0; page < 4; ++page) {
        expect(pages + page * page_bytes, 0, expected[page], 0, 8 * expected[page], 0);
        if (expected[page] != 0) {
            expect_first(pages + page * page_bytes, 0, 0);
        }
    }
}

// Addresses that move by 3 or 5 bytes sometimes lie in two pages.
static void crossings(void) {
    char* const pages = new_pages(3);
    unsigned long accesses[3] = {0};
    unsigned long bytes[3] = {0};
    for (int repeat = 0; repeat < often; ++repeat) {
        for (int down = 0; down < 2; ++down) {
            char* at = down ? pages + 2 * page_bytes + 100 : pages + 50;
            const long step = down ? -5 : 3;
            long turns = 1600;
            for (long turn = 0; turn < turns; ++turn) {
                const long place = at - pages + turn * step;
                const long first = place / page_bytes;
                const long last = (place + 7) / page_bytes;
                ++accesses[first];
                bytes[first] += (unsigned long)(first == last ? 8 : (last * page_bytes - place));
                if (first != last) {
                    ++accesses[last];
                    bytes[last] += (unsigned long)(place + 8 - last * page_bytes);
                }
            }
            if (down) {
                __asm__ volatile("1: mov %%rax, (%0)\n"
                                 "lea -5(%0), %0\n"
                                 "dec %1\n"
                                 "jg 1b\n"
                                 : "+r"(at), "+r"(turns)
                                 :
                                 : "cc", "memory");
            } else {
                __asm__ volatile("xor %%ecx, %%ecx\n"
                                 "1: mov %%rax, (%0)\n"
                                 "add $3, %0\n"
                                 "inc %%rcx\n"
                                 "cmp %1, %%rcx\n"
                                 "jb 1b\n"
                                 : "+r"(at)
                                 : "r"(turns)
                                 : "rcx", "cc", "memory");
            }
        }
    }
    for (int page = 0; page < 3; ++page) {
        expect(pages + page * page_bytes, 0, 0, accesses[page], 0, bytes[page]);
    }
    expect_first(pages, 0, 1);
}

// A loop with as many turns as the condition says, and the flags behind it.
#define LOOP(condition, behind, begin, by, end)                                                    \
    do {                                                                                           \
        char* const page = new_pages(1);                                                           \
        long left = 0;                                                                             \
        unsigned long turns = 0;                                                                   \
        for (int repeat = 0; repeat < often; ++repeat) {                                           \
            unsigned char was = 0;                                                                 \
            long number = (begin);                                                                 \
            long done = 0;                                                                         \
            __asm__ volatile("1: addl $1, 8(%3)\n"                                                 \
                             "add $1, %1\n"                                                        \
                             "add %4, %0\n"                                                        \
                             "cmp %5, %0\n"                                                        \
                             "j" condition " 1b\n"                                                 \
                             "set" behind " %2\n"                                                  \
                             : "+r"(number), "+r"(done), "=&q"(was)                                \
                             : "r"(page), "i"(by), "i"(end)                                        \
                             : "cc", "memory");                                                    \
            left += was;                                                                           \
            turns += (unsigned long)done;                                                          \
        }                                                                                          \
        if (left != often || *(int*)(page + 8) != (int)turns || turns < often * 20) {              \
            abort();                                                                               \
        }                                                                                          \
        expect(page, 0, turns + 1, turns, 4 * turns + 4, 4 * turns);                               \
    } while (0)

static void conditions(void) {
    LOOP("ne", "e", 0, 1, 100);
    LOOP("b", "ae", 0, 1, 100);
    LOOP("be", "a", 0, 1, 100);
    LOOP("a", "be", 100, -1, 10);
    LOOP("ae", "b", 100, -1, 10);
    LOOP("l", "ge", -50, 1, 20);
    LOOP("le", "g", -50, 1, 20);
    LOOP("g", "le", 50, -1, -20);
    LOOP("ge", "l", 50, -1, -20);
    LOOP("s", "ns", -50, 1, 0);
    LOOP("ns", "s", 50, -1, 0);
}

// The carry flag must survive a loop that doesn't change it.
static void carry(void) {
    char* const page = new_pages(1);
    for (int repeat = 0; repeat < often; ++repeat) {
        const char* at = page;
        long turns = 500;
        unsigned char carries = 0;
        __asm__ volatile("bt $0, %3\n"
                         "1: mov (%0), %%rax\n"
                         "lea 8(%0), %0\n"
                         "dec %1\n"
                         "jne 1b\n"
                         "setc %2\n"
                         : "+r"(at), "+r"(turns), "=&q"(carries)
                         : "r"((long)repeat)
                         : "rax", "cc", "memory");
        if (carries != (repeat & 1)) {
            abort();
        }
    }
    expect(page, 0, 500 * often, 0, 8 * 500 * often, 0);
}

// Scaled indices, indices that move before their use, and several sites.
static void indices(void) {
    char* const from = new_pages(2);
    char* const to = new_pages(4);
    for (int repeat = 0; repeat < often; ++repeat) {
        long index = 0;
        __asm__ volatile("1: movups 8(%1,%0,4), %%xmm0\n"
                         "add $4, %0\n"
                         "movups %%xmm0, -32(%2,%0,8)\n"
                         "addl $0, -4(%1,%0,4)\n"
                         "cmp $1024, %0\n"
                         "jne 1b\n"
                         : "+r"(index)
                         : "r"(from), "r"(to)
                         : "xmm0", "cc", "memory");
    }
    // 256 turns of 16 bytes: the last reads 8 bytes beyond, and one before lies in both pages.
    const unsigned long turns = 256;
    expect(from, 0, (2 * turns) * often, turns * often, (16 * turns - 8 + 4 * turns) * often,
           4 * turns * often);
    expect(from + page_bytes, 0, often, 0, 8 * often, 0);
    for (int page = 0; page < 2; ++page) {
        expect(to + page * page_bytes, 0, 0, 128 * often, 0, 2048 * often);
        expect_first(to + page * page_bytes, 0, 1);
    }
}

static char* behind;
static char* before;

// One run of the loop in a thread of its own, of `turns` turns.
struct run {
    char* place;
    long turns;
    volatile long done;  // the loop is
    volatile long ended; // the memory's life
};

static void* run_once(void* argument) {
    struct run* const run = argument;
    const char* from = run->place;
    char* to = run->place + 1000;
    char* other = run->place + 2008;
    long left = run->turns;
    // The wait is no loop of one block and no system call, as either would count all turns.
    __asm__ volatile("1: mov (%0), %%rax\n"
                     "mov %%rax, (%1)\n"
                     "mov %%rax, (%2)\n"
                     "add $256, %0\n"
                     "add $256, %1\n"
                     "add $256, %2\n"
                     "sub $1, %3\n"
                     "jne 1b\n"
                     "movq $1, (%4)\n"
                     "2: cmpq $0, (%5)\n"
                     "jne 3f\n"
                     "pause\n"
                     "jmp 2b\n"
                     "3:\n"
                     : "+r"(from), "+r"(to), "+r"(other), "+r"(left)
                     : "r"(&run->done), "r"(&run->ended)
                     : "rax", "cc", "memory");
    return NULL;
}

// The loop leaves units so soon that each turn is counted alone once the loop is known. Another
// thread ends the memory's life while the thread of the loop does something else.
static void short_runs(void) {
    enum { pages = 64, per_page = page_bytes / 256, lives = 8 };
    char* const place = new_pages(pages);
    for (int life = 0; life < lives; ++life) {
        const long most = (pages - 1L) * per_page;
        // The loop ends some turns after turn 252, with which DynamoRIO makes a trace.
        struct run run = {place, life == lives - 1 ? most : 300 + 6 * life, 0, 0};
        pthread_t thread;
        if (pthread_create(&thread, NULL, run_once, &run) != 0) {
            abort();
        }
        while (run.done == 0) {
            sched_yield();
        }
        const long last = run.turns / per_page;
        for (long page = 1; page < last; ++page) {
            expect_in(place, life, place + page * page_bytes, life + 1, per_page, 2 * per_page,
                      8 * per_page, 16 * per_page);
        }
        munmap(place, (size_t)pages * page_bytes);
        if (mmap(place, (size_t)pages * page_bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED) {
            abort();
        }
        run.ended = 1;
        pthread_join(thread, NULL);
    }
}

static void beyond(int signal) {
    (void)signal;
    // The memory exists as far as the loop has come.
    expect(before, 0, 0, 512, 0, 4096);
    expect_first(before, 0, 1);
    fflush(stdout);
    _exit(0);
}

static void fault(void) {
    before = new_pages(2);
    behind = before + page_bytes;
    signal(SIGSEGV, beyond);
    munmap(behind, page_bytes);
    char* at = before;
    long turns = 10000;
    __asm__ volatile("1: movq $1, (%0)\n"
                     "add $8, %0\n"
                     "sub $1, %1\n"
                     "jne 1b\n"
                     : "+r"(at), "+r"(turns)
                     :
                     : "cc", "memory");
}

int main(int count, char** words) {
    if (count > 1 && strcmp(words[1], "fault") == 0) {
        fault();
    }
    lengths();
    crossings();
    conditions();
    carry();
    indices();
    short_runs();
    return 0;
}
