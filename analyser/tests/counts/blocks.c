// Heap blocks: to which block accesses belong when memory moves and is used again.
//     counts_blocks            realloc that grows, moves and stays, calloc, free and malloc again
//     counts_blocks phases     accesses in phases that the program marks

#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "expectation.h"
#include "warren/locality.h"

extern int MPI_Pcontrol(int level, ...) __attribute__((weak));

enum { pages = 16, block_bytes = pages * page_bytes };

struct work {
    volatile char* at;
    int pages;
    int times;
};

static void write_pages(volatile char* at, int count, int times) {
    for (int page = 0; page < count; ++page) {
        for (int time = 0; time < times; ++time) {
            at[page * page_bytes + 64] = 1;
        }
    }
}

static void* work_of_thread(void* argument) {
    const struct work* const work = argument;
    write_pages(work->at, work->pages, work->times);
    return NULL;
}

static void write_by_thread(volatile char* at, int count, int times) {
    struct work work = {at, count, times};
    pthread_t id;
    pthread_create(&id, NULL, work_of_thread, &work);
    pthread_join(id, NULL);
}

// The first page that belongs to the block alone.
static volatile char* inside(const volatile char* block) {
    return (volatile char*)(((uintptr_t)block + page_bytes - 1) & ~(uintptr_t)(page_bytes - 1));
}

static void* must(void* block) {
    if (block == NULL) {
        abort();
    }
    __asm__("" : "+r"(block)); // else clang takes it for another place than that of a freed block
    return block;
}

// The block is a mapping of its own, whose pages realloc moves without touching them. Thread 1
// writes it.
static void moved_by_the_kernel(void) {
    enum { more = 64 };
    char* block = must(malloc(256 * 1024));
    const int many = 256 / 4 - 1;
    volatile char* at = inside(block);
    write_by_thread(at, many, 5);
    char* const wall = must(malloc(1 << 20)); // perhaps in its way
    char* const larger = must(realloc(block, (1 << 20) + more * page_bytes));
    volatile char* there = inside(larger);
    write_pages(there, many + more, 3);
    for (int page = 0; page < many; page += 7) {
        expect_in(block, 0, at + page * page_bytes, 1, 0, 5, 0, 5);
        expect_in(larger, larger == block ? 1 : 0, there + page * page_bytes, 0, 0, 3, 0, 3);
        if (larger != block) {
            printf("untouched %lx\n", (unsigned long)(uintptr_t)(there + page * page_bytes));
        }
        expect_first(at + page * page_bytes, 1, 1);
    }
    expect_in(larger, larger == block ? 1 : 0, there + (many + 5) * page_bytes, 0, 0, 3, 0, 3);
    expect_first(there + (many + 5) * page_bytes, 0, 1);
    free(larger);
    free(wall);
}

// All blocks from here on come from the break.
static void moved_by_a_copy(void) {
    char* const block = must(malloc(block_bytes));
    char* const wall = must(malloc(block_bytes));
    volatile char* at = inside(block);
    write_by_thread(at, pages - 1, 5);
    char* const larger = must(realloc(block, 2 * block_bytes));
    if (larger == block) {
        abort();
    }
    volatile char* there = inside(larger);
    write_pages(there, 2 * pages - 1, 3);
    for (int page = 1; page < pages - 2; ++page) {
        expect_in(block, 0, at + page * page_bytes, 2, 0, 5, 0, 5);
        expect_in(block, 0, at + page * page_bytes, 0, any, 0, page_bytes, 0); // the copy
        expect_in(larger, 0, there + page * page_bytes, 0, 0, any, 0, page_bytes + 3);
        expect_first(at + page * page_bytes, 2, 1);
        expect_first(there + page * page_bytes, 0, 1);
    }
    // The last one grows in its place.
    char* const last = must(realloc(larger, 3 * block_bytes));
    if (last != larger) {
        abort();
    }
    write_pages(there, 3 * pages - 1, 2);
    for (int page = 1; page < 3 * pages - 2; ++page) {
        if (page < 2 * pages - 2 || page > 2 * pages) { // malloc's own words, where it had ended
            expect_in(last, 1, there + page * page_bytes, 0, 0, 2, 0, 2);
        }
    }
    free(last);
    free(wall);
}

static void used_again(void) {
    char* const block = must(malloc(block_bytes));
    char* const wall = must(malloc(block_bytes));
    volatile char* at = inside(block);
    write_by_thread(at, pages - 1, 7);
    free(block);
    char* const again = must(malloc(block_bytes));
    if (again != block) {
        abort();
    }
    write_pages(at, pages - 1, 4);
    free(again);
    char* const zeros = must(calloc(pages, page_bytes));
    if (zeros != block) {
        abort();
    }
    // `moved_by_a_copy` made the first of the earlier blocks at this place.
    for (int page = 1; page < pages - 2; ++page) {
        expect_in(block, 1, at + page * page_bytes, 3, 0, 7, 0, 7);
        expect_in(block, 2, at + page * page_bytes, 0, 0, 4, 0, 4);
        expect_in(block, 3, at + page * page_bytes, 0, 0, any, 0, page_bytes);
    }
    free(zeros);
    free(wall);
}

static void phases(void) {
    volatile char* const page = must(aligned_alloc(page_bytes, page_bytes));
    write_pages(page, 1, 60);
    warren_locality_begin("outer");
    write_pages(page, 1, 100);
    warren_locality_begin("inner");
    write_pages(page, 1, 40);
    warren_locality_end("inner");
    write_pages(page, 1, 60);
    warren_locality_end("outer");
    write_pages(page, 1, 40);
    if (MPI_Pcontrol != NULL) {
        MPI_Pcontrol(3);
        write_pages(page, 1, 7);
    }
    printf("page %lx\n", (unsigned long)(uintptr_t)page);
}

int main(int count, char** words) {
    setvbuf(stdout, NULL, _IOFBF, 1 << 16);
    if (count > 1 && strcmp(words[1], "phases") == 0) {
        phases();
        return 0;
    }
    mallopt(M_MMAP_THRESHOLD, 128 * 1024);
    moved_by_the_kernel();
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    moved_by_a_copy();
    used_again();
    return 0;
}
