/*
 * Reads the private dirty memory of this process from the kernel, by kind of mapping, without
 * disturbing it: no allocation, no stdio, one static page as buffer.
 *
 * "Private dirty" counts the pages that this process alone uses and that can't be dropped: what
 * one more rank costs. PSS adds the process's share of what several processes use. Neither counts
 * what the kernel keeps for the process (page tables, sockets, task structures).
 *
 * Thread rule: none (static buffer).
 */
#ifndef WARREN_BENCH_MEMORY_MAP_H
#define WARREN_BENCH_MEMORY_MAP_H

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

/* An unnamed mapping right behind a file's mapping is that file's zero-initialised data. */
enum {
    memory_program,   /* the executable's file */
    memory_libc,      /* libc, the dynamic linker and what belongs to them */
    memory_library,   /* every other shared library: the MPI library and what it brings along */
    memory_heap,      /* the break area */
    memory_stack,     /* of the first thread */
    memory_anonymous, /* mmap without a file: arenas, other threads' stacks, tables */
    memory_shared,    /* shared mappings whose pages only this process has touched so far */
    memory_kinds
};

static const char* const memory_kind_names[memory_kinds] = {
    "program", "libc", "library", "heap", "stack", "anonymous", "shared"};

typedef struct {
    int private_dirty_kb[memory_kinds];
    int private_dirty_kb_all;
    int pss_kb;
    int rss_kb;
} MemoryMap;

static inline bool memory_name_starts(const char* path, const char* stem) {
    const char* slash = strrchr(path, '/');
    return slash != NULL && strncmp(slash + 1, stem, strlen(stem)) == 0;
}

/* Kind of the mapping that a header line of smaps describes. `before` is the kind of the mapping
 * before it and `adjacent` whether it ends where this one starts. */
static inline int memory_kind(const char* line, int before, bool adjacent) {
    const char* space = strchr(line, ' ');
    if (space != NULL && space[4] == 's')
        return memory_shared;
    const char* path = strpbrk(line, "/[");
    if (path == NULL) {
        bool of_file =
            before == memory_program || before == memory_libc || before == memory_library;
        return adjacent && of_file ? before : memory_anonymous;
    }
    if (*path == '[')
        return strncmp(path, "[heap", 5) == 0    ? memory_heap
               : strncmp(path, "[stack", 6) == 0 ? memory_stack
               : strncmp(path, "[anon", 5) == 0  ? memory_anonymous
                                                 : memory_libc;
    static const char* const libc[] = {"ld-linux",   "ld-musl", "libc.",  "libc-",   "libm.",
                                       "libpthread", "libdl.",  "librt.", "libgcc_s"};
    for (size_t i = 0; i < sizeof libc / sizeof libc[0]; i++)
        if (memory_name_starts(path, libc[i]))
            return memory_libc;
    return strstr(path, ".so") != NULL ? memory_library : memory_program;
}

static inline int memory_kilobytes(const char* line) {
    int value = 0;
    for (const char* at = strchr(line, ':'); at != NULL && *at != '\0'; at++)
        if (*at >= '0' && *at <= '9')
            value = value * 10 + (*at - '0');
    return value;
}

static inline unsigned long memory_hexadecimal(const char** at) {
    unsigned long value = 0;
    for (;; (*at)++) {
        char c = **at;
        if (c >= '0' && c <= '9')
            value = value << 4 | (unsigned long)(c - '0');
        else if (c >= 'a' && c <= 'f')
            value = value << 4 | (unsigned long)(c - 'a' + 10);
        else
            return value;
    }
}

/* false when the kernel does not show /proc/self/smaps. */
static inline bool memory_read(MemoryMap* map) {
    static char buffer[3072];
    static char line[1024];
    memset(map, 0, sizeof *map);
    int file = open("/proc/self/smaps", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    size_t length = 0;
    int kind = memory_libc;
    unsigned long end = 0;
    ssize_t got;
    while ((got = read(file, buffer, sizeof buffer)) > 0) {
        for (ssize_t i = 0; i < got; i++) {
            if (buffer[i] != '\n') {
                if (length + 1 < sizeof line)
                    line[length++] = buffer[i];
                continue;
            }
            line[length] = '\0';
            length = 0;
            if (line[0] >= 'A' && line[0] <= 'Z') {
                if (strncmp(line, "Private_Dirty:", 14) == 0) {
                    map->private_dirty_kb[kind] += memory_kilobytes(line);
                    map->private_dirty_kb_all += memory_kilobytes(line);
                } else if (strncmp(line, "Pss:", 4) == 0) {
                    map->pss_kb += memory_kilobytes(line);
                } else if (strncmp(line, "Rss:", 4) == 0) {
                    map->rss_kb += memory_kilobytes(line);
                }
                continue;
            }
            const char* at = line;
            unsigned long start = memory_hexadecimal(&at);
            kind = memory_kind(line, kind, start == end);
            at++; /* the hyphen */
            end = memory_hexadecimal(&at);
        }
    }
    close(file);
    return got == 0;
}

#endif
