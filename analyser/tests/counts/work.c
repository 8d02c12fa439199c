// Work for seconds, of which mode sample sees parts: counts_work KIND
//
//     phases     a thread that computes in the cache and reads from memory by turns, in memory that
//                another has touched first, and says how often
//     rough      descriptors closed, signals all the time, system(), fork: all goes on
//     wait       works until it is killed, with system calls in between
//     fill       memory that functions of the C library touch first
//     rows       repeated instructions, few and long, among many others, and where blocks end
//     flags      accesses of all kinds with all flags, once each; 1: one changes what it must not
//     turns      loops of few instructions, of one turn and of many; a wrong sum is 1
//     threads    2,000 threads that do little, 8 at a time

#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "expectation.h"

enum { fill_bytes = 64 << 12 };
enum { small_pages = 16, line_bytes = 64, large_bytes = 64 << 20 };

static volatile char* mine;   // of small_pages, touched first by the thread itself
static volatile char* others; // the same, by the first thread
static volatile char* large;  // by the first thread

// Prints all accesses of the thread to the block, and which thread touched its pages first.
static void say(const char* name, volatile char* block, size_t bytes, unsigned long reads,
                unsigned long writes, int first) {
    printf("about %s %lx %zu %lu %lu %d\n", name, (unsigned long)(uintptr_t)block, bytes, reads,
           writes, first);
}

static void* phases(void* unused) {
    (void)unused;
    unsigned long small_writes = 0;
    unsigned long large_reads = 0;
    const size_t bytes = (size_t)small_pages * page_bytes;
    for (int turn = 0; turn < 60; ++turn) {
        for (int time = 0; time < 30; ++time) {
            for (size_t at = 0; at < bytes; at += 1) {
                mine[at] = 1;
                mine[at] = 2;
                mine[at] = 3;
                others[at] = 1;
            }
            small_writes += bytes;
        }
        for (size_t at = 0; at < large_bytes; at += line_bytes) {
            (void)large[at];
        }
        large_reads += large_bytes / line_bytes;
    }
    say("mine", mine, bytes, 0, 3 * small_writes, 1);
    say("others", others, bytes, 0, small_writes, 0);
    say("large", large, large_bytes, large_reads, 0, 0);
    return NULL;
}

static volatile sig_atomic_t signals;

static void on_signal(int number) {
    (void)number;
    ++signals;
}

static unsigned long compute(long turns) {
    volatile unsigned long sum[512] = {0};
    for (long turn = 0; turn < turns; ++turn) {
        sum[turn % 512] += (unsigned long)turn;
    }
    unsigned long all = 0;
    for (int index = 0; index < 512; ++index) {
        all += sum[index];
    }
    return all;
}

static int rough(void) {
    const long turns = 30000000;
    syscall(SYS_close_range, 3U, ~0U, 0U);
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal; // interrupts calls
    sigaction(SIGALRM, &action, NULL);
    struct itimerval often = {{0, 2000}, {0, 2000}};
    setitimer(ITIMER_REAL, &often, NULL);
    const unsigned long right = (unsigned long)turns * (turns - 1) / 2;
    if (compute(turns) != right) {
        return 1;
    }
    struct timespec left = {0, 50000000};
    int interrupted = 0;
    while (nanosleep(&left, &left) != 0) {
        ++interrupted;
    }
    if (signals < 5 || interrupted < 5) {
        return 2;
    }
    const int status = system("exit 3"); // the timer isn't inherited
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 3) {
        return 3;
    }
    const pid_t child = fork();
    if (child == 0) {
        _exit(compute(turns) == right ? 4 : 5);
    }
    int end = 0;
    while (waitpid(child, &end, 0) < 0) {
    }
    return WIFEXITED(end) && WEXITSTATUS(end) == 4 && compute(turns) == right ? 0 : 6;
}

