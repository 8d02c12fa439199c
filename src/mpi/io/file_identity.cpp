#include "mpi/io/file_identity.hpp"

#include <algorithm>
#include <array>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

namespace warren::io {

namespace {

// File systems that only the kernel which has mounted them knows (statfs(2)).
constexpr unsigned long systems_of_one_kernel[] = {
    0xef53,     // ext2, ext3, ext4
    0x58465342, // XFS
    0x9123683e, // Btrfs
    0x01021994, // tmpfs
    0x858458f6, // ramfs
    0x794c7630, // overlay
    0xf2f52010, // F2FS
    0x2fc12fc1  // ZFS
};

bool is_of_one_kernel(int descriptor) {
    struct statfs system;
    if (fstatfs(descriptor, &system) != 0) {
        return false;
    }
    const auto type = static_cast<unsigned long>(system.f_type) & 0xffffffff;
    return std::find(std::begin(systems_of_one_kernel), std::end(systems_of_one_kernel), type) !=
           std::end(systems_of_one_kernel);
}

// A number that a kernel has until it ends (FNV-1a of its name), and all its containers with it.
std::uint64_t number_of_kernel() {
    std::array<char, 64> name{};
    const int descriptor = ::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t bytes = -1;
    if (descriptor >= 0) {
        bytes = ::read(descriptor, name.data(), name.size());
        ::close(descriptor);
    }
    if (bytes <= 0) { // no /proc
        bytes =
            gethostname(name.data(), name.size() - 1) == 0 ? static_cast<ssize_t>(name.size()) : 0;
    }
    std::uint64_t number = 0xcbf29ce484222325;
    for (ssize_t i = 0; i < bytes; ++i) {
        number = (number ^ static_cast<unsigned char>(name[static_cast<std::size_t>(i)])) *
                 0x100000001b3;
    }
    return number | 1;
}

} // namespace

FileIdentity identity_of(int descriptor) {
    FileIdentity identity;
    struct stat status;
    if (fstat(descriptor, &status) == 0) {
        identity.device = status.st_dev;
        identity.number = status.st_ino;
    }
    struct statx more;
    if (statx(descriptor, "", AT_EMPTY_PATH, STATX_BTIME, &more) == 0 &&
        (more.stx_mask & STATX_BTIME) != 0) {
        constexpr std::uint64_t second_ns = 1'000'000'000;
        identity.made_ns =
            static_cast<std::uint64_t>(more.stx_btime.tv_sec) * second_ns + more.stx_btime.tv_nsec;
    }
    identity.kernel = is_of_one_kernel(descriptor) ? number_of_kernel() : 0;
    return identity;
}

bool is_same_file(const FileIdentity& one, const FileIdentity& other) {
    if (one.kernel != other.kernel || one.number != other.number) {
        return false;
    }
    if (one.kernel != 0) {
        return one.device == other.device;
    }
    return one.made_ns == other.made_ns || one.made_ns == 0 || other.made_ns == 0;
}

} // namespace warren::io
