// System calls that fill the program's memory, which are touches that the kernel doesn't report to
// ordinary users. Programs that are built with fortification call the names with _chk.

#include <cstddef>
#include <sys/socket.h>
#include <sys/uio.h>

#include "analyser/tracker/real.hpp"
#include "analyser/tracker/tracker.hpp"

// The names are the C library's.
// NOLINTBEGIN(readability-identifier-naming)
extern "C" [[noreturn]] void __chk_fail(void);

namespace warren::locality::tracker {

namespace {

template <typename Count>
Count filled(const void* memory, Count bytes, const Caller& caller) {
    if (bytes > 0) {
        const Inside inside;
        if (inside) {
            record_fill(memory, static_cast<std::uint64_t>(bytes), caller);
        }
    }
    return bytes;
}

ssize_t filled(const iovec* pieces, std::size_t count, ssize_t bytes, const Caller& caller) {
    auto left = static_cast<std::size_t>(bytes > 0 ? bytes : 0);
    for (std::size_t index = 0; index < count && left > 0; ++index) {
        const std::size_t here = left < pieces[index].iov_len ? left : pieces[index].iov_len;
        filled(pieces[index].iov_base, static_cast<ssize_t>(here), caller);
        left -= here;
    }
    return bytes;
}

} // namespace

extern "C" {

ssize_t read(int descriptor, void* memory, std::size_t bytes) {
    return filled(memory, real()->read(descriptor, memory, bytes), WARREN_CALLER);
}

ssize_t __read_chk(int descriptor, void* memory, std::size_t bytes, std::size_t room) {
    if (bytes > room) {
        __chk_fail();
    }
    return filled(memory, real()->read(descriptor, memory, bytes), WARREN_CALLER);
}

ssize_t pread(int descriptor, void* memory, std::size_t bytes, off_t offset) {
    return filled(memory, real()->pread(descriptor, memory, bytes, offset), WARREN_CALLER);
}

ssize_t pread64(int descriptor, void* memory, std::size_t bytes, off64_t offset) {
    return filled(memory, real()->pread(descriptor, memory, bytes, offset), WARREN_CALLER);
}

ssize_t __pread_chk(int descriptor, void* memory, std::size_t bytes, off_t offset,
                    std::size_t room) {
    if (bytes > room) {
        __chk_fail();
    }
    return filled(memory, real()->pread(descriptor, memory, bytes, offset), WARREN_CALLER);
}

ssize_t __pread64_chk(int descriptor, void* memory, std::size_t bytes, off64_t offset,
                      std::size_t room) {
    if (bytes > room) {
        __chk_fail();
    }
    return filled(memory, real()->pread(descriptor, memory, bytes, offset), WARREN_CALLER);
}

ssize_t readv(int descriptor, const iovec* pieces, int count) {
    return filled(pieces, static_cast<std::size_t>(count), real()->readv(descriptor, pieces, count),
                  WARREN_CALLER);
}

ssize_t preadv(int descriptor, const iovec* pieces, int count, off_t offset) {
    return filled(pieces, static_cast<std::size_t>(count),
                  real()->preadv(descriptor, pieces, count, offset), WARREN_CALLER);
}

ssize_t preadv64(int descriptor, const iovec* pieces, int count, off64_t offset) {
    return filled(pieces, static_cast<std::size_t>(count),
                  real()->preadv(descriptor, pieces, count, offset), WARREN_CALLER);
}

ssize_t recv(int socket, void* memory, std::size_t bytes, int flags) {
    return filled(memory, real()->recv(socket, memory, bytes, flags), WARREN_CALLER);
}

ssize_t __recv_chk(int socket, void* memory, std::size_t bytes, std::size_t room, int flags) {
    if (bytes > room) {
        __chk_fail();
    }
    return filled(memory, real()->recv(socket, memory, bytes, flags), WARREN_CALLER);
}

ssize_t recvfrom(int socket, void* memory, std::size_t bytes, int flags, sockaddr* address,
                 socklen_t* length) {
    return filled(memory, real()->recvfrom(socket, memory, bytes, flags, address, length),
                  WARREN_CALLER);
}

ssize_t __recvfrom_chk(int socket, void* memory, std::size_t bytes, std::size_t room, int flags,
                       sockaddr* address, socklen_t* length) {
    if (bytes > room) {
        __chk_fail();
    }
    return filled(memory, real()->recvfrom(socket, memory, bytes, flags, address, length),
                  WARREN_CALLER);
}

ssize_t recvmsg(int socket, msghdr* message, int flags) {
    const ssize_t bytes = real()->recvmsg(socket, message, flags);
    return bytes <= 0 ? bytes : filled(message->msg_iov, message->msg_iovlen, bytes, WARREN_CALLER);
}

std::size_t fread(void* memory, std::size_t size, std::size_t count, FILE* file) {
    const std::size_t whole = real()->fread(memory, size, count, file);
    filled(memory, whole * size, WARREN_CALLER);
    return whole;
}

std::size_t __fread_chk(void* memory, std::size_t room, std::size_t size, std::size_t count,
                        FILE* file) {
    std::size_t bytes = 0;
    if (__builtin_mul_overflow(size, count, &bytes) || bytes > room) {
        __chk_fail();
    }
    const std::size_t whole = real()->fread(memory, size, count, file);
    filled(memory, whole * size, WARREN_CALLER);
    return whole;
}

ssize_t process_vm_readv(pid_t process, const iovec* pieces, unsigned long count,
                         const iovec* remote, unsigned long remote_count, unsigned long flags) {
    return filled(pieces, count,
                  real()->process_vm_readv(process, pieces, count, remote, remote_count, flags),
                  WARREN_CALLER);
}

} // extern "C"

} // namespace warren::locality::tracker
// NOLINTEND(readability-identifier-naming)