// The test looks for the source lines that touched these pages first.
static void fill(void) {
    char* const set =
        mmap(NULL, fill_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char* const copied =
        mmap(NULL, fill_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    volatile size_t few = 100;  // unknown to the compiler, which else copies itself
    memset(set, 1, fill_bytes); // line A
    for (size_t at = 0; at < fill_bytes; at += page_bytes) {
        memcpy(copied + at, set, few); // line B
    }
    printf("filled %lx A\nfilled %lx B\n", (unsigned long)(uintptr_t)set,
           (unsigned long)(uintptr_t)copied);
}

// A search behind `number` instructions, which reads all of the next page.
#define search_behind(number)                                                                      \
    do {                                                                                           \
        volatile char* at = page;                                                                  \
        size_t left = page_bytes;                                                                  \
        __asm__ volatile("jmp 1f\n1: .rept " #number "\n nop\n .endr\n repne scasb"                \
                         : "+D"(at), "+c"(left)                                                    \
                         : "a"(1)                                                                  \
                         : "memory", "cc");                                                        \
        printf("row %lx %d 0\n", (unsigned long)(uintptr_t)page, page_bytes);                      \
        page += page_bytes;                                                                        \
    } while (0)

// Code that runs once, with a search at every place around the 256th, where DynamoRIO ends a block.
// One of the searches is a block's last instruction.
static void searches(void) {
    char* page = mmap(NULL, (size_t)16 * page_bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    search_behind(250);
    search_behind(251);
    search_behind(252);
    search_behind(253);
    search_behind(254);
    search_behind(255);
    search_behind(256);
    search_behind(257);
    search_behind(258);
    search_behind(259);
    search_behind(260);
}

// Two of each turn's 700,000 instructions make 65,536 accesses each.
static int rows(void) {
    static volatile char single[page_bytes];
    const size_t bytes = (size_t)small_pages * page_bytes;
    const unsigned long turns = 300;
    searches();
    mine = aligned_alloc(page_bytes, bytes);
    for (unsigned long turn = 0; turn < turns; ++turn) {
        for (int time = 0; time < 100000; ++time) {
            single[time % page_bytes] = 1;
        }
        (void)single[0];
        volatile char* at = mine;
        size_t left = bytes;
        __asm__ volatile("rep stosb" : "+D"(at), "+c"(left) : "a"(1) : "memory");
        at = mine;
        left = bytes;
        __asm__ volatile("repne scasb" : "+D"(at), "+c"(left) : "a"(0) : "memory", "cc");
        at =
            mine + 2 * page_bytes - 1; // the last byte of the second page, downwards to the first's
        left = bytes;
        mine[page_bytes - 1] = 0;
        __asm__ volatile("std; repne scasb; cld" : "+D"(at), "+c"(left) : "a"(0) : "memory", "cc");
        if (left != bytes - page_bytes - 1) {
            return 1;
        }
    }
    for (int page = 0; page < small_pages; ++page) {
        const unsigned long more = page == 0 ? turns : page == 1 ? turns * page_bytes : 0;
        printf("row %lx %lu %lu\n", (unsigned long)(uintptr_t)(mine + page * page_bytes),
               turns * page_bytes + more, turns * page_bytes);
    }
    return 0;
}

// Flags and registers after an access of flags_and_accesses.
struct behind {
    uint64_t flags; // OF, and above it the byte of lahf
    uint64_t rax;
    uint64_t rcx;
    uint64_t value; // that was read
};
enum { combinations = 64, kinds = 7, table_index = 17 };

// Straight-line code: each kind of access with each combination of flags. fs_offset: the offset of
// a word from the thread's base.
void flags_and_accesses(struct behind* behind, uint64_t fs_offset, const void* data);
__asm__(".text\n"
        ".macro set_flags rax\n"
        " mov $77, %ecx\n"
        // CF, PF, AF, ZF, SF as in AH; OF
        " mov $(((flags & 1) | (flags & 2) << 1 | (flags & 4) << 2 | (flags & 24) << 3) << 8"
        " | flags >> 5), %eax\n"
        " add $0x7f, %al\n"
        " sahf\n"
        " mov \\rax, %rax\n"
        ".endm\n"
        ".macro note value\n"
        " mov %rax, %r8\n"
        " lahf\n"
        " seto %al\n"
        " movzwl %ax, %eax\n"
        " mov %rax, (%rdi)\n"
        " mov %r8, 8(%rdi)\n"
        " mov %rcx, 16(%rdi)\n"
        " mov \\value, 24(%rdi)\n"
        " lea 32(%rdi), %rdi\n"
        ".endm\n"
        "flags_and_accesses:\n"
        " push %rbx\n"
        " mov %rdx, %rbx\n"
        ".set flags, 0\n"
        ".rept 64\n"
        " set_flags %rbx\n mov (%rax), %r10\n note %r10\n"
        " set_flags $5\n mov %rbx, %rcx\n mov 8(%rcx), %r10\n note %r10\n"
        " set_flags %rsi\n mov %fs:(%rax), %r10\n note %r10\n"
        " set_flags %rsi\n mov $16, %ecx\n lea -16(%rax), %rax\n"
        " mov %fs:(%rax, %rcx), %r10\n note %r10\n"
        " set_flags $17\n xlat\n note %r8\n"
        " set_flags $0x1234\n push %rax\n note %r8\n"
        " set_flags $6\n pop %r10\n note %r10\n"
        ".set flags, flags + 1\n"
        ".endr\n"
        " pop %rbx\n"
        " ret\n");

static __thread volatile uint64_t in_thread = 0x5678;

// Returns 0 if each access leaves flags and registers unchanged.
static int flags(void) {
    static volatile char single[page_bytes];
    static uint64_t data[8];
    static struct behind found[combinations][kinds];
    uint64_t base;
    __asm__("mov %%fs:0, %0" : "=r"(base));
    const uint64_t offset = (uint64_t)(uintptr_t)&in_thread - base;
    const uint64_t address = (uint64_t)(uintptr_t)data;
    for (unsigned index = 0; index < sizeof data; ++index) {
        ((unsigned char*)data)[index] = (unsigned char)(3 * index + 1);
    }
    const uint64_t read = ((unsigned char*)data)[table_index];
    const struct behind right[kinds] = {{0, address, 77, data[0]},  {0, 5, address, data[1]},
                                        {0, offset, 77, in_thread}, {0, offset - 16, 16, in_thread},
                                        {0, read, 77, read},        {0, 0x1234, 77, 0x1234},
                                        {0, 6, 77, 0x1234}};
    for (int time = 0; time < 2; ++time) { // within the first burst and, mostly, outside bursts
        flags_and_accesses(&found[0][0], offset, data);
        for (unsigned set = 0; set < combinations; ++set) {
            const unsigned high = (set & 1) | (set & 2) << 1 | (set & 4) << 2 | (set & 24) << 3;
            for (int kind = 0; kind < kinds; ++kind) {
                const struct behind* const is = &found[set][kind];
                if (is->flags != ((high | 2) << 8 | set >> 5) || is->rax != right[kind].rax ||
                    is->rcx != right[kind].rcx || is->value != right[kind].value) {
                    printf("wrong: %d %u %d, flags %lx\n", time, set, kind,
                           (unsigned long)is->flags);
                    return 1;
                }
            }
        }
        for (int turn = 0; turn < 10000000; ++turn) {
            single[turn % page_bytes] = 1;
        }
        (void)single[0];
    }
    return 0;
}

// Sums of numbers of 1 to `most` words. The carry flag goes from turn to turn and out of the loop.
static int turns(void) {
    enum { most = 60, rounds = 3000 };
    static unsigned long left[most];
    static unsigned long right[most];
    static unsigned long sum[most];
    for (int word = 0; word < most; ++word) {
        left[word] = 0x9E3779B97F4A7C15U * (unsigned)(word + 1);
        right[word] = word % 7 == 0 ? left[word] : ~left[word];
    }
    for (int round = 0; round < rounds; ++round) {
        for (long words = 1; words <= most; ++words) {
            right[words / 2] += (unsigned long)round;
            const unsigned long* from = left;
            const unsigned long* other = right;
            unsigned long* to = sum;
            unsigned long word = 0;
            unsigned char carry = 0;
            long count = words;
            __asm__ volatile("clc\n"
                             "1: mov (%1), %0\n"
                             "adc (%2), %0\n"
                             "mov %0, (%3)\n"
                             "lea 8(%1), %1\n"
                             "lea 8(%2), %2\n"
                             "lea 8(%3), %3\n"
                             "dec %4\n"
                             "jnz 1b\n"
                             "setc %5"
                             : "=&r"(word), "+r"(from), "+r"(other), "+r"(to), "+r"(count),
                               "=q"(carry)
                             :
                             : "memory", "cc");
            unsigned __int128 wanted = 0;
            for (long at = 0; at < words; ++at) {
                wanted = (wanted >> 64) + left[at] + right[at];
                if (sum[at] != (unsigned long)wanted) {
                    return 1;
                }
            }
            if (count != 0 || carry != (unsigned char)(wanted >> 64)) {
                return 1;
            }
        }
    }
    return 0;
}

static void* little(void* argument) {
    volatile char* const at = argument;
    for (int time = 0; time < 20000; ++time) {
        *at = 1;
    }
    return NULL;
}

int main(int count, char** words) {
    const char* const what = count > 1 ? words[1] : "";
    if (strcmp(what, "phases") == 0) {
        mine = aligned_alloc(page_bytes, small_pages * page_bytes);
        others = aligned_alloc(page_bytes, small_pages * page_bytes);
        large = aligned_alloc(page_bytes, large_bytes);
        for (int index = 0; index < small_pages; ++index) {
            others[index * page_bytes] = 1;
        }
        for (int index = 0; index < large_bytes / page_bytes; ++index) {
            large[(size_t)index * page_bytes] = 1;
        }
        pthread_t id;
        pthread_create(&id, NULL, phases, NULL);
        pthread_join(id, NULL);
        return 0;
    }
    if (strcmp(what, "fill") == 0) {
        fill();
        return 0;
    }
    if (strcmp(what, "rough") == 0) {
        return rough();
    }
    if (strcmp(what, "rows") == 0) {
        return rows();
    }
    if (strcmp(what, "flags") == 0) {
        return flags();
    }
    if (strcmp(what, "turns") == 0) {
        return turns();
    }
    if (strcmp(what, "wait") == 0) {
        mine = aligned_alloc(page_bytes, page_bytes);
        printf("page %lx\n", (unsigned long)(uintptr_t)mine);
        fflush(stdout);
        for (;;) {
            little((void*)mine);
            usleep(1000);
        }
    }
    char* const page = aligned_alloc(page_bytes, page_bytes);
    for (int turn = 0; turn < 250; ++turn) {
        pthread_t ids[8];
        for (int index = 0; index < 8; ++index) {
            pthread_create(&ids[index], NULL, little, page);
        }
        for (int index = 0; index < 8; ++index) {
            pthread_join(ids[index], NULL);
        }
    }
    return 0;
}
