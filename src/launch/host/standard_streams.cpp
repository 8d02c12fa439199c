#include "launch/host/standard_streams.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <fcntl.h>
#include <linux/close_range.h>
#include <memory>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include <vector>

#include "image/host_interface.hpp"
#include "launch/host/ranks.hpp"

namespace warren::launch {

namespace {

// The place of 0, 1 and 2 among the process's descriptors; -1: closed. The C library's streams of
// the rank, and the programs that it starts, know the place that it was started with: that stays
// the rank's, whatever is put there.
struct Streams {
    std::atomic<int> place[3];
    int reserved[3]; // -1: none (0 to 2 are the host's own, and all ranks share the empty input)
    bool shared;     // the reserved places of output and errors are those of other ranks, too
};

std::unique_ptr<Streams[]> all_streams;
std::uint32_t stream_count = 0;
int nothing = -1;                  // /dev/null, to be read
std::atomic<bool> is_child{false}; // of fork: it has them where programs expect them

// The host's own descriptors and its ranks' pipes, which no program has opened.
std::vector<bool> of_host;

bool is_of_host(int descriptor) {
    return !is_child.load(std::memory_order_relaxed) && descriptor > 2 &&
           static_cast<std::size_t>(descriptor) < of_host.size() &&
           of_host[static_cast<std::size_t>(descriptor)];
}

Streams* streams_of_caller() {
    if (is_child.load(std::memory_order_relaxed)) {
        return nullptr;
    }
    const std::uint32_t rank = rank_of_thread();
    return rank < stream_count ? &all_streams[rank] : nullptr;
}

bool is_standard(int descriptor) {
    return descriptor >= 0 && descriptor <= 2;
}

// The process's descriptor that a program means.
int real(int descriptor) {
    if (!is_standard(descriptor)) {
        return descriptor;
    }
    Streams* own = streams_of_caller();
    return own != nullptr ? own->place[descriptor].load(std::memory_order_relaxed) : descriptor;
}

ssize_t read_some(int descriptor, void* data, std::size_t bytes) {
    return read(real(descriptor), data, bytes);
}

ssize_t write_some(int descriptor, const void* data, std::size_t bytes) {
    return write(real(descriptor), data, bytes);
}

ssize_t read_pieces(int descriptor, const iovec* pieces, int count) {
    return readv(real(descriptor), pieces, count);
}

ssize_t write_pieces(int descriptor, const iovec* pieces, int count) {
    return writev(real(descriptor), pieces, count);
}

// What was in a place has been given up. (The host writes its own messages to what it was started
// with.)
void empty(const Streams& streams, int number, int place) {
    if (place == streams.reserved[number]) {
        if (!streams.shared) {
            dup3(nothing, place, O_CLOEXEC);
        }
    } else if (!is_standard(place) && place != nothing) {
        close(place);
    }
}

int close_one(int descriptor) {
    Streams* own = is_standard(descriptor) ? streams_of_caller() : nullptr;
    const int place = own != nullptr ? own->place[descriptor].exchange(-1) : descriptor;
    if (own == nullptr && is_of_host(descriptor)) {
        errno = EBADF; // as if the program were alone
        return -1;
    }
    if (own == nullptr) {
        return close(place);
    }
    if (place < 0) {
        errno = EBADF;
        return -1;
    }
    empty(*own, descriptor, place);
    return 0;
}

// Of programs that close whatever there is.
int close_several(unsigned first, unsigned last, int flags) {
    if (is_child.load(std::memory_order_relaxed) || (flags & CLOSE_RANGE_CLOEXEC) != 0) {
        return close_range(first, last, flags);
    }
    constexpr unsigned limit = 1 << 20;
    const int error = errno;
    for (unsigned one = first; one <= last && one < limit; ++one) {
        close_one(static_cast<int>(one));
    }
    errno = error;
    return 0;
}

void close_from(int first) {
    close_several(static_cast<unsigned>(std::max(first, 0)), ~0U, 0);
}

int duplicate(int descriptor) {
    return dup(real(descriptor));
}

// Before something else is put where other ranks write, too: the rank gets places of its own there.
// False: there is no descriptor left.
bool stop_sharing(Streams& own) {
    for (int number = 1; own.shared && number <= 2; ++number) {
        const int before = own.reserved[number];
        const int copy = fcntl(before, F_DUPFD_CLOEXEC, 3);
        if (copy < 0) {
            return false;
        }
        warren_image_move_stream(before, copy);
        own.reserved[number] = copy;
        if (own.place[number].load(std::memory_order_relaxed) == before) {
            own.place[number].store(copy, std::memory_order_relaxed);
        }
    }
    own.shared = false;
    return true;
}

// The C library's puts the new file where the stream had its own.
std::FILE* reopen(const char* path, const char* mode, std::FILE* stream) {
    Streams* own = streams_of_caller();
    const int place = stream != nullptr ? fileno(stream) : -1;
    if (own != nullptr && own->shared && place >= 0 &&
        (place == own->reserved[1] || place == own->reserved[2]) && !stop_sharing(*own)) {
        return nullptr;
    }
    return std::freopen(path, mode, stream);
}

int duplicate_as(int from, int to, int flags) {
    Streams* own = is_standard(to) ? streams_of_caller() : nullptr;
    if (own == nullptr) {
        return from == to && flags == 0 ? dup2(real(from), to) : dup3(real(from), to, flags);
    }
    if (from == to) {
        return fcntl(real(from), F_GETFD) < 0 ? -1 : to;
    }
    if (own->shared && !stop_sharing(*own)) {
        return -1;
    }
    const int source = real(from);
    if (const int place = own->reserved[to]; place >= 0) {
        if (source != place && dup3(source, place, O_CLOEXEC) < 0) {
            return -1;
        }
        own->place[to].store(place, std::memory_order_relaxed);
        return to;
    }
    const int copy = fcntl(source, F_DUPFD_CLOEXEC, 3);
    if (copy < 0) {
        return -1;
    }
    if (const int former = own->place[to].exchange(copy); former >= 0) {
        empty(*own, to, former);
    }
    return to;
}

int duplicate_to(int from, int to) {
    return duplicate_as(from, to, 0);
}

int control(int descriptor, int command, ...) {
    va_list arguments;
    va_start(arguments, command);
    void* argument = va_arg(arguments, void*); // as wide as any
    va_end(arguments);
    return fcntl(real(descriptor), command, argument);
}

int control_device(int descriptor, unsigned long request, ...) {
    va_list arguments;
    va_start(arguments, request);
    void* argument = va_arg(arguments, void*);
    va_end(arguments);
    return ioctl(real(descriptor), request, argument);
}

int is_terminal(int descriptor) {
    return isatty(real(descriptor));
}

int describe(int descriptor, struct stat* status) {
    return fstat(real(descriptor), status);
}

off_t move_to(int descriptor, off_t offset, int from) {
    return lseek(real(descriptor), offset, from);
}

int synchronise(int descriptor) {
    return fsync(real(descriptor));
}

int print_list(int descriptor, const char* format, va_list arguments) {
    return vdprintf(real(descriptor), format, arguments);
}

int print(int descriptor, const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int count = vdprintf(real(descriptor), format, arguments);
    va_end(arguments);
    return count;
}

// In a child of fork: the descriptors are its own.
void take_streams() {
    Streams* own = streams_of_caller();
    is_child.store(true, std::memory_order_relaxed);
    for (int number = 0; own != nullptr && number < 3; ++number) {
        const int place = own->place[number].load(std::memory_order_relaxed);
        if (place < 0) {
            close(number);
        } else if (place != number) {
            dup2(place, number);
        }
    }
}

} // namespace

void prepare_streams(const HostPlan& plan) {
    stream_count = static_cast<std::uint32_t>(plan.ranks.size());
    all_streams = std::make_unique<Streams[]>(stream_count);
    nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    for (std::uint32_t rank = 0; rank < stream_count; ++rank) {
        const HostPlan::Rank& planned = plan.ranks[rank];
        Streams& streams = all_streams[rank];
        streams.place[0] = planned.input >= 0 ? planned.input : nothing;
        streams.place[1] = planned.output;
        streams.place[2] = planned.errors;
        streams.reserved[0] = -1;
        streams.reserved[1] = planned.output;
        streams.reserved[2] = planned.errors;
        const auto same = [&](std::uint32_t other) {
            return other < stream_count && plan.ranks[other].output == planned.output;
        };
        streams.shared = same(rank + 1) || (rank > 0 && same(rank - 1));
    }
    const auto keep = [](int descriptor) {
        if (descriptor >= 0) {
            const auto index = static_cast<std::size_t>(descriptor);
            of_host.resize(std::max(of_host.size(), index + 1));
            of_host[index] = true;
        }
    };
    for (const HostPlan::Rank& rank : plan.ranks) {
        keep(rank.output);
        keep(rank.errors);
    }
    for (const int one : plan.kept) {
        keep(one);
    }
    keep(plan.reports);
    keep(nothing);
    pthread_atfork(nullptr, nullptr, take_streams);
}

int place_of_standard(int number) {
    return real(number);
}

std::span<const warren_image_binding> stream_bindings() {
    static const warren_image_binding bindings[] = {
        {"read", reinterpret_cast<void*>(&read_some)},
        {"__read", reinterpret_cast<void*>(&read_some)},
        {"write", reinterpret_cast<void*>(&write_some)},
        {"__write", reinterpret_cast<void*>(&write_some)},
        {"readv", reinterpret_cast<void*>(&read_pieces)},
        {"writev", reinterpret_cast<void*>(&write_pieces)},
        {"close_range", reinterpret_cast<void*>(&close_several)},
        {"closefrom", reinterpret_cast<void*>(&close_from)},
        {"close", reinterpret_cast<void*>(&close_one)},
        {"__close", reinterpret_cast<void*>(&close_one)},
        {"dup", reinterpret_cast<void*>(&duplicate)},
        {"dup2", reinterpret_cast<void*>(&duplicate_to)},
        {"dup3", reinterpret_cast<void*>(&duplicate_as)},
        {"fcntl", reinterpret_cast<void*>(&control)},
        {"fcntl64", reinterpret_cast<void*>(&control)},
        {"ioctl", reinterpret_cast<void*>(&control_device)},
        {"isatty", reinterpret_cast<void*>(&is_terminal)},
        {"fstat", reinterpret_cast<void*>(&describe)},
        {"fstat64", reinterpret_cast<void*>(&describe)},
        {"lseek", reinterpret_cast<void*>(&move_to)},
        {"lseek64", reinterpret_cast<void*>(&move_to)},
        {"fsync", reinterpret_cast<void*>(&synchronise)},
        {"freopen", reinterpret_cast<void*>(&reopen)},
        {"freopen64", reinterpret_cast<void*>(&reopen)},
        {"dprintf", reinterpret_cast<void*>(&print)},
        {"vdprintf", reinterpret_cast<void*>(&print_list)},
    };
    return bindings;
}

void close_streams(std::uint32_t rank) {
    Streams& streams = all_streams[rank];
    for (int number = 0; number < 3; ++number) {
        const int place = streams.place[number].exchange(-1);
        if (place >= 0) {
            empty(streams, number, place);
        }
    }
}

} // namespace warren::launch
