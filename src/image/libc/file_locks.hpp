// FileLocks: the locks of files (fcntl, lockf) of an image, as a process has them: all its
// descriptors of a file take locks together, and when it closes one of them, all its locks of the
// file end.
//
// The kernel's locks of a process would be all images'. Those of an open file
// (open-file-description locks) aren't, so a file that an image locks is opened once more, and that
// one description holds the image's locks. Thread rule: any thread of the image. A child of fork
// has none: it is a process, and uses the kernel's own.
#pragma once

#include <atomic>
#include <cstddef>
#include <fcntl.h>
#include <mutex>
#include <sys/stat.h>
#include <sys/types.h>
#include <vector>

namespace warren::image {

class FileLocks {
  public:
    FileLocks() = default;
    FileLocks(const FileLocks&) = delete;
    FileLocks& operator=(const FileLocks&) = delete;

    bool any() const { return count_.load(std::memory_order_relaxed) != 0; }
    // fcntl with F_SETLK, F_SETLKW or F_GETLK.
    int control(int descriptor, int command, struct flock& lock);
    // The image closes a descriptor: its locks of the file end.
    void forget(int descriptor);
    // The image closes all its descriptors from `first` to `last`.
    void forget_range(unsigned first, unsigned last);
    // All locks end, with the image.
    void forget_all();
    // Around a fork; a child forgets the locks, which stay its parent's.
    void lock_for_fork();
    void unlock_after_fork();
    void renew_locks();

  private:
    struct Holder {
        dev_t device;
        ino_t inode;
        int descriptor;
        bool noted; // it has held locks
    };

    // The descriptor that holds the locks of the regular file; -1: there is none left for it.
    int holder_of(int descriptor, const struct stat& status);
    // A holder has got a lock.
    void note(const struct stat& status);
    bool is_noted(const struct stat& status);
    Holder* find(const struct stat& status);
    static void end_locks(const Holder& holder);

    std::mutex lock_;
    std::vector<Holder> holders_;
    std::atomic<std::size_t> count_{0}; // of holders
};

} // namespace warren::image
