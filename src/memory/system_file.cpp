#include "memory/system_file.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace warren::memory {

bool read_start(const char* path, char* text, std::size_t bytes) {
    const int saved = errno;
    // The functions open, read and close are where a thread may be cancelled, with locks of ours.
    const long file = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    std::size_t length = 0;
    while (file >= 0 && length < bytes - 1) {
        const long got = syscall(SYS_read, file, text + length, bytes - 1 - length);
        if (got <= 0 && !(got < 0 && errno == EINTR)) {
            break;
        }
        length += got > 0 ? static_cast<std::size_t>(got) : 0;
    }
    if (file >= 0) {
        syscall(SYS_close, file);
    }
    text[length] = '\0';
    errno = saved;
    return length > 0;
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
