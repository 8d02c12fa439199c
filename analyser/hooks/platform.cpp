// The recorder's platform (counts/platform.hpp), by system calls of this library's own, because the
// program's functions may be followed. Descriptors of the recording's files have high numbers and
// stay open, as there may be no free ones later. The program may close them and use their numbers
// for other files, and threads may have descriptors of their own. So each use, which is rare, first
// checks what the number is, and opens the file again if it is another.

#include "analyser/counts/platform.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "analyser/hooks/heap.hpp"
#include "analyser/hooks/hooks.hpp"
#include "analyser/recorder/file_limit.hpp"
#include "base/standard_error.hpp"

namespace warren::locality::counts::platform {

namespace {

// 0: free. 1: held. 2: held, and a thread sleeps.
using Word = std::uint32_t;

// Thread rule: the recorder's lock.
constexpr int most_files = 64;
struct File {
    char* path; // null: none
    int number; // of its descriptor
    dev_t device;
    ino_t inode;
    std::size_t bytes; // that it has
};
File files[most_files];

constinit StandardError standard_error;

void closed(int descriptor) {
    syscall(SYS_close, descriptor);
}

bool is_at(const File& file, int number) {
    struct stat about {};
    return fstat(number, &about) == 0 && about.st_dev == file.device && about.st_ino == file.inode;
}

// A number below the limit of descriptors that keeps the kernel's table of them small.
int high_number() {
    constexpr rlim_t highest = 4096;
    constexpr rlim_t room = most_files;
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return 0;
    }
    const rlim_t end = std::min(limit.rlim_cur, highest);
    return static_cast<int>(end > 2 * room ? end - room : end / 2);
}

// Moves the descriptor to that number or a higher one. Returns it unchanged if that fails.
int moved_to(int number, int descriptor) {
    const long high = descriptor < 0 ? -1 : syscall(SYS_fcntl, descriptor, F_DUPFD_CLOEXEC, number);
    if (high < 0) {
        return descriptor;
    }
    closed(descriptor);
    return static_cast<int>(high);
}

// A descriptor of the file for a scope: the kept one if it is still there. The kept number doesn't
// change, as threads with descriptors of their own would change it in turns.
class Opened {
  public:
    explicit Opened(const File& file) : number_(file.number), kept_(is_at(file, file.number)) {
        if (!kept_) {
            number_ = moved_to(
                file.number,
                static_cast<int>(syscall(SYS_openat, AT_FDCWD, file.path, O_WRONLY | O_CLOEXEC)));
            kept_ = number_ == file.number;
        }
    }
    Opened(const Opened&) = delete;
    Opened& operator=(const Opened&) = delete;
    ~Opened() {
        if (!kept_ && number_ >= 0) {
            closed(number_);
        }
    }
    int number() const { return number_; } // negative: it can't be opened

  private:
    int number_;
    bool kept_;
};

bool write_all(int descriptor, const void* data, std::size_t bytes) {
    const auto* at = static_cast<const char*>(data);
    while (bytes != 0) {
        const long done = syscall(SYS_write, descriptor, at, bytes);
        if (done <= 0) {
            return false;
        }
        at += done;
        bytes -= static_cast<std::size_t>(done);
    }
    return true;
}

} // namespace

void* make_lock() {
    auto* const word = static_cast<Word*>(hooks::allocate(sizeof(Word)));
    *word = 0;
    return word;
}

bool try_lock(void* lock) {
    Word free = 0;
    ++hooks::mine.locks;
    if (__atomic_compare_exchange_n(static_cast<Word*>(lock), &free, 1, false, __ATOMIC_ACQUIRE,
                                    __ATOMIC_RELAXED)) {
        return true;
    }
    --hooks::mine.locks;
    return false;
}

void lock(void* lock) {
    if (try_lock(lock)) {
        return;
    }
    auto* const word = static_cast<Word*>(lock);
    ++hooks::mine.locks;
    while (__atomic_exchange_n(word, 2, __ATOMIC_ACQUIRE) != 0) {
        syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, 2, nullptr, nullptr, 0);
    }
}

