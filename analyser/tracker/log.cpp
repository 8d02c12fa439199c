#include "analyser/tracker/log.hpp"

#include <cerrno>
#include <fcntl.h>
#include <initializer_list>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "analyser/recorder/file_limit.hpp"

namespace warren::locality::tracker {

namespace {

constexpr std::uint64_t page_bytes = 4096;
constexpr std::uint64_t first_window_bytes = 16 * page_bytes;
constexpr std::uint64_t window_bytes = 256 * page_bytes;

// Direct system calls, as the C library's names are hooks here.
template <typename... Arguments>
long call(long number, Arguments... arguments) {
    return syscall(number, arguments...);
}

int open_file(const LogFolder& folder, const char* name, int flags) {
    char path[sizeof folder.path + 64];
    std::uint64_t length = 0;
    for (const char* part : {folder.path, "/", name}) {
        for (; *part != 0; ++part) {
            path[length++] = *part;
        }
    }
    path[length] = 0;
    return static_cast<int>(call(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, 0666));
}

// Allocates disk blocks for [offset, offset + bytes) of a file; writes zeros where there is no
// fallocate.
bool make_blocks(int descriptor, std::uint64_t offset, std::uint64_t bytes) {
    if (allowed_bytes(offset, bytes) < bytes) {
        return false;
    }
    if (call(SYS_fallocate, descriptor, 0, offset, bytes) == 0) {
        return true;
    }
    if (errno != EOPNOTSUPP) {
        return false;
    }
    static const char zeros[page_bytes] = {};
    for (std::uint64_t done = 0; done < bytes; done += page_bytes) {
        if (call(SYS_pwrite64, descriptor, zeros, page_bytes, offset + done) !=
            static_cast<long>(page_bytes)) {
            return false;
        }
    }
    return true;
}

// Allocates `most` bytes, or half of it, a quarter …, in whole pages, as far as quota and disk
// permit. 0: none.
std::uint64_t take_blocks(LogFolder& folder, int descriptor, std::uint64_t offset,
                          std::uint64_t most) {
    for (std::uint64_t bytes = most; bytes >= page_bytes; bytes /= 2) {
        if (!folder.quota.take(bytes)) {
            continue;
        }
        if (make_blocks(descriptor, offset, bytes)) {
            return bytes;
        }
        folder.quota.give_back(bytes);
    }
    return 0;
}

char* map(int descriptor, std::uint64_t offset, std::uint64_t bytes) {
    const long at = call(SYS_mmap, nullptr, bytes, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_POPULATE, descriptor, offset);
    return at == -1 ? nullptr : reinterpret_cast<char*>(at);
}

} // namespace

bool Log::open(LogFolder& folder, const char* name, const FileHeader& header) {
    if (full_ || folder.quota.left() < page_bytes) {
        full_ = true;
        lose();
        return false;
    }
    const int descriptor = open_file(folder, name, O_RDWR | O_CREAT | O_EXCL);
    if (descriptor >= 0 && sum_ != nullptr) {
        sum_->made();
    }
    const std::uint64_t bytes =
        descriptor < 0 ? 0 : take_blocks(folder, descriptor, 0, first_window_bytes);
    full_ = bytes == 0;
    if (!full_) {
        char* memory = map(descriptor, 0, page_bytes);
        control_ = reinterpret_cast<FileHeader*>(memory);
        window_ = map(descriptor, 0, bytes);
        full_ = control_ == nullptr || window_ == nullptr;
    }
    if (descriptor >= 0) {
        call(SYS_close, descriptor);
    }
    if (full_) {
        control_ = nullptr;
        lose();
        return false;
    }
    *control_ = header;
    if (sum_ != nullptr) {
        checksum_.add(&header, sizeof header);
        sum_->wrote(0, checksum_.value());
    }
    window_begin_ = 0;
    window_end_ = bytes;
    next_ = sizeof(FileHeader);
    return true;
}

char* Log::make_place(LogFolder& folder, const char* name, std::uint64_t bytes) {
    if (full_ || (next_ + bytes > window_end_ && !map_more(folder, name))) {
        full_ = true;
        lose();
        return nullptr;
    }
    char* place = window_ + (next_ - window_begin_);
    next_ += bytes;
    ++records_;
    return place;
}

// With a LogSum the header stays unchanged, as its checksum includes it.
void Log::lose() {
    if (sum_ != nullptr) {
        sum_->lose();
    } else if (control_ != nullptr) {
        ++control_->lost;
    }
}

// The next window begins with the page in which the last one's records end.
bool Log::map_more(LogFolder& folder, const char* name) {
    if (folder.quota.left() < page_bytes) {
        return false;
    }
    const int descriptor = open_file(folder, name, O_RDWR);
    if (descriptor < 0) {
        return false;
    }
    const std::uint64_t begin = next_ & ~(page_bytes - 1);
    char* memory = nullptr;
    const std::uint64_t bytes = take_blocks(folder, descriptor, window_end_, window_bytes);
    if (bytes != 0) {
        memory = map(descriptor, begin, window_end_ + bytes - begin);
    }
    call(SYS_close, descriptor);
    if (memory == nullptr) {
        return false;
    }
    call(SYS_munmap, window_, window_end_ - window_begin_);
    window_ = memory;
    window_begin_ = begin;
    window_end_ += bytes;
    return true;
}

// The first word is written last: a reader that finds it finds the rest. Loops, because memcpy's
// own page faults would count as the program's.
void Log::copy(char* to, const char* from, std::uint64_t bytes) {
    const auto* source = reinterpret_cast<const std::uint32_t*>(from);
    auto* target = reinterpret_cast<volatile std::uint32_t*>(to);
    for (std::uint64_t word = 1; word < bytes / 4; ++word) {
        target[word] = source[word];
    }
    __atomic_store_n(target, source[0], __ATOMIC_RELEASE);
}

} // namespace warren::locality::tracker
