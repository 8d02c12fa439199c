#include "mpi/io/system_file.hpp"

#include <algorithm>
#include <array>
#include <climits>
#include <cstring>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "mpi.h"
#include "mpi/io/tuning.hpp"

namespace warren::io {

namespace {

// The kernel does no more in one call.
constexpr std::size_t call_bytes = 0x7ffff000;
constexpr std::size_t call_pieces = 1024;

// File systems whose pages other nodes, or a process, change (statfs(2)).
constexpr unsigned long nfs = 0x6969;
constexpr unsigned long remote_systems[] = {
    nfs,
    0x65735546, // FUSE
    0x0bd00bd0, // Lustre
    0xff534d42, // CIFS
    0xfe534d42, // SMB2
    0x01021997, // 9P
    0x00c36400, // Ceph
    0x47504653, // GPFS
    0x19830326, // BeeGFS
    0x20030528  // PVFS2, OrangeFS
};

// 0: unknown.
unsigned long type_of_system(int descriptor) {
    struct statfs system;
    return fstatfs(descriptor, &system) == 0
               ? static_cast<unsigned long>(system.f_type) & 0xffffffff
               : 0;
}

// File systems in this node's memory.
constexpr unsigned long memory_systems[] = {
    0x01021994, // tmpfs
    0x858458f6  // ramfs
};

SystemFile::Storage storage_of(unsigned long type) {
    const auto is_in = [&](const auto& types) {
        return std::find(std::begin(types), std::end(types), type) != std::end(types);
    };
    return is_in(remote_systems)   ? SystemFile::Storage::remote
           : is_in(memory_systems) ? SystemFile::Storage::memory
                                   : SystemFile::Storage::disk;
}

// Drops `bytes` of pieces that have been done.
void advance(iovec*& pieces, std::size_t& count, std::size_t bytes) {
    while (count > 0 && bytes >= pieces->iov_len) {
        bytes -= pieces->iov_len;
        ++pieces;
        --count;
    }
    if (bytes > 0) {
        pieces->iov_base = static_cast<std::byte*>(pieces->iov_base) + bytes;
        pieces->iov_len -= bytes;
    }
}

// Drops what lies behind the first `bytes`, of which there are more.
void shorten(iovec* pieces, std::size_t& count, std::uint64_t bytes) {
    std::size_t kept = 0;
    for (; bytes > 0; ++kept) {
        pieces[kept].iov_len = std::min<std::uint64_t>(pieces[kept].iov_len, bytes);
        bytes -= pieces[kept].iov_len;
    }
    count = kept;
}

std::uint64_t bytes_of(const iovec* pieces, std::size_t count) {
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < count; ++i) {
        bytes += pieces[i].iov_len;
    }
    return bytes;
}

// The system's limit of files that this process makes or grows.
std::uint64_t size_limit() {
    rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY
               ? limit.rlim_cur
               : ~std::uint64_t{0};
}

// Opens a file without waiting for another program, which pipes and some devices do. (The system
// refuses that for regular files that it has to wait for: leased or migrated ones.)
int open_at_once(const char* path, int flags, unsigned mode) {
    int descriptor = -1;
    int waits = O_NONBLOCK;
    do {
        descriptor = ::open(path, flags | waits, mode);
        if (descriptor < 0 && errno == EWOULDBLOCK && waits != 0) {
            waits = 0;
            errno = EINTR;
        }
    } while (descriptor < 0 && errno == EINTR);
    return descriptor;
}

bool has_offsets(mode_t mode) {
    return !S_ISFIFO(mode) && !S_ISSOCK(mode);
}

Error without_offsets(const char* path, mode_t mode) {
    const char* kind = S_ISFIFO(mode) ? "pipe" : S_ISSOCK(mode) ? "socket" : "device";
    return fail(MPI_ERR_IO, "opening %s: it is a %s without offsets, and MPI's accesses have some",
                path, kind);
}

} // namespace

int class_of_errno(int cause) {
    switch (cause) {
    case ENOENT:
        return MPI_ERR_NO_SUCH_FILE;
    case EEXIST:
        return MPI_ERR_FILE_EXISTS;
    case EACCES:
    case EPERM:
        return MPI_ERR_ACCESS;
    case ENOSPC:
    case EFBIG:
        return MPI_ERR_NO_SPACE;
    case EDQUOT:
        return MPI_ERR_QUOTA;
    case EROFS:
        return MPI_ERR_READ_ONLY;
    case ENAMETOOLONG:
    case ENOTDIR:
    case EISDIR:
    case ELOOP:
        return MPI_ERR_BAD_FILE;
    case EBUSY:
    case ETXTBSY:
        return MPI_ERR_FILE_IN_USE;
    case ENOMEM:
        return MPI_ERR_NO_MEM;
    case ESPIPE:
    case EOPNOTSUPP:
        return MPI_ERR_UNSUPPORTED_OPERATION;
    default:
        return MPI_ERR_IO;
    }
}

