// Accesses of one thread that all modes of counting see, each kind in pages of its own.
#pragma once

#include <stdlib.h>

#include "expectation.h"

static char static_pages[2 * page_bytes] __attribute__((aligned(page_bytes)));

static inline void* new_pages(int pages) {
    void* const made = aligned_alloc(page_bytes, (size_t)pages * page_bytes);
    if (made == NULL) {
        abort();
    }
    return made;
}

static inline void strides(void) {
    volatile double* array = new_pages(4);
    for (int index = 0; index < 2048; index += 2) {
        array[index] = index;
    }
    for (int turn = 0; turn < 100; ++turn) {
        for (int index = 0; index < 2048; index += 64) {
            (void)array[index];
        }
    }
    for (int page = 0; page < 4; ++page) {
        expect(array + 512 * page, 0, 800, 256, 6400, 2048);
        expect_first(array + 512 * page, 0, 1);
    }
    volatile char* bytes = new_pages(1);
    for (int turn = 0; turn < 50000; ++turn) { // words go round
        bytes[turn % 4096] = 1;
    }
    expect(bytes, 0, 0, 50000, 0, 50000);
}

static inline void statics(void) {
    volatile long* numbers = (volatile long*)static_pages;
    (void)numbers[0];
    numbers[1] = 1;
    numbers[512] = 1;
    expect(numbers, 0, 1, 1, 8, 8);
    expect_first(numbers, 0, 0);
    expect(numbers + 512, 0, 0, 1, 0, 8);
    expect_first(numbers + 512, 0, 1);
}

static inline void stack(void) {
    char room[64 * page_bytes]; // deeper than anybody was before
    volatile char* page =
        (volatile char*)(((uintptr_t)room + page_bytes - 1) & ~(uintptr_t)(page_bytes - 1));
    for (int index = 0; index < 100; ++index) {
        page[index] = 1;
    }
    expect(page, 0, 0, 100, 0, 100);
}
