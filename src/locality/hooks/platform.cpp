// What the recorder needs (counts/platform.hpp), by system calls of this library's own: the
// program's functions may be followed, and its descriptors are its own. So a file is opened for
// each time that something is written, which is seldom.

#include "locality/counts/platform.hpp"

#include <atomic>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "locality/hooks/heap.hpp"
#include "locality/hooks/hooks.hpp"

namespace warren::locality::counts::platform {

namespace {

// 0 free, 1 held, 2 held and somebody sleeps.
using Word = std::uint32_t;

// Paths of files that are written. Thread rule: the recorder's lock.
constexpr int most_files = 64;
char* paths[most_files];

int opened(int file, int flags) {
    return static_cast<int>(syscall(SYS_openat, AT_FDCWD, paths[file], flags | O_CLOEXEC, 0666));
}

void closed(int descriptor) {
    syscall(SYS_close, descriptor);
}

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
    for (int file = 0; file < most_files; ++file) {
        if (paths[file] != nullptr) {
            continue;
        }
        const std::size_t bytes = std::strlen(path) + 1;
        paths[file] = static_cast<char*>(hooks::allocate(bytes));
        if (paths[file] == nullptr) {
            return -1;
        }
        std::memcpy(paths[file], path, bytes);
        const int descriptor = opened(file, O_WRONLY | O_CREAT | O_EXCL);
        if (descriptor < 0) {
            close(file);
            return -1;
        }
        closed(descriptor);
        return file;
    }
    return -1;
}

std::ptrdiff_t write(int file, const void* data, std::size_t bytes) {
    const int descriptor = opened(file, O_WRONLY | O_APPEND);
    if (descriptor < 0) {
        return -1;
    }
    const long done = syscall(SYS_write, descriptor, data, bytes);
    closed(descriptor);
    return done;
}

std::ptrdiff_t size_of(int file) {
    struct stat about {};
    return stat(paths[file], &about) == 0 ? about.st_size : -1;
}

bool truncate(int file, std::size_t bytes) {
    return ::truncate(paths[file], static_cast<off_t>(bytes)) == 0;
}

bool overwrite(int file, const void* data, std::size_t bytes) {
    const int descriptor = opened(file, O_WRONLY);
    if (descriptor < 0) {
        return false;
    }
    const bool done = write_all(descriptor, data, bytes);
    closed(descriptor);
    return done;
}

void close(int file) {
    hooks::release(paths[file], std::strlen(paths[file]) + 1);
    paths[file] = nullptr;
}

void* allocate(std::size_t bytes) {
    return hooks::allocate(bytes);
}

void release(void* memory, std::size_t bytes) {
    hooks::release(memory, bytes);
}

// The kernel doesn't tell any more once the first thread has ended.
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
    write_all(STDERR_FILENO, line.data(), line.size());
}

std::vector<std::string> limits(bool /*sample*/) {
    return {
        "accesses are counted where the compiler has put a call (-fsanitize=thread): not those of "
        "libraries that were compiled without, of the C library beyond memcpy, memmove and memset, "
        "of assembly, of the stack that compilers use by themselves, and within system calls",
        "instructions are not counted: load imbalance goes by processor time"};
}

} // namespace warren::locality::counts::platform
