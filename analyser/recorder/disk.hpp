// Free bytes on the disk of a file or folder, for writers that leave a reserve to others. One
// system call. Thread rule: any.
#pragma once

#include <cstdint>
#include <sys/statvfs.h>
#include <unistd.h>

namespace warren::locality {

// UINT64_MAX: not known, as for file systems without a size.
inline std::uint64_t free_bytes(int result, const struct statvfs& disk) {
    if (result != 0 || disk.f_blocks == 0) {
        return UINT64_MAX;
    }
    return (geteuid() == 0 ? disk.f_bfree : disk.f_bavail) * disk.f_frsize;
}

inline std::uint64_t disk_free_bytes(const char* path) {
    struct statvfs disk {};
    const int result = statvfs(path, &disk);
    return free_bytes(result, disk);
}

inline std::uint64_t disk_free_bytes(int file) {
    struct statvfs disk {};
    const int result = fstatvfs(file, &disk);
    return free_bytes(result, disk);
}

} // namespace warren::locality
