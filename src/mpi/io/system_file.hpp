// SystemFile: an open file of the operating system. Calls that are interrupted or do less than was
// asked for go on until all is done, the file ends, or the system says why not.
//
// Errors name the file, the offset and the system's reason; their class is the standard's for it
// (MPI 5.0, 14.7). Nothing is asked for beyond the limit of file sizes (ulimit -f), for which the
// kernel would end the process (SIGXFSZ). Thread rule: any thread; the descriptor has no position
// that is used.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>
#include <sys/uio.h>

#include "base/error.hpp"
#include "mpi/io/file_identity.hpp"

namespace warren::io {

class SystemFile {
  public:
    SystemFile() = default;
    SystemFile(const SystemFile&) = delete;
    SystemFile& operator=(const SystemFile&) = delete;
    ~SystemFile();

    // flags: those of open(2); `mode`: permissions of a new file, which the umask restricts.
    Error open(const char* path, int flags, unsigned mode);
    static Error remove(const char* path);

    explicit operator bool() const { return descriptor_ >= 0; }
    const std::string& path() const { return path_; }
    // The path from the root on, for other processes. Empty until find_full_path() has been called
    // (before other threads use the file in atomic mode), and where the system does not tell it.
    const std::string& full_path() const { return full_path_; }
    void find_full_path();
    std::uint64_t device() const { return device_; }
    std::uint64_t number() const { return number_; }
    bool regular() const { return regular_; }
    // A file system of other nodes or of a process (NFS, FUSE, Lustre, …) is remote.
    enum class Storage : std::uint8_t { disk, memory, remote };
    Storage storage() const { return storage_; }
    bool remote() const { return storage_ == Storage::remote; }
    bool readable() const { return readable_; }
    // Nodes keep pages of their own, which they write back and forget when they lock and unlock
    // bytes (NFS).
    bool caches_by_locks() const { return caches_by_locks_; }
    FileIdentity identity() const { return identity_of(descriptor_); }

    // `got` < bytes: the file ends.
    Error read(void* data, std::size_t bytes, std::uint64_t offset, std::size_t& got) const;
    Error write(const void* data, std::size_t bytes, std::uint64_t offset) const;
    // Read and write pieces of memory; the calls change the array of pieces.
    Error read(iovec* pieces, std::size_t count, std::uint64_t offset, std::size_t& got) const;
    Error write(iovec* pieces, std::size_t count, std::uint64_t offset) const;

    // Has the system read these bytes, without waiting for them, unless it holds the first.
    void ask_ahead(std::uint64_t begin, std::uint64_t end) const;

    Error size(std::uint64_t& bytes) const;
    Error set_size(std::uint64_t bytes) const;
    Error allocate(std::uint64_t bytes) const;
    Error sync() const;
    // Asks what the file system says when a descriptor is closed: some tell then that they could
    // not keep what has been written.
    Error flush() const;

    // Waits for a lock of bytes that all nodes know, and that this descriptor has, whichever thread
    // asks. A lock that it has of some of them changes its kind.
    enum class Lock : std::int16_t { none, shared, exclusive };
    Error lock(Lock wanted, std::uint64_t begin, std::uint64_t end) const;

  private:
    Error write_within(const void* data, std::size_t bytes, std::uint64_t offset) const;
    Error write_within(iovec* pieces, std::size_t count, std::uint64_t offset) const;
    Error beyond_limit(const char* what) const { return failed(what, limit_, EFBIG); }
    Error failed(const char* what, std::uint64_t offset, int cause) const;

    std::string path_;
    std::string full_path_;
    int descriptor_ = -1;
    bool regular_ = true;
    Storage storage_ = Storage::disk;
    bool readable_ = true;
    bool caches_by_locks_ = false;
    std::uint64_t device_ = 0;
    std::uint64_t number_ = 0;
    std::uint64_t limit_ = ~std::uint64_t{0}; // of the file's size
};

// The class of an error of the system.
int class_of_errno(int cause);

} // namespace warren::io
