// Expectations that a program of known accesses prints for counts.py.
#pragma once

#include <stdint.h>
#include <stdio.h>

enum { page_bytes = 4096 };

// All accesses that a thread ever makes to the unit at `address`.
static inline void expect(const volatile void* address, int thread, unsigned long reads,
                          unsigned long writes, unsigned long bytes_read,
                          unsigned long bytes_written) {
    printf("expect %lx %d %lu %lu %lu %lu\n", (unsigned long)(uintptr_t)address, thread, reads,
           writes, bytes_read, bytes_written);
}

enum { any = -1 }; // whatever number

// The bytes of a thread's accesses to the unit.
static inline void expect_bytes(const volatile void* address, int thread, unsigned long bytes_read,
                                unsigned long bytes_written) {
    printf("expect %lx %d %d %d %lu %lu\n", (unsigned long)(uintptr_t)address, thread, any, any,
           bytes_read, bytes_written);
}

// The accesses of a thread to the unit in life `life` (from 0) of a block: of all blocks that began
// at `block`. A value `any` is not compared.
static inline void expect_in(const volatile void* block, int life, const volatile void* address,
                             int thread, long reads, long writes, long bytes_read,
                             long bytes_written) {
    printf("within %lx %lx %d %d %ld %ld %ld %ld\n", (unsigned long)(uintptr_t)address,
           (unsigned long)(uintptr_t)block, life, thread, reads, writes, bytes_read, bytes_written);
}

// The thread that touches the unit first, and whether by a write.
static inline void expect_first(const volatile void* address, int thread, int write) {
    printf("first %lx %d %d\n", (unsigned long)(uintptr_t)address, thread, write);
}

// The unit's page exists before the first access to it.
static inline void expect_late(const volatile void* address) {
    printf("late %lx\n", (unsigned long)(uintptr_t)address);
}
