// The limit of the recorded program's files (RLIMIT_FSIZE, `ulimit -f`) is one of a recording's
// files as well, where they are written from within the program: whoever goes beyond it gets
// SIGXFSZ, which ends the program. So it is looked at before. Thread rule: any thread.
#pragma once

#include <cstdint>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace warren::locality {

// How many of so many bytes may be written from that offset on.
inline std::uint64_t allowed_bytes(std::uint64_t offset, std::uint64_t bytes) {
    struct {
        std::uint64_t soft;
        std::uint64_t hard;
    } limit{};
    // The system's own: the C library's function may be followed.
    if (syscall(SYS_prlimit64, 0, RLIMIT_FSIZE, nullptr, &limit) != 0 ||
        limit.soft == RLIM64_INFINITY) {
        return bytes;
    }
    const std::uint64_t left = limit.soft > offset ? limit.soft - offset : 0;
    return left < bytes ? left : bytes;
}

} // namespace warren::locality
