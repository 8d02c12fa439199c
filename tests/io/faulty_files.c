/* Preloaded: calls of the system that read and write files do part of what they are asked for, or
   are interrupted, now and then. Calls for chosen files also fail for good, once a program has
   asked for that (faulty_files.h). */
#define _GNU_SOURCE
#include "faulty_files.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { descriptors = 1024 };

static atomic_uint turn;
static atomic_uint one_fails_in; /* 0: none fails */
static atomic_int failures, last_cause;
static const char* chosen; /* part of the path of each file whose calls may fail */
static atomic_bool is_chosen[descriptors];

/* A random number (the finaliser of MurmurHash3). */
static unsigned draw(void) {
    unsigned number = atomic_fetch_add(&turn, 1) + 1;
    number = (number ^ number >> 16) * 0x85ebca6bu;
    number = (number ^ number >> 13) * 0xc2b2ae35u;
    return number ^ number >> 16;
}

static int interrupted(void) {
    if (draw() % 5 != 0)
        return 0;
    errno = EINTR;
    return 1;
}

/* Sets errno to one of the causes, the last of which is 0. */
static int fails(int is_one_of_them, const int* causes) {
    unsigned one_in = atomic_load(&one_fails_in);
    if (!is_one_of_them || one_in == 0 || draw() % one_in != 0)
        return 0;
    int count = 0;
    while (causes[count] != 0)
        count++;
    int cause = causes[draw() % (unsigned)count];
    atomic_store(&last_cause, cause);
    atomic_fetch_add(&failures, 1);
    errno = cause;
    return 1;
}

static int chose(int file) {
    return file >= 0 && file < descriptors && atomic_load(&is_chosen[file]);
}

static const int read_causes[] = {EIO, 0};
static const int write_causes[] = {EIO, ENOSPC, EDQUOT, 0};
static const int size_causes[] = {EIO, ENOSPC, 0};
static const int open_causes[] = {EIO, ENOSPC, EMFILE, EACCES, 0};
static const int unlink_causes[] = {EIO, EACCES, 0};

void faulty_files_fail(const char* part_of_path, unsigned one_in, unsigned seed) {
    chosen = part_of_path;
    atomic_store(&turn, seed * 1000003u);
    atomic_store(&one_fails_in, one_in);
}

int faulty_files_failures(int* cause) {
    *cause = atomic_load(&last_cause);
    return atomic_load(&failures);
}

static void find(void* function, const char* name) {
    void* found = dlsym(RTLD_NEXT, name);
    memcpy(function, &found, sizeof found);
}

/* The C library's function of that name and type. */
#define REAL(type, name)                                                                           \
    static type real;                                                                              \
    if (!real)                                                                                     \
    find(&real, name)

static size_t part_of(size_t bytes) {
    unsigned now = draw();
    return bytes > 1 && now % 3 == 0 ? 1 + now / 3 % (bytes - 1) : bytes;
}

typedef ssize_t (*Read)(int, void*, size_t, off_t);
typedef ssize_t (*Write)(int, const void*, size_t, off_t);
typedef int (*Open)(const char*, int, mode_t);
typedef int (*OfFile)(int);
typedef int (*Truncate)(int, off_t);
typedef int (*Allocate)(int, int, off_t, off_t);
typedef int (*Unlink)(const char*);

ssize_t pread(int file, void* data, size_t bytes, off_t offset) {
    REAL(Read, "pread");
    if (bytes != 0 && (interrupted() || fails(chose(file), read_causes)))
        return -1;
    return real(file, data, part_of(bytes), offset);
}
ssize_t pwrite(int file, const void* data, size_t bytes, off_t offset) {
    REAL(Write, "pwrite");
    if (bytes != 0 && (interrupted() || fails(chose(file), write_causes)))
        return -1;
    return real(file, data, part_of(bytes), offset);
}
ssize_t preadv(int file, const struct iovec* pieces, int count, off_t offset) {
    return count > 0 ? pread(file, pieces->iov_base, pieces->iov_len, offset) : 0;
}
ssize_t pwritev(int file, const struct iovec* pieces, int count, off_t offset) {
    return count > 0 ? pwrite(file, pieces->iov_base, pieces->iov_len, offset) : 0;
}

int open(const char* path, int flags, ...) {
    REAL(Open, "open");
    va_list more;
    va_start(more, flags);
    mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0;
    va_end(more);
    const int is_one = chosen != NULL && strstr(path, chosen) != NULL;
    if (is_one && (interrupted() || fails(is_one, open_causes)))
        return -1;
    int file = real(path, flags, mode);
    if (file >= 0 && file < descriptors)
        atomic_store(&is_chosen[file], is_one);
    return file;
}
int close(int file) {
    REAL(OfFile, "close");
    if (file >= 0 && file < descriptors)
        atomic_store(&is_chosen[file], 0);
    return real(file);
}
int fsync(int file) {
    REAL(OfFile, "fsync");
    return chose(file) && (interrupted() || fails(1, size_causes)) ? -1 : real(file);
}
int ftruncate(int file, off_t bytes) {
    REAL(Truncate, "ftruncate");
    return chose(file) && (interrupted() || fails(1, size_causes)) ? -1 : real(file, bytes);
}
int fallocate(int file, int mode, off_t offset, off_t bytes) {
    REAL(Allocate, "fallocate");
    return chose(file) && (interrupted() || fails(1, size_causes))
               ? -1
               : real(file, mode, offset, bytes);
}
int unlink(const char* path) {
    REAL(Unlink, "unlink");
    const int is_one = chosen != NULL && strstr(path, chosen) != NULL;
    return fails(is_one, unlink_causes) ? -1 : real(path);
}
