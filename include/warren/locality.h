/* What a program can tell the locality analyser (`warren locality record`): phases of its run, and
 * names of its structures.
 *
 *     warren_locality_name(u, n * sizeof *u, "u");
 *     warren_locality_begin("solve");
 *     ...
 *     warren_locality_end("solve");
 *
 * In a program that isn't being recorded the functions, which are in libwarren.so, do nothing. They
 * never fail. Thread rule: any thread; a phase is of the thread that begins it, and of all that
 * work for it meanwhile. */
#ifndef WARREN_LOCALITY_H
#define WARREN_LOCALITY_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A phase begins or ends. Phases nest, and may come again; ends match the last begin of the name in
 * the thread. Names beyond 103 bytes are cut; null is an empty one. */
__attribute__((visibility("default"))) void warren_locality_begin(const char* name);
__attribute__((visibility("default"))) void warren_locality_end(const char* name);

/* From now on `bytes` bytes at `memory` are the structure `name`; 0 bytes: the whole allocation
 * that the address is in. Names beyond 127 bytes are cut. */
__attribute__((visibility("default"))) void warren_locality_name(const void* memory, size_t bytes,
                                                                 const char* name);

/* 1 in a program that is being recorded, in any mode, by the library that follows its allocations;
 * else 0. */
__attribute__((visibility("default"))) int warren_locality_recording(void);

#ifdef __cplusplus
}
#endif

#endif
