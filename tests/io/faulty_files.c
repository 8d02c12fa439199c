/* Preloaded: calls that read and write files do part of what they are asked for, or are
   interrupted, now and then. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <sys/uio.h>
#include <unistd.h>

static atomic_uint turn;

/* 0: interrupted; else how many of `bytes` to do. */
static size_t part_of(size_t bytes) {
    unsigned now = atomic_fetch_add(&turn, 1) * 2654435761u >> 16;
    if (now % 5 == 0)
        return 0;
    return bytes > 1 && now % 3 == 0 ? 1 + now % (bytes - 1) : bytes;
}

#define DO(type, call, ...)                                                                        \
    static type real;                                                                              \
    if (!real)                                                                                     \
        real = (type)dlsym(RTLD_NEXT, call);                                                       \
    size_t part = part_of(bytes);                                                                  \
    if (part == 0 && bytes != 0) {                                                                 \
        errno = EINTR;                                                                             \
        return -1;                                                                                 \
    }                                                                                              \
    return real(__VA_ARGS__)

typedef ssize_t (*Read)(int, void*, size_t, off_t);
typedef ssize_t (*Write)(int, const void*, size_t, off_t);

ssize_t pread(int file, void* data, size_t bytes, off_t offset) {
    DO(Read, "pread", file, data, part, offset);
}
ssize_t pwrite(int file, const void* data, size_t bytes, off_t offset) {
    DO(Write, "pwrite", file, data, part, offset);
}
ssize_t preadv(int file, const struct iovec* pieces, int count, off_t offset) {
    return count > 0 ? pread(file, pieces->iov_base, pieces->iov_len, offset) : 0;
}
ssize_t pwritev(int file, const struct iovec* pieces, int count, off_t offset) {
    return count > 0 ? pwrite(file, pieces->iov_base, pieces->iov_len, offset) : 0;
}
