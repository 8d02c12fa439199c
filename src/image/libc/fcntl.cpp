// Locks of files, which the kernel keeps by process, are an image's own (file_locks.hpp), and calls
// that close a descriptor end those of its file.
#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <fcntl.h>
#include <linux/close_range.h>
#include <unistd.h>

#include "image/host.hpp"
#include "image/image.hpp"
#include "image/libc/functions.hpp"
#include "image/libc/state.hpp"

namespace warren::image::libc {

namespace {

// Null: the caller has none, as no image or a child of fork, which has the kernel's.
FileLocks* locks_to_forget() {
    Image* image = current_image();
    const bool has_some = image != nullptr && image->libc_state().file_locks.any();
    return has_some && running_image() != nullptr ? &image->libc_state().file_locks : nullptr;
}

} // namespace

void before_closing(int descriptor) {
    if (FileLocks* locks = locks_to_forget()) {
        locks->forget(descriptor);
    }
}

int close(int descriptor) {
    before_closing(descriptor);
    return ::close(descriptor);
}

void before_closing_range(unsigned first, unsigned last) {
    if (FileLocks* locks = locks_to_forget()) {
        locks->forget_range(first, last);
    }
}

int close_range(unsigned first, unsigned last, int flags) {
    if ((flags & CLOSE_RANGE_CLOEXEC) == 0) {
        before_closing_range(first, last);
    }
    return ::close_range(first, last, flags);
}

void closefrom(int first) {
    libc::close_range(static_cast<unsigned>(std::max(first, 0)), UINT_MAX, 0);
}

int dup3(int from, int to, int flags) {
    const bool is_valid = from != to && (flags & ~O_CLOEXEC) == 0;
    if (is_valid && ::fcntl(from, F_GETFD) >= 0) { // so it will close `to`
        before_closing(to);
    }
    return ::dup3(from, to, flags);
}

int dup2(int from, int to) {
    return from == to ? ::dup2(from, to) : libc::dup3(from, to, 0);
}

int fcntl_with(int descriptor, int command, void* argument) {
    Image* image = nullptr;
    if (command == F_SETLK || command == F_SETLKW || command == F_GETLK) {
        image = running_image();
    }
    return image != nullptr ? image->libc_state().file_locks.control(
                                  descriptor, command, *static_cast<struct flock*>(argument))
                            : ::fcntl(descriptor, command, argument);
}

int fcntl(int descriptor, int command, ...) {
    va_list arguments;
    va_start(arguments, command);
    void* argument = va_arg(arguments, void*); // as wide as any
    va_end(arguments);
    return libc::fcntl_with(descriptor, command, argument);
}

int lockf(int descriptor, int command, off_t bytes) {
    struct flock lock {};
    lock.l_whence = SEEK_CUR;
    lock.l_len = bytes;
    lock.l_type = F_WRLCK;
    switch (command) {
    case F_TEST:
        lock.l_type = F_RDLCK;
        if (libc::fcntl_with(descriptor, F_GETLK, &lock) != 0) {
            return -1;
        }
        if (lock.l_type == F_UNLCK) {
            return 0;
        }
        errno = EACCES;
        return -1;
    case F_ULOCK:
        lock.l_type = F_UNLCK;
        return libc::fcntl_with(descriptor, F_SETLK, &lock);
    case F_LOCK:
        return libc::fcntl_with(descriptor, F_SETLKW, &lock);
    case F_TLOCK:
        return libc::fcntl_with(descriptor, F_SETLK, &lock);
    default:
        errno = EINVAL;
        return -1;
    }
}

} // namespace warren::image::libc
