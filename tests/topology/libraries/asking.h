/* What two libraries of one program answer, each with its own topology of the node: a sum over the
   answers about random pairs of processors, and which file the image is in. */
#ifndef ASKING_H
#define ASKING_H

#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

struct answers {
    int way;
    uint64_t sum;
    uint64_t file; /* its number; 0: the image is in no file */
};

/* They return 0, or print why not. */
#define PUBLIC __attribute__((visibility("default")))
PUBLIC int c_library_asks(unsigned questions, struct answers* answers);
PUBLIC int cpp_library_asks(unsigned questions, struct answers* answers);

/* Both ask about the same pairs. */
static inline uint32_t next_random(uint32_t* state) {
    *state = *state * 1664525U + 1013904223U;
    return *state >> 8;
}

static inline uint64_t file_behind(const void* address) {
    char line[512];
    uint64_t file = 0;
    FILE* maps = fopen("/proc/self/maps", "r");
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
        unsigned long begin = 0;
        unsigned long end = 0;
        unsigned long number = 0;
        if (sscanf(line, "%lx-%lx %*s %*s %*s %lu", &begin, &end, &number) == 3 &&
            (uintptr_t)address >= begin && (uintptr_t)address < end) {
            file = number;
        }
    }
    if (maps != NULL) {
        fclose(maps);
    }
    return file;
}

#ifdef __cplusplus
}
#endif

#endif