void unlock(void* lock) {
    auto* const word = static_cast<Word*>(lock);
    if (__atomic_exchange_n(word, 0, __ATOMIC_RELEASE) == 2) {
        syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
    }
    --hooks::mine.locks;
}

int open_new(const char* path) {
    for (int index = 0; index < most_files; ++index) {
        File& file = files[index];
        if (file.path != nullptr) {
            continue;
        }
        const int number =
            moved_to(high_number(),
                     static_cast<int>(syscall(SYS_openat, AT_FDCWD, path,
                                              O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)));
        struct stat about {};
        const std::size_t bytes = std::strlen(path) + 1;
        char* const kept = number < 0 ? nullptr : static_cast<char*>(hooks::allocate(bytes));
        if (kept == nullptr || fstat(number, &about) != 0) {
            return -1;
        }
        std::memcpy(kept, path, bytes);
        file = {kept, number, about.st_dev, about.st_ino, 0};
        return index;
    }
    return -1;
}

std::ptrdiff_t write(int file, const void* data, std::size_t bytes) {
    File& of = files[file];
    const std::size_t most = allowed_bytes(of.bytes, bytes);
    const Opened opened(of);
    if (most == 0 || opened.number() < 0) {
        return -1;
    }
    const long done = syscall(SYS_pwrite64, opened.number(), data, most, of.bytes);
    of.bytes += done > 0 ? static_cast<std::size_t>(done) : 0;
    return done;
}

std::ptrdiff_t size_of(int file) {
    return static_cast<std::ptrdiff_t>(files[file].bytes);
}

bool truncate(int file, std::size_t bytes) {
    if (::truncate(files[file].path, static_cast<off_t>(bytes)) != 0) {
        return false;
    }
    files[file].bytes = bytes;
    return true;
}

bool overwrite(int file, const void* data, std::size_t bytes) {
    File& of = files[file];
    const Opened opened(of);
    if (allowed_bytes(0, bytes) < bytes || opened.number() < 0) {
        return false;
    }
    const long done = syscall(SYS_pwrite64, opened.number(), data, bytes, 0L);
    of.bytes = done > 0 ? std::max(of.bytes, static_cast<std::size_t>(done)) : of.bytes;
    return done == static_cast<long>(bytes);
}

void close(int file) {
    File& of = files[file];
    if (is_at(of, of.number)) {
        closed(of.number);
    }
    hooks::release(of.path, std::strlen(of.path) + 1);
    of = {};
}

void* allocate(std::size_t bytes) {
    return hooks::allocate(bytes);
}

void release(void* memory, std::size_t bytes) {
    hooks::release(memory, bytes);
}

// Once the first thread has ended, the kernel doesn't tell any more.
std::string executable() {
    static char path[4096];
    static ssize_t bytes = 0;
    if (bytes <= 0) {
        bytes = readlink("/proc/self/exe", path, sizeof path);
    }
    return bytes > 0 ? std::string(path, static_cast<std::size_t>(bytes)) : "";
}

std::size_t page_bytes() {
    return static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

void sleep_ms(unsigned ms) {
    const timespec pause{ms / 1000, static_cast<long>(ms % 1000) * 1'000'000};
    nanosleep(&pause, nullptr);
}

void say(const std::string& text) {
    const std::string line = "warren locality: " + text + "\n";
    write_all(standard_error.descriptor(), line.data(), line.size());
}

void leave_standard_error() {
    standard_error.leave_to_parent();
}

void keep_standard_error() {
    standard_error.keep(true);
}

std::vector<std::string> limits(bool /*sample*/) {
    return {
        "accesses are counted where the compiler has put a call (-fsanitize=thread): not those of "
        "libraries that were compiled without, of the C library beyond memcpy, memmove and memset, "
        "of assembly, of the stack that compilers use by themselves, and within system calls",
        "instructions are not counted: load imbalance goes by processor time"};
}

} // namespace warren::locality::counts::platform
