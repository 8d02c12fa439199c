// Accesses of one thread, each kind in pages of its own.
//     counts_patterns [vectors|wide]    vectors: AVX2, wide: AVX-512; status 77: there is none

#include <immintrin.h>
#include <stdlib.h>
#include <string.h>

#include "plain_patterns.h"

// Pushes, calls and returns on a stack of their own.
__attribute__((noinline)) static void implicit_accesses(void) {
    volatile char* page = new_pages(1);
    void* kept;
    __asm__ volatile("mov %%rsp, %0\n"
                     "lea 4096(%1), %%rsp\n"
                     "push %%rax\n"
                     "push $5\n"
                     "call 1f\n"
                     "jmp 2f\n"
                     "1: ret\n"
                     "2: pop %%rax\n"
                     "pop %%rax\n"
                     "pushfq\n"
                     "popfq\n"
                     "mov %0, %%rsp\n"
                     : "=&r"(kept)
                     : "r"(page)
                     : "rax", "memory", "cc");
    expect(page, 0, 4, 4, 32, 32);
    expect_first(page, 0, 1);
}

static void repeats(void) {
    volatile char* pages = new_pages(8);
    volatile char* to = pages + 100;
    long count = 2 * page_bytes;
    __asm__ volatile("rep stosb" : "+D"(to), "+c"(count) : "a"(1) : "memory");
    to = pages + 3 * page_bytes + page_bytes - 8;
    count = 512;
    __asm__ volatile("std; rep stosq; cld" : "+D"(to), "+c"(count) : "a"(1L) : "memory");
    volatile char* from = pages + 3 * page_bytes;
    to = pages + 4 * page_bytes + 2;
    count = 1024;
    __asm__ volatile("rep movsl" : "+S"(from), "+D"(to), "+c"(count)::"memory");
    count = 0;
    to = pages + 7 * page_bytes;
    __asm__ volatile("rep stosb" : "+D"(to), "+c"(count) : "a"(1) : "memory");
    volatile char* left = pages + 6 * page_bytes;
    volatile char* right = left + 2048;
    left[0] = 1;
    count = 100; // unequal at once, then equal up to 50
    __asm__ volatile("repe cmpsb" : "+S"(left), "+D"(right), "+c"(count)::"memory", "cc");
    count = 50;
    __asm__ volatile("repe cmpsb" : "+S"(left), "+D"(right), "+c"(count)::"memory", "cc");
    expect(pages, 0, 0, 3996, 0, 3996);
    expect(pages + page_bytes, 0, 0, 4096, 0, 4096);
    expect(pages + 2 * page_bytes, 0, 0, 100, 0, 100);
    expect(pages + 3 * page_bytes, 0, 1024, 512, 4096, 4096);
    expect(pages + 4 * page_bytes, 0, 0, 1024, 0, 4094);
    expect(pages + 5 * page_bytes, 0, 0, 1, 0, 2);
    expect(pages + 6 * page_bytes, 0, 102, 1, 102, 1);
    expect(pages + 7 * page_bytes, 0, 0, 0, 0, 0);
}

static void unaligned(void) {
    volatile char* pages = new_pages(3);
    for (int turn = 0; turn < 10; ++turn) {
        *(volatile long*)(pages + page_bytes - 4) = turn;
        *(volatile short*)(pages + 2 * page_bytes - 2) = 1; // crosses nothing
        (void)*(volatile int*)(pages + 2 * page_bytes - 1);
    }
    expect(pages, 0, 0, 10, 0, 40);
    expect(pages + page_bytes, 0, 10, 20, 10, 60);
    expect(pages + 2 * page_bytes, 0, 10, 0, 30, 0);
    expect_first(pages + page_bytes, 0, 1);
    expect_first(pages + 2 * page_bytes, 0, 0);
}

static void read_modify_write(void) {
    volatile char* page = new_pages(2);
    for (int turn = 0; turn < 1000; ++turn) {
        __asm__ volatile("lock addq $1, (%0); xadd %%rax, 8(%0); incl 16(%0)" ::"r"(page)
                         : "rax", "memory", "cc");
    }
    expect(page, 0, 3000, 3000, 20000, 20000);
    __asm__ volatile("fxsave (%0)" ::"r"(page + page_bytes) : "memory");
    expect(page + page_bytes, 0, 0, 1, 0, 512);
}

