// Preloaded (built with -O1, which keeps its frames) into the programs of names_test.py: writes the
// call stack of each large allocation, and at the end what was mapped where, to the file
// ALLOCATION_LOG.
#define _GNU_SOURCE
#include <execinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { large = 65536, depth = 40 };
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);

static FILE* file;
static __thread int busy;

__attribute__((noinline)) static void* noted(void* block, size_t bytes) {
    if (busy || bytes < large || block == NULL) {
        return block;
    }
    busy = 1;
    if (file == NULL) {
        file = fopen(getenv("ALLOCATION_LOG"), "w");
    }
    void* stack[depth];
    const int count = backtrace(stack, depth);
    fprintf(file, "block %p %zu", block, bytes);
    for (int at = 2; at < count; ++at) { // behind this function and its caller
        fprintf(file, " %p", stack[at]);
    }
    fputc('\n', file);
    busy = 0;
    return block;
}

void* malloc(size_t bytes) {
    return noted(__libc_malloc(bytes), bytes);
}
void* calloc(size_t count, size_t bytes) {
    return noted(__libc_calloc(count, bytes), count * bytes);
}
void* realloc(void* block, size_t bytes) {
    return noted(__libc_realloc(block, bytes), bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
    return noted(__libc_memalign(alignment, bytes), bytes);
}
int posix_memalign(void** block, size_t alignment, size_t bytes) {
    *block = noted(__libc_memalign(alignment, bytes), bytes);
    return 0;
}
void* mmap(void* place, size_t bytes, int protection, int flags, int descriptor, off_t offset) {
    void* const block =
        (void*)syscall(SYS_mmap, place, bytes, protection, flags, descriptor, offset);
    return flags & MAP_ANONYMOUS ? noted(block, bytes) : block;
}

__attribute__((destructor)) static void end(void) {
    busy = 1;
    FILE* const maps = fopen("/proc/self/maps", "r");
    char line[4096];
    while (file != NULL && maps != NULL && fgets(line, sizeof line, maps) != NULL) {
        fprintf(file, "map %s", line);
    }
    if (file != NULL) {
        fflush(file);
    }
}