SystemFile::~SystemFile() {
    if (descriptor_ >= 0) {
        ::close(descriptor_);
    }
}

Error SystemFile::failed(const char* what, std::uint64_t offset, int cause) const {
    return fail(class_of_errno(cause), "%s %s at byte %llu: %s", what, path_.c_str(),
                static_cast<unsigned long long>(offset), std::strerror(cause));
}

Error SystemFile::open(const char* path, int flags, unsigned mode) {
    path_ = path;
    descriptor_ = open_at_once(path, flags | O_CLOEXEC | O_NOCTTY, mode);
    struct stat status;
    if (descriptor_ < 0 || fstat(descriptor_, &status) != 0) {
        const int cause = errno;
        return cause == ENXIO && stat(path, &status) == 0 && !has_offsets(status.st_mode)
                   ? without_offsets(path, status.st_mode)
                   : fail(class_of_errno(cause), "opening %s: %s", path, std::strerror(cause));
    }
    if (S_ISDIR(status.st_mode)) {
        return fail(MPI_ERR_BAD_FILE, "opening %s: %s", path, std::strerror(EISDIR));
    }
    if (!has_offsets(status.st_mode) ||
        (!S_ISREG(status.st_mode) && lseek(descriptor_, 0, SEEK_CUR) < 0)) {
        return without_offsets(path, status.st_mode);
    }
    fcntl(descriptor_, F_SETFL, 0); // accesses may wait
    readable_ = (flags & O_ACCMODE) != O_WRONLY;
    regular_ = S_ISREG(status.st_mode);
    device_ = status.st_dev;
    number_ = status.st_ino;
    const unsigned long type = type_of_system(descriptor_);
    storage_ = storage_of(type);
    caches_by_locks_ = type == nfs;
    limit_ = regular_ ? size_limit() : limit_;
    return {};
}

void SystemFile::find_full_path() {
    // (A thread rank has descriptors of its own.)
    const std::string link = "/proc/thread-self/fd/" + std::to_string(descriptor_);
    std::array<char, PATH_MAX> path;
    const ssize_t length =
        full_path_.empty() ? readlink(link.c_str(), path.data(), path.size()) : 0;
    if (length > 0 && path[0] == '/' && static_cast<std::size_t>(length) < path.size()) {
        full_path_.assign(path.data(), static_cast<std::size_t>(length));
    }
}

Error SystemFile::remove(const char* path) {
    if (unlink(path) == 0) {
        return {};
    }
    const int cause = errno;
    // Where a directory of that name is, POSIX says EPERM and Linux EISDIR: no file in any case.
    return fail(class_of_errno(cause), "deleting %s: %s", path, std::strerror(cause));
}

Error SystemFile::read(void* data, std::size_t bytes, std::uint64_t offset,
                       std::size_t& got) const {
    got = 0;
    while (got < bytes) {
        const ssize_t now =
            pread(descriptor_, static_cast<std::byte*>(data) + got,
                  std::min(bytes - got, call_bytes), static_cast<off_t>(offset + got));
        if (now > 0) {
            got += static_cast<std::size_t>(now);
        } else if (now == 0) {
            break;
        } else if (errno != EINTR) {
            return failed("reading", offset + got, errno);
        }
    }
    return {};
}

Error SystemFile::write(const void* data, std::size_t bytes, std::uint64_t offset) const {
    const std::uint64_t room = limit_ - std::min(limit_, offset);
    Error error = write_within(data, std::min<std::uint64_t>(bytes, room), offset);
    return error || bytes <= room ? error : beyond_limit("writing");
}

Error SystemFile::write(iovec* pieces, std::size_t count, std::uint64_t offset) const {
    const std::uint64_t room = limit_ - std::min(limit_, offset);
    const bool fits = limit_ == ~std::uint64_t{0} || bytes_of(pieces, count) <= room;
    if (!fits) {
        shorten(pieces, count, room);
    }
    Error error = write_within(pieces, count, offset);
    return error || fits ? error : beyond_limit("writing");
}