static void resized(void) {
    volatile char* block = malloc(3 * page_bytes);
    volatile char* page =
        (volatile char*)(((uintptr_t)block + page_bytes - 1) & ~(uintptr_t)(page_bytes - 1));
    page[5] = 1;
    page[6] = 1;
    expect(page, 0, 0, 2, 0, 2);
}

__attribute__((target("avx2"))) static void vectors(void) {
    volatile char* pages = new_pages(8);
    __asm__ volatile("vmovups %%ymm0, (%0); vmovups %%xmm0, -8(%0); vmovdqu (%0), %%ymm1"
                     :
                     : "r"(pages + page_bytes)
                     : "memory", "xmm1");
    expect(pages, 0, 0, 1, 0, 8);
    expect(pages + page_bytes, 0, 1, 2, 32, 40);
    const __m256i index = _mm256_set_epi64x(1024, 0, 512, 512);
    __asm__ volatile("vpcmpeqq %%ymm2, %%ymm2, %%ymm2; vgatherqpd %%ymm2, (%0,%1,8), %%ymm0"
                     :
                     : "r"(pages + 2 * page_bytes), "x"(index)
                     : "xmm0", "xmm2", "memory");
    expect(pages + 2 * page_bytes, 0, 1, 0, 8, 0);
    expect(pages + 3 * page_bytes, 0, 2, 0, 16, 0);
    expect(pages + 4 * page_bytes, 0, 1, 0, 8, 0);
    // A gather whose mask is empty touches nothing.
    __asm__ volatile("vpxor %%ymm2, %%ymm2, %%ymm2; vgatherqpd %%ymm2, (%0,%1,8), %%ymm0"
                     :
                     : "r"(pages + 5 * page_bytes), "x"(index)
                     : "xmm0", "xmm2", "memory");
    expect(pages + 5 * page_bytes, 0, 0, 0, 0, 0);
}

__attribute__((target("avx512f"))) static void wide(void) {
    volatile char* pages = new_pages(8);
    for (int turn = 0; turn < 5000; ++turn) {
        __asm__ volatile("vmovups %%zmm0, (%0); vmovups (%0), %%zmm1" ::"r"(pages)
                         : "memory", "xmm1");
    }
    expect(pages, 0, 5000, 5000, 320000, 320000);
    __asm__ volatile("vmovups %%zmm0, -32(%0)" ::"r"(pages + 2 * page_bytes) : "memory");
    expect(pages + page_bytes, 0, 0, 1, 0, 32);
    expect(pages + 2 * page_bytes, 0, 0, 1, 0, 32);
    volatile char* scattered = pages + 3 * page_bytes;
    const __m512i index = _mm512_set_epi64(0, 1, 512, 513, 1024, 1025, 1536, 1537);
    __asm__ volatile("kxnorw %%k1, %%k1, %%k1; vscatterqpd %%zmm0, (%0,%1,8)%{%%k1%};"
                     "kxnorw %%k1, %%k1, %%k1; vgatherqpd (%0,%1,8), %%zmm0%{%%k1%}"
                     :
                     : "r"(scattered), "v"(index)
                     : "xmm0", "k1", "memory");
    for (int page = 0; page < 4; ++page) {
        expect(scattered + page * page_bytes, 0, 2, 2, 16, 16);
        expect_first(scattered + page * page_bytes, 0, 1);
    }
}

