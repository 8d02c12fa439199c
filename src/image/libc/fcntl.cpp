// Locks of files that are a process's: an image's are those of the file that it has opened
// (open-file-description locks), so images exclude each other, and none loses its lock because
// another closes the file. Two descriptors by which one image has opened a file exclude each other,
// which those of a process don't.
#include <cerrno>
#include <cstdarg>
#include <fcntl.h>
#include <unistd.h>

#include "image/host.hpp"
#include "image/libc/functions.hpp"

namespace warren::image::libc {

namespace {

int of_open_file(int command) {
    switch (command) {
    case F_SETLK:
        return F_OFD_SETLK;
    case F_SETLKW:
        return F_OFD_SETLKW;
    case F_GETLK:
        return F_OFD_GETLK;
    default:
        return command;
    }
}

} // namespace

int fcntl_with(int descriptor, int command, void* argument) {
    const int own = running_image() != nullptr ? of_open_file(command) : command;
    if (own == command) {
        return ::fcntl(descriptor, command, argument);
    }
    auto* lock = static_cast<struct flock*>(argument);
    const pid_t former = lock->l_pid;
    lock->l_pid = 0; // the system wants it so
    const int result = ::fcntl(descriptor, own, lock);
    if (command != F_GETLK || result != 0 || lock->l_type == F_UNLCK) {
        lock->l_pid = former;
    }
    return result;
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
