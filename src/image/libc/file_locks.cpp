#include "image/libc/file_locks.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <dirent.h>
#include <memory>
#include <mutex>
#include <unistd.h>
#include <vector>

#include "base/blocked_signals.hpp"
#include "image/elf_file.hpp"

namespace warren::image {

namespace {

int of_open_file(int command) {
    switch (command) {
    case F_SETLK:
        return F_OFD_SETLK;
    case F_SETLKW:
        return F_OFD_SETLKW;
    default:
        return F_OFD_GETLK;
    }
}

// The files of which images of this process hold locks, once for each image.
struct LockedFiles {
    struct File {
        dev_t device;
        ino_t inode;
        pid_t process; // in a child of fork, its parent's are known too
    };
    static bool same(const File& a, const File& b) {
        return a.device == b.device && a.inode == b.inode;
    }

    std::mutex lock;
    std::vector<File> all;
};

LockedFiles& locked_files() {
    static LockedFiles& only = *new LockedFiles; // outlives everything
    return only;
}

void note_locked(dev_t device, ino_t inode) {
    const std::lock_guard guard(locked_files().lock);
    locked_files().all.push_back({device, inode, ::getpid()});
}

void forget_locked(dev_t device, ino_t inode) {
    std::vector<LockedFiles::File>& all = locked_files().all;
    const std::lock_guard guard(locked_files().lock);
    const auto found = std::find_if(all.begin(), all.end(), [&](const LockedFiles::File& one) {
        return LockedFiles::same(one, {device, inode, 0});
    });
    if (found != all.end()) {
        all.erase(found);
    }
}

// The process of another image that has got locks of the file; 0: none is known. `is_noted`: so has
// the calling one.
pid_t other_locker(const struct stat& status, bool is_noted) {
    const BlockedSignals blocked;
    const std::lock_guard guard(locked_files().lock);
    for (const LockedFiles::File& one : locked_files().all) {
        if (!LockedFiles::same(one, {status.st_dev, status.st_ino, 0})) {
            continue;
        }
        if (!is_noted || one.process != ::getpid()) {
            return one.process;
        }
        is_noted = false;
    }
    return 0;
}

// Opens the file once more. A descriptor that can be written to takes both kinds of locks.
int open_again(int descriptor) {
    char path[40];
    std::snprintf(path, sizeof path, "/proc/thread-self/fd/%d", descriptor);
    const int both = ::open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    return both >= 0 ? both : ::fcntl(descriptor, F_DUPFD_CLOEXEC, 3);
}

// Locks are by bytes of the file; the holder has another position than the program's descriptor.
bool make_absolute(int descriptor, struct flock& lock) {
    if (lock.l_whence != SEEK_CUR) {
        return true;
    }
    const off_t position = ::lseek(descriptor, 0, SEEK_CUR);
    if (position < 0 || __builtin_add_overflow(position, lock.l_start, &lock.l_start)) {
        errno = position < 0 ? errno : EOVERFLOW;
        return false;
    }
    lock.l_whence = SEEK_SET;
    return true;
}

// As the kernel: a lock for reading needs a descriptor that can be read.
bool may_lock(int descriptor, int command, short type) {
    const int access = ::fcntl(descriptor, F_GETFL) & O_ACCMODE;
    const bool refused = command != F_GETLK && ((type == F_RDLCK && access == O_WRONLY) ||
                                                (type == F_WRLCK && access == O_RDONLY));
    if (refused) {
        errno = EBADF;
    }
    return !refused;
}

} // namespace

FileLocks::Holder* FileLocks::find(const struct stat& status) {
    const auto found = std::find_if(holders_.begin(), holders_.end(), [&](const Holder& one) {
        return one.device == status.st_dev && one.inode == status.st_ino;
    });
    return found != holders_.end() ? &*found : nullptr;
}

int FileLocks::holder_of(int descriptor, const struct stat& status) {
    const BlockedSignals blocked;
    const std::lock_guard guard(lock_);
    if (const Holder* holder = find(status)) {
        return holder->descriptor;
    }
    int made = open_again(descriptor);
    if (made >= 0) {
        made = ElfFile::keep_descriptor(made);
        holders_.push_back({status.st_dev, status.st_ino, made, false});
        count_.store(holders_.size(), std::memory_order_relaxed);
    }
    return made;
}

void FileLocks::note(const struct stat& status) {
    const BlockedSignals blocked;
    const std::lock_guard guard(lock_);
    Holder* holder = find(status);
    if (holder != nullptr && !holder->noted) {
        holder->noted = true;
        note_locked(status.st_dev, status.st_ino);
    }
}

bool FileLocks::is_noted(const struct stat& status) {
    const BlockedSignals blocked;
    const std::lock_guard guard(lock_);
    const Holder* holder = find(status);
    return holder != nullptr && holder->noted;
}

int FileLocks::control(int descriptor, int command, struct flock& lock) {
    struct stat status {};
    if (::fstat(descriptor, &status) != 0) {
        return -1;
    }
    struct flock asked = lock;
    asked.l_pid = 0;         // the system wants it so
    int holder = descriptor; // what is no regular file has no other
    if (S_ISREG(status.st_mode)) {
        if (!may_lock(descriptor, command, lock.l_type) || !make_absolute(descriptor, asked)) {
            return -1;
        }
        holder = holder_of(descriptor, status);
        if (holder < 0) {
            errno = ENOLCK; // no descriptor is left for it
            return -1;
        }
    }
    const int result = ::fcntl(holder, of_open_file(command), &asked);
    if (command != F_GETLK && result == 0 && asked.l_type != F_UNLCK && S_ISREG(status.st_mode)) {
        note(status);
    }
    if (command == F_GETLK && result == 0) {
        if (asked.l_type == F_UNLCK) {
            lock.l_type = F_UNLCK;
        } else {
            lock = asked;
            // The system doesn't know whose lock it is: another image's, if there is one.
            const pid_t other = lock.l_pid == -1 && S_ISREG(status.st_mode)
                                    ? other_locker(status, is_noted(status))
                                    : 0;
            lock.l_pid = other != 0 ? other : lock.l_pid;
        }
    }
    return result;
}

void FileLocks::end_locks(const Holder& holder) {
    if (holder.noted) {
        forget_locked(holder.device, holder.inode);
    }
    // A child of fork has the description too, so closing would not end the locks.
    struct flock all {};
    all.l_type = F_UNLCK;
    all.l_whence = SEEK_SET;
    struct stat status {};
    if (::fstat(holder.descriptor, &status) == 0 && status.st_dev == holder.device &&
        status.st_ino == holder.inode) { // else the program has closed it, by its number
        ::fcntl(holder.descriptor, F_OFD_SETLK, &all);
        ElfFile::drop_descriptor(holder.descriptor);
    }
}

void FileLocks::forget(int descriptor) {
    const int error = errno;
    struct stat status {};
    if (::fstat(descriptor, &status) == 0) {
        const BlockedSignals blocked; // a handler may close files
        const std::lock_guard guard(lock_);
        const auto found = std::find_if(holders_.begin(), holders_.end(), [&](const Holder& one) {
            return one.device == status.st_dev && one.inode == status.st_ino;
        });
        if (found != holders_.end()) {
            end_locks(*found);
            holders_.erase(found);
            count_.store(holders_.size(), std::memory_order_relaxed);
        }
    }
    errno = error;
}

void FileLocks::forget_range(unsigned first, unsigned last) {
    const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc/thread-self/fd"), ::closedir);
    const dirent* entry = nullptr;
    while (folder != nullptr && (entry = ::readdir(folder.get())) != nullptr) {
        const unsigned long number = std::strtoul(entry->d_name, nullptr, 10);
        if (entry->d_name[0] != '.' && number >= first && number <= last) {
            forget(static_cast<int>(number));
        }
    }
}

void FileLocks::forget_all() {
    const BlockedSignals blocked;
    const std::lock_guard guard(lock_);
    for (const Holder& holder : holders_) {
        end_locks(holder);
    }
    holders_.clear();
    count_.store(0, std::memory_order_relaxed);
}

// (As note takes them: the image's lock before that of all images.)
void FileLocks::lock_for_fork() {
    lock_.lock();
    locked_files().lock.lock();
}

void FileLocks::unlock_after_fork() {
    locked_files().lock.unlock();
    lock_.unlock();
}

void FileLocks::renew_locks() {
    std::construct_at(&locked_files().lock);
    std::construct_at(&lock_);
    for (const Holder& holder : holders_) {
        ::close(holder.descriptor);
    }
    holders_.clear();
    count_.store(0, std::memory_order_relaxed);
}

} // namespace warren::image
