#include "launch/host/thread_status.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace warren::launch {

std::uint64_t signals_of_thread(pid_t thread, const char* title, std::uint64_t otherwise) {
    char text[80];
    std::snprintf(text, sizeof text, "/proc/self/task/%d/status", static_cast<int>(thread));
    const int file = open(text, O_RDONLY | O_CLOEXEC);
    char status[4096];
    const ssize_t bytes = file >= 0 ? read(file, status, sizeof status - 1) : -1;
    if (file >= 0) {
        close(file);
    }
    status[std::max(bytes, ssize_t{0})] = 0;
    const char* found = std::strstr(status, title);
    return found != nullptr ? std::strtoull(found + std::strlen(title), nullptr, 16) : otherwise;
}

} // namespace warren::launch
