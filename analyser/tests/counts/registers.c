/* What registers hold when code is written and run that has never run before: for both, the thread
 * leaves the program's code and comes back.
 *   registers narrow     the 16 registers of 32 bytes
 *   registers wide       the 32 of 64 bytes
 * Exits with 1 if they hold anything else behind it, 77 if there are no such registers. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { registers = 32, most_bytes = 64, each = 16, step = 8 };

static unsigned char before[registers * most_bytes];
static unsigned char behind[registers * most_bytes];

#define LOAD_32(register, at) "vmovdqu " #at "*32(%[before]), %%ymm" #register "\n"
#define STORE_32(register, at) "vmovdqu %%ymm" #register ", " #at "*32(%[behind])\n"
#define LOAD_64(register, at) "vmovdqu64 " #at "*64(%[before]), %%zmm" #register "\n"
#define STORE_64(register, at) "vmovdqu64 %%zmm" #register ", " #at "*64(%[behind])\n"
#define LOWER(what)                                                                                \
    what(0, 0) what(1, 1) what(2, 2) what(3, 3) what(4, 4) what(5, 5) what(6, 6) what(7, 7)        \
        what(8, 8) what(9, 9) what(10, 10) what(11, 11) what(12, 12) what(13, 13) what(14, 14)     \
            what(15, 15)
#define UPPER(what)                                                                                \
    what(16, 16) what(17, 17) what(18, 18) what(19, 19) what(20, 20) what(21, 21) what(22, 22)     \
        what(23, 23) what(24, 24) what(25, 25) what(26, 26) what(27, 27) what(28, 28) what(29, 29) \
            what(30, 30) what(31, 31)
#define CALL "call *%[code]\n"
#define OPERANDS                                                                                   \
    : : [before] "r"(before), [behind] "r"(behind), [code] "r"(code)                               \
    : "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8",      \
      "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"

static void narrow(void* code) {
    __asm__ volatile(LOWER(LOAD_32) CALL LOWER(STORE_32) "vzeroupper\n" OPERANDS);
}

__attribute__((target("avx512f"))) static void wide(void* code) {
    __asm__ volatile(LOWER(LOAD_64) UPPER(LOAD_64) CALL LOWER(STORE_64)
                         UPPER(STORE_64) "vzeroupper\n" OPERANDS,
                     "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23",
                     "xmm24", "xmm25", "xmm26", "xmm27", "xmm28", "xmm29", "xmm30", "xmm31");
}

int main(int count, char** words) {
    const int is_wide = count > 1 && strcmp(words[1], "wide") == 0;
    if (!(is_wide ? __builtin_cpu_supports("avx512f") : __builtin_cpu_supports("avx"))) {
        return 77;
    }
    const int bytes = is_wide ? registers * 64 : registers / 2 * 32;
    /* Nothing is set, then each eight bytes of all alone. */
    const int times = bytes / step + 1;
    unsigned char* code = mmap(NULL, (size_t)times * each, PROT_READ | PROT_WRITE | PROT_EXEC,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (code == MAP_FAILED) {
        return 2;
    }
    for (int time = 0; time < times; ++time, code += each) {
        memset(before, 0, sizeof before);
        memset(behind, 0xff, sizeof behind);
        before[0] = 1; /* the lowest bytes always have something */
        if (time > 0) {
            before[(time - 1) * step + time % step] = (unsigned char)(time | 1);
        }
        *code = 0xc3; /* ret */
        if (is_wide) {
            wide(code);
        } else {
            narrow(code);
        }
        if (memcmp(before, behind, (size_t)bytes) != 0) {
            fprintf(stderr, "registers: time %d of %d\n", time, times);
            return 1;
        }
    }
    return 0;
}
