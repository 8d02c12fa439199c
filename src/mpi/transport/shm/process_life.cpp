#include "mpi/transport/shm/process_life.hpp"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <unistd.h>

namespace warren::transport {

namespace {

// Fields of /proc/<number>/stat (proc(5)) behind the name, which may have anything in it.
constexpr int state_field = 3;
constexpr int threads_field = 20;
constexpr int begin_field = 22;

struct Shown {
    char state = 0;
    unsigned long threads = 0;
    std::uint64_t begin_ns = 0; // rounded down to the system's ticks
};

bool read_shown(int process, Shown& shown) {
    char path[32];
    std::snprintf(path, sizeof path, "/proc/%d/stat", process);
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return false;
    }
    char text[1024];
    const ssize_t got = read(file, text, sizeof text - 1);
    close(file);
    if (got <= 0) {
        return false;
    }
    text[got] = '\0';
    const char* at = std::strrchr(text, ')');
    for (int field = state_field - 1; at != nullptr && field < begin_field; ++field) {
        at = std::strchr(at, ' ');
        if (at == nullptr) {
            break;
        }
        ++at;
        if (field + 1 == state_field) {
            shown.state = *at;
        } else if (field + 1 == threads_field) {
            shown.threads = std::strtoul(at, nullptr, 10);
        }
    }
    if (at == nullptr) {
        return false;
    }
    const auto ticks_per_s = static_cast<std::uint64_t>(sysconf(_SC_CLK_TCK));
    shown.begin_ns = std::strtoull(at, nullptr, 10) * (1'000'000'000 / ticks_per_s);
    return true;
}

bool is_there(int process) {
    return kill(process, 0) == 0 || errno != ESRCH;
}

} // namespace

std::uint64_t process_clock_ns() {
    timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(now.tv_nsec);
}

bool has_ended(int process, std::uint64_t seen_ns) {
    if (!is_there(process)) {
        return true;
    }
    Shown shown;
    if (!read_shown(process, shown)) {
        return !is_there(process); // it may have ended meanwhile
    }
    // A first thread that has ended is shown like a whole process of which nobody has yet collected
    // what is left.
    const bool is_over = shown.state == 'Z' || shown.state == 'X';
    return (is_over && shown.threads <= 1) || shown.begin_ns > seen_ns;
}

} // namespace warren::transport
