// The functions that the tracker wraps: the next ones behind it, found by name.
//
// The look-up may itself allocate. Such allocations come from a small array and are never freed.
// Thread rule: any thread; found once, before the program has threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

namespace warren::locality::tracker {

struct Real {
    void* (*malloc)(std::size_t);
    void* (*calloc)(std::size_t, std::size_t);
    void* (*realloc)(void*, std::size_t);
    void (*free)(void*);
    int (*posix_memalign)(void**, std::size_t, std::size_t);
    void* (*aligned_alloc)(std::size_t, std::size_t);
    void* (*memalign)(std::size_t, std::size_t);
    void* (*valloc)(std::size_t);
    void* (*pvalloc)(std::size_t);
    std::size_t (*malloc_usable_size)(void*);
    void* (*mmap)(void*, std::size_t, int, int, int, off_t);
    int (*munmap)(void*, std::size_t);
    void* (*mremap)(void*, std::size_t, std::size_t, int, ...);
    int (*madvise)(void*, std::size_t, int);
    int (*mlock)(const void*, std::size_t);
    int (*brk)(void*);
    void* (*sbrk)(std::intptr_t);
    void* (*shmat)(int, const void*, int);
    int (*shmdt)(const void*);
    int (*pthread_create)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
    ssize_t (*read)(int, void*, std::size_t);
    ssize_t (*pread)(int, void*, std::size_t, off_t);
    ssize_t (*readv)(int, const iovec*, int);
    ssize_t (*preadv)(int, const iovec*, int, off_t);
    ssize_t (*recv)(int, void*, std::size_t, int);
    ssize_t (*recvfrom)(int, void*, std::size_t, int, sockaddr*, socklen_t*);
    ssize_t (*recvmsg)(int, msghdr*, int);
    std::size_t (*fread)(void*, std::size_t, std::size_t, FILE*);
    ssize_t (*process_vm_readv)(pid_t, const iovec*, unsigned long, const iovec*, unsigned long,
                                unsigned long);
};

// The functions; null while they are being looked up.
const Real* real();

// Allocates from the small array while real() is null.
void* early_allocation(std::size_t bytes, std::size_t alignment);
bool is_early(const void* pointer);
std::size_t early_bytes_from(const void* pointer); // to the end of what is in use

} // namespace warren::locality::tracker
