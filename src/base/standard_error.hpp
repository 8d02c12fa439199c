// The standard error of a program that others' code runs in (preloaded libraries): where that says
// something at the end, whatever the program has done with its descriptors meanwhile. What was the
// standard error at the start is never confused with a file that got its number later. Plain
// data, and system calls of its own: the C library's functions may be followed. Thread rule: keep()
// once, before others know of it, and leave_to_parent() while a child has one thread; then any.
#pragma once

#include <algorithm>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace warren {

class StandardError {
  public:
    // Remembers what it is. `open`: it stays open, under a high number, if the program closes it.
    void keep(bool open) {
        is_known_ = true;
        struct stat about {};
        if (fstat(STDERR_FILENO, &about) != 0) {
            return; // there is none
        }
        device_ = about.st_dev;
        inode_ = about.st_ino;
        if (!open) {
            return;
        }
        // Where the kernel's table of descriptors stays small, and programs look for none.
        constexpr rlim_t highest = 4096;
        constexpr rlim_t room = 64;
        rlimit limit{};
        if (syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, nullptr, &limit) == 0) {
            const rlim_t end = std::min(limit.rlim_cur, highest);
            const rlim_t number = end > 2 * room ? end - room : end / 2;
            kept_ = static_cast<int>(syscall(SYS_fcntl, STDERR_FILENO, F_DUPFD_CLOEXEC, number));
        }
    }

    // In a forked child, which may outlive its parent, and whoever reads to the end would wait for
    // it: it has what it says at its own descriptor, if that is still what it was.
    void leave_to_parent() {
        if (is_at(kept_)) { // and not a file of the program's that got its number
            syscall(SYS_close, kept_);
        }
        kept_ = -1;
    }

    // Negative: it is gone.
    int descriptor() const {
        if (!is_known_ || is_at(STDERR_FILENO)) {
            return STDERR_FILENO;
        }
        return is_at(kept_) ? kept_ : -1;
    }

  private:
    bool is_at(int number) const {
        struct stat about {};
        return inode_ != 0 && number >= 0 && fstat(number, &about) == 0 &&
               about.st_dev == device_ && about.st_ino == inode_;
    }

    bool is_known_ = false;
    int kept_ = -1;
    dev_t device_ = 0;
    ino_t inode_ = 0;
};

} // namespace warren
