#include "memory/heap/system_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace warren::memory {

namespace {

// The functions open, read and close are where a thread may be cancelled, with locks of ours.
long open_to_read(const char* path) {
    return syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
}

// Bytes that were read; 0: there are no more.
std::size_t read_some(long file, char* text, std::size_t bytes) {
    long got = -1;
    do {
        got = syscall(SYS_read, file, text, bytes);
    } while (got < 0 && errno == EINTR);
    return got > 0 ? static_cast<std::size_t>(got) : 0;
}

void close_file(long file) {
    if (file >= 0) {
        syscall(SYS_close, file);
    }
}

} // namespace

bool read_start(const char* path, char* text, std::size_t bytes) {
    const int saved = errno;
    const long file = open_to_read(path);
    std::size_t length = 0;
    while (file >= 0 && length < bytes - 1) {
        const std::size_t got = read_some(file, text + length, bytes - 1 - length);
        if (got == 0) {
            break;
        }
        length += got;
    }
    close_file(file);
    text[length] = '\0';
    errno = saved;
    return length > 0;
}

SystemFile::SystemFile(const char* path) {
    const int saved = errno;
    file_ = open_to_read(path);
    errno = saved;
}

SystemFile::~SystemFile() {
    const int saved = errno;
    close_file(file_);
    errno = saved;
}

const char* SystemFile::next_line() {
    const int saved = errno;
    for (;;) {
        auto* end = static_cast<char*>(std::memchr(text_ + begin_, '\n', end_ - begin_));
        if (end == nullptr) {
            std::memmove(text_, text_ + begin_, end_ - begin_);
            end_ -= begin_;
            begin_ = 0;
            const std::size_t got =
                file_ >= 0 ? read_some(file_, text_ + end_, sizeof text_ - 1 - end_) : 0;
            end_ += got;
            if (got != 0) {
                continue;
            }
            errno = saved;
            if (end_ == 0) {
                return nullptr;
            }
            end = text_ + end_; // the file's end, or that of the room
        }
        *end = '\0';
        const char* line = text_ + begin_;
        begin_ = std::min(static_cast<std::size_t>(end - text_) + 1, end_);
        errno = saved;
        return line;
    }
}

bool next_of_list(const char*& at, std::uint64_t& first, std::uint64_t& last) {
    if (*at < '0' || *at > '9') {
        return false;
    }
    char* end = nullptr;
    first = std::strtoull(at, &end, 10);
    last = *end == '-' ? std::strtoull(end + 1, &end, 10) : first;
    at = *end == ',' ? end + 1 : end;
    return true;
}

bool number_behind(const char* text, const char* label, std::uint64_t& number) {
    const std::size_t length = std::strlen(label);
    for (const char* line = text; line != nullptr && *line != '\0';) {
        if (std::strncmp(line, label, length) == 0) {
            number = std::strtoull(line + length, nullptr, 10);
            return true;
        }
        line = std::strchr(line, '\n');
        line = line != nullptr ? line + 1 : nullptr;
    }
    return false;
}

} // namespace warren::memory