Error SystemFile::write_within(const void* data, std::size_t bytes, std::uint64_t offset) const {
    std::size_t done = 0;
    while (done < bytes) {
        const ssize_t now =
            pwrite(descriptor_, static_cast<const std::byte*>(data) + done,
                   std::min(bytes - done, call_bytes), static_cast<off_t>(offset + done));
        if (now > 0) {
            done += static_cast<std::size_t>(now);
        } else if (now == 0 || errno != EINTR) {
            return failed("writing", offset + done, now == 0 ? EIO : errno);
        }
    }
    return {};
}

Error SystemFile::read(iovec* pieces, std::size_t count, std::uint64_t offset,
                       std::size_t& got) const {
    got = 0;
    while (count > 0) {
        const ssize_t now =
            preadv(descriptor_, pieces, static_cast<int>(std::min(count, call_pieces)),
                   static_cast<off_t>(offset + got));
        if (now > 0) {
            got += static_cast<std::size_t>(now);
            advance(pieces, count, static_cast<std::size_t>(now));
        } else if (now == 0) {
            break;
        } else if (errno != EINTR) {
            return failed("reading", offset + got, errno);
        }
    }
    return {};
}

Error SystemFile::write_within(iovec* pieces, std::size_t count, std::uint64_t offset) const {
    while (count > 0) {
        const ssize_t now =
            pwritev(descriptor_, pieces, static_cast<int>(std::min(count, call_pieces)),
                    static_cast<off_t>(offset));
        if (now > 0) {
            offset += static_cast<std::uint64_t>(now);
            advance(pieces, count, static_cast<std::size_t>(now));
        } else if (now == 0 || errno != EINTR) {
            return failed("writing", offset, now == 0 ? EIO : errno);
        }
    }
    return {};
}

void SystemFile::ask_ahead(std::uint64_t begin, std::uint64_t end) const {
    char first;
    const iovec piece = {&first, sizeof first};
    const auto offset = static_cast<off_t>(begin);
    if (preadv2(descriptor_, &piece, 1, offset, RWF_NOWAIT) < 0) {
        posix_fadvise(descriptor_, offset, static_cast<off_t>(end - begin), POSIX_FADV_WILLNEED);
    }
}

Error SystemFile::size(std::uint64_t& bytes) const {
    struct stat status;
    if (fstat(descriptor_, &status) != 0) {
        return failed("asking for the size of", 0, errno);
    }
    bytes = static_cast<std::uint64_t>(status.st_size);
    return {};
}

Error SystemFile::set_size(std::uint64_t bytes) const {
    if (bytes > limit_) {
        return beyond_limit("setting the size of");
    }
    while (ftruncate(descriptor_, static_cast<off_t>(bytes)) != 0) {
        if (errno != EINTR) {
            return failed("setting the size of", bytes, errno);
        }
    }
    return {};
}

Error SystemFile::allocate(std::uint64_t bytes) const {
    std::uint64_t now = 0;
    if (bytes == 0) {
        return {};
    }
    if (bytes > limit_) {
        return beyond_limit("allocating");
    }
    while (fallocate(descriptor_, 0, 0, static_cast<off_t>(bytes)) != 0) {
        if (errno == EOPNOTSUPP) {
            // Without the file system's help only the size can be had.
            Error error = size(now);
            return error || now >= bytes ? error : set_size(bytes);
        }
        if (errno != EINTR) {
            return failed("allocating", bytes, errno);
        }
    }
    return {};
}

Error SystemFile::sync() const {
    while (fsync(descriptor_) != 0) {
        // Pipes and the like have nothing to synchronise.
        if (errno == EINVAL || errno == EROFS) {
            return {};
        }
        if (errno != EINTR) {
            return failed("synchronising", 0, errno);
        }
    }
    return {};
}

Error SystemFile::flush() const {
    const int copy = fcntl(descriptor_, F_DUPFD_CLOEXEC, 0);
    if (copy >= 0 && ::close(copy) != 0 && errno != EINTR) {
        return failed("closing", 0, errno);
    }
    return {};
}

Error SystemFile::lock(Lock wanted, std::uint64_t begin, std::uint64_t end) const {
    struct flock range = {};
    range.l_type = static_cast<short>(wanted == Lock::none     ? F_UNLCK
                                      : wanted == Lock::shared ? F_RDLCK
                                                               : F_WRLCK);
    range.l_whence = SEEK_SET;
    range.l_start = static_cast<off_t>(begin);
    // (0: to the largest offset.)
    range.l_len =
        end > static_cast<std::uint64_t>(largest_offset) ? 0 : static_cast<off_t>(end - begin);
    while (fcntl(descriptor_, F_OFD_SETLKW, &range) != 0) {
        if (errno != EINTR) {
            return failed("locking", begin, errno);
        }
    }
    return {};
}

} // namespace warren::io