// Operands that only these instructions have: displacements in units of the operand's size,
// broadcasts of one element, masks, elements that get narrower.
__attribute__((target("avx512f"))) static void wide_operands(void) {
    volatile char* page = new_pages(5);
    __asm__ volatile("vmovupd %%zmm0, 64(%0); vmovupd 4032(%0), %%zmm1;" // a unit, 63 of them
                     "vmovupd %%zmm0, 8(%0)"                             // no multiple of one
                     :
                     : "r"(page)
                     : "memory", "xmm1");
    expect(page, 0, 1, 2, 64, 128);
    page += page_bytes;
    __asm__ volatile("vaddpd 8(%0)%{1to8%}, %%zmm0, %%zmm1; vaddps 4(%0)%{1to16%}, %%zmm0, %%zmm1;"
                     "vbroadcastsd 16(%0), %%zmm1; vbroadcasti32x4 32(%0), %%zmm1;"
                     "vbroadcastf64x4 4064(%0), %%zmm1; vpaddq 128(%0), %%zmm1, %%zmm1"
                     :
                     : "r"(page)
                     : "memory", "xmm1");
    expect(page, 0, 6, 0, 8 + 4 + 8 + 16 + 32 + 64, 0);
    page += page_bytes;
    __asm__ volatile("vextractf64x4 $1, %%zmm0, 32(%0); vextractf32x4 $3, %%zmm0, 16(%0);"
                     "vpmovqd %%zmm0, 64(%0); vpmovqw %%zmm0, 128(%0); vpmovqb %%zmm0, 256(%0);"
                     "vcvtpd2ps (%0), %%ymm1; vpmovzxbq 8(%0), %%zmm1; vpmovsxwq 32(%0), %%zmm1"
                     :
                     : "r"(page)
                     : "memory", "xmm1");
    expect(page, 0, 3, 5, 64 + 8 + 16, 32 + 16 + 32 + 16 + 8);
    page += page_bytes;
    // These count as if their masks were full.
    __asm__ volatile("mov $15, %%eax; kmovw %%eax, %%k1; kmovw %%k1, 128(%0); kmovw 128(%0), %%k2;"
                     "vmovupd %%zmm0, (%0)%{%%k1%}; vmovupd 64(%0), %%zmm1%{%%k1%}%{z%};"
                     "vmovups %%xmm0, 192(%0)"
                     :
                     : "r"(page)
                     : "memory", "eax", "k1", "k2", "xmm1");
    expect(page, 0, 2, 3, 66, 82);
    page += page_bytes;
    // Gathers and scatters count the elements that they access: four of eight, and the last of
    // sixteen.
    const __m512i quads = _mm512_set_epi64(0, 1, 2, 3, 4, 5, 6, 7);
    const __m512i doubles = _mm512_set1_epi32(300);
    __asm__ volatile("mov $15, %%eax; kmovw %%eax, %%k1; vgatherqpd (%0,%1,8), %%zmm1%{%%k1%};"
                     "mov $32768, %%eax; kmovw %%eax, %%k1; vpscatterdd %%zmm1, 4(%0,%2,4)%{%%k1%}"
                     :
                     : "r"(page), "v"(quads), "v"(doubles)
                     : "memory", "eax", "k1", "xmm1");
    expect(page, 0, 4, 1, 32, 4);
}

// Gathers and scatters as compilers generate them.
#if defined(__clang__)
#define WIDE target("avx512f")
#else
#define WIDE target("avx512f,prefer-vector-width=512"), optimize("O3")
#endif
__attribute__((WIDE, noinline)) static void triad(double* restrict to, const double* restrict from,
                                                  const double* restrict more, long count) {
    for (long index = 0; index < count; ++index) {
        to[index] = from[index] + 3 * more[index];
    }
}

static void wide_loops(void) {
    enum { pages = 6, times = 50, count = pages * page_bytes / sizeof(double) };
    double* arrays[3];
    for (int array = 0; array < 3; ++array) {
        arrays[array] = new_pages(pages);
    }
    for (int turn = 0; turn < times; ++turn) {
        triad(arrays[0], arrays[1], arrays[2], count);
    }
    for (int page = 0; page < pages; ++page) {
        const long first = page * (page_bytes / (long)sizeof(double));
        expect_bytes(arrays[0] + first, 0, 0, times * page_bytes);
        expect_bytes(arrays[1] + first, 0, times * page_bytes, 0);
        expect_bytes(arrays[2] + first, 0, times * page_bytes, 0);
        expect_first(arrays[0] + first, 0, 1);
        expect_first(arrays[1] + first, 0, 0);
    }
}

int main(int count, char** words) {
    setvbuf(stdout, NULL, _IOFBF, 1 << 16);
    if (count > 1 && strcmp(words[1], "vectors") == 0) {
        if (!__builtin_cpu_supports("avx2")) {
            return 77;
        }
        vectors();
    } else if (count > 1) {
        if (!__builtin_cpu_supports("avx512f")) {
            return 77;
        }
        wide();
        wide_operands();
        wide_loops();
    } else {
        strides();
        statics();
        stack();
        implicit_accesses();
        repeats();
        unaligned();
        read_modify_write();
        resized();
    }
    return 0;
}
