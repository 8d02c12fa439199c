// The recorded program's limit of file sizes (RLIMIT_FSIZE, `ulimit -f`) also bounds recording
// files that are written from within the program. A write beyond it raises SIGXFSZ, which ends the
// program, so writers check it before. Thread rule: any thread.
#pragma once

#include <cstdint>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace warren::locality {

// How many of `bytes` may be written from `offset` on.
inline std::uint64_t allowed_bytes(std::uint64_t offset, std::uint64_t bytes) {
    struct {
        std::uint64_t soft;
        std::uint64_t hard;
    } limit{};
    // A system call, because the C library's function may be followed.
    if (syscall(SYS_prlimit64, 0, RLIMIT_FSIZE, nullptr, &limit) != 0 ||
        limit.soft == RLIM64_INFINITY) {
        return bytes;
    }
    const std::uint64_t left = limit.soft > offset ? limit.soft - offset : 0;
    return left < bytes ? left : bytes;
}

} // namespace warren::locality
