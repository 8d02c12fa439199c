#include "launch/host/standard_streams.hpp"
#include "launch/host/descriptor_signals.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <fcntl.h>
#include <linux/close_range.h>
#include <memory>
#include <mutex>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>
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
    std::atomic<int> flags[3]; // of the numbers, as F_SETFD has set them
    int reserved[3]; // -1: none (0 to 2 are the host's own, and all ranks share the empty input)
    int first[3];    // what `reserved` was before sharing stopped: the program may know it
    bool shared;     // the reserved places of output and errors are those of other ranks, too
};

std::unique_ptr<Streams[]> all_streams;
std::uint32_t stream_count = 0;
int nothing = -1;                  // /dev/null, to be read
std::atomic<bool> is_child{false}; // of fork: it has them where programs expect them

// The host's own descriptors and its ranks' places, which no program has opened.
std::unique_ptr<std::atomic<bool>[]> of_host;
std::size_t of_host_size = 0;

// Held from making a place until keep() has recorded it, and while closing all descriptors that are
// not recorded.
std::mutex places_lock;

void keep(int descriptor, bool kept = true) {
    if (descriptor >= 0 && static_cast<std::size_t>(descriptor) < of_host_size) {
        of_host[static_cast<std::size_t>(descriptor)].store(kept, std::memory_order_relaxed);
    }
}

bool is_of_host(int descriptor) {
    return !is_child.load(std::memory_order_relaxed) && descriptor > 2 &&
           static_cast<std::size_t>(descriptor) < of_host_size &&
           of_host[static_cast<std::size_t>(descriptor)].load(std::memory_order_relaxed);
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

// Which of 0, 1 and 2 a program means, perhaps by what fileno says of its streams; -1: none.
int number_of(const Streams& own, int descriptor) {
    if (is_standard(descriptor)) {
        return descriptor;
    }
    for (int number = 0; descriptor >= 0 && number < 3; ++number) {
        if (descriptor == own.reserved[number] || descriptor == own.first[number] ||
            descriptor == own.place[number].load(std::memory_order_relaxed)) {
            return number;
        }
    }
    return -1;
}

// The process's descriptor that a program means.
int real(int descriptor) {
    const Streams* own = streams_of_caller();
    const int number = own != nullptr ? number_of(*own, descriptor) : -1;
    return number < 0 ? descriptor : own->place[number].load(std::memory_order_relaxed);
}

// Closes what a place held, once the rank has given it up. (The host writes its own messages to the
// descriptors that it was started with.)
void empty(const Streams& streams, int number, int place) {
    if (place == streams.reserved[number]) {
        if (!streams.shared) {
            dup3(nothing, place, O_CLOEXEC);
        }
    } else if (!is_standard(place) && place != nothing) {
        keep(place, false);
        close(place);
    }
}

// Before something else is put where other ranks write, too: the rank gets places of its own there.
// False: there is no descriptor left.
bool stop_sharing(Streams& own) {
    if (!own.shared) {
        return true;
    }
    const std::lock_guard guard(places_lock);
    const int output = fcntl(own.reserved[1], F_DUPFD_CLOEXEC, 3);
    const int errors = output < 0 ? -1 : fcntl(own.reserved[2], F_DUPFD_CLOEXEC, 3);
    if (errors < 0) {
        const int error = errno;
        if (output >= 0) {
            close(output);
        }
        errno = error;
        return false;
    }
    for (const auto& [number, copy] : {std::pair(1, output), std::pair(2, errors)}) {
        const int before = own.reserved[number];
        keep(copy);
        warren_image_move_stream(before, copy);
        own.reserved[number] = copy;
        if (own.place[number].load(std::memory_order_relaxed) == before) {
            own.place[number].store(copy, std::memory_order_relaxed);
        }
    }
    own.shared = false;
    return true;
}

int give_up(Streams& own, int number) {
    const int place = own.place[number].exchange(-1);
    if (place < 0) {
        errno = EBADF;
        return -1;
    }
    if (number == STDIN_FILENO) {
        warren_image_set_input(-1); // another file may have the number soon
    }
    empty(own, number, place);
    return 0;
}

// Lower ones are left to programs, which may want a certain one.
constexpr int first_kept = 256;

// Keeps a copy of a descriptor that the loader has opened, or closes that copy. Any rank may be in
// the loader.
int keep_file(int descriptor, bool kept) {
    std::unique_lock guard(places_lock, std::defer_lock);
    if (!is_child.load(std::memory_order_relaxed)) { // in which nobody gives the lock back
        guard.lock();
    }
    if (!kept) {
        keep(descriptor, false);
        close(descriptor);
        return -1;
    }
    int copy = fcntl(descriptor, F_DUPFD_CLOEXEC, first_kept);
    if (copy < 0) {
        copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 3);
    }
    keep(copy);
    return copy;
}

int close_one(int descriptor) {
    Streams* own = is_standard(descriptor) ? streams_of_caller() : nullptr;
    if (own == nullptr && is_of_host(descriptor)) {
        // As if the program were alone. The rank's own places, too: many programs close every
        // number from 3 on, few fileno(stdout).
        errno = EBADF;
        return -1;
    }
    if (own == nullptr) {
        return warren_image_close_file(descriptor);
    }
    if (descriptor > 0) {
        stop_sharing(*own); // or else its streams, not closed, go on to write there
    }
    return give_up(*own, descriptor);
}

// None of them is the host's.
void close_gap(unsigned first, unsigned last) {
    if (first > last || close_range(first, last, 0) == 0) {
        return;
    }
    for (unsigned one = first; one <= last && one < of_host_size; ++one) { // an old kernel
        close(static_cast<int>(one));
    }
}

// close_range, for programs that close every descriptor: the host's own stay open.
int close_several(unsigned first, unsigned last, int flags) {
    if (is_child.load(std::memory_order_relaxed) || (flags & CLOSE_RANGE_CLOEXEC) != 0) {
        return close_range(first, last, flags);
    }
    const int error = errno;
    for (unsigned one = first; one <= last && one <= 2; ++one) {
        close_one(static_cast<int>(one));
    }
    warren_image_forget_files(std::max(first, 3U), last); // which may close a place of its own
    const std::lock_guard guard(places_lock);
    unsigned gap = std::max(first, 3U);
    for (unsigned one = gap; one <= last && one < of_host_size; ++one) {
        if (is_of_host(static_cast<int>(one))) {
            close_gap(gap, one - 1);
            gap = one + 1;
        }
    }
    close_gap(gap, last);
    errno = error;
    return 0;
}

void close_from(int first) {
    close_several(static_cast<unsigned>(std::max(first, 0)), ~0U, 0);
}

// The C library's puts the new file where the stream had its own.
std::FILE* reopen(const char* path, const char* mode, std::FILE* stream) {
    Streams* own = stream != nullptr ? streams_of_caller() : nullptr;
    if (own != nullptr && number_of(*own, fileno(stream)) > 0 && !stop_sharing(*own)) {
        return nullptr;
    }
    if (const int number = stream != nullptr ? fileno(stream) : -1; number >= 0) {
        warren_image_forget_files(static_cast<unsigned>(number), static_cast<unsigned>(number));
    }
    return std::freopen(path, mode, stream);
}

std::FILE* open_descriptor(int descriptor, const char* mode) {
    return warren_image_open_descriptor(real(descriptor), mode);
}

// The place stays the rank's, and what it had there the neighbours'.
int close_stream(std::FILE* stream) {
    Streams* own = streams_of_caller();
    const int number = own != nullptr ? number_of(*own, fileno(stream)) : -1;
    if (number < 0) {
        return warren_image_close_stream(stream);
    }
    const int flushed = std::fflush(stream);
    const int closed = give_up(*own, number);
    const int error = errno;
    stream->_fileno = -1;
    warren_image_close_stream(stream);
    errno = error;
    return flushed == 0 && closed == 0 ? 0 : EOF;
}

int duplicate_as(int from, int to, int flags) {
    Streams* own = streams_of_caller();
    const int number = own != nullptr ? number_of(*own, to) : -1;
    if (number < 0 && is_of_host(to)) {
        errno = EBADF;
        return -1;
    }
    if (number < 0) {
        return warren_image_duplicate_file(real(from), to, flags);
    }
    if (from == to) {
        return fcntl(real(from), F_GETFD) < 0 ? -1 : to;
    }
    if (!stop_sharing(*own)) {
        return -1;
    }
    own->flags[number].store((flags & O_CLOEXEC) != 0 ? FD_CLOEXEC : 0, std::memory_order_relaxed);
    const int source = real(from);
    if (const int place = own->reserved[number]; place >= 0) {
        if (source != place && dup3(source, place, O_CLOEXEC) < 0) {
            return -1;
        }
        own->place[number].store(place, std::memory_order_relaxed);
        return to;
    }
    const std::lock_guard guard(places_lock);
    const int copy = fcntl(source, F_DUPFD_CLOEXEC, 3);
    if (copy < 0) {
        return -1;
    }
    keep(copy);
    const int former = own->place[number].exchange(copy);
    warren_image_set_input(copy); // the only number without a reserved place
    if (former >= 0) {
        empty(*own, number, former);
    }
    return to;
}

int duplicate_to(int from, int to) {
    return duplicate_as(from, to, 0);
}

// A new descriptor of the process: a program gets the lowest number that it has closed, from
// `lowest` on.
int place_from(int lowest, int descriptor) {
    Streams* own = streams_of_caller();
    for (int number = std::max(lowest, 0); own != nullptr && descriptor > 2 && number < 3;
         ++number) {
        if (own->place[number].load(std::memory_order_relaxed) < 0) {
            const int flags = fcntl(descriptor, F_GETFD);
            if (duplicate_as(descriptor, number, 0) != number) {
                break;
            }
            own->flags[number].store(flags, std::memory_order_relaxed);
            close(descriptor);
            return number;
        }
    }
    return descriptor;
}

int place_new(int descriptor) {
    return place_from(0, descriptor);
}

int duplicate(int descriptor) {
    return place_new(dup(real(descriptor)));
}

int make_pipe_with(int* ends, int flags) {
    int made[2];
    if (pipe2(made, flags) != 0) {
        return -1;
    }
    ends[0] = place_new(made[0]);
    ends[1] = place_new(made[1]);
    return 0;
}

int make_pipe(int* ends) {
    return make_pipe_with(ends, 0);
}

int make_socket(int domain, int type, int protocol) {
    return place_new(socket(domain, type, protocol));
}

// The places have flags of their own.
int control_flags(std::atomic<int>& flags, int command, const void* argument) {
    if (command == F_SETFD) {
        flags.store(static_cast<int>(reinterpret_cast<std::intptr_t>(argument)) & FD_CLOEXEC,
                    std::memory_order_relaxed);
        return 0;
    }
    return flags.load(std::memory_order_relaxed);
}

int control(int descriptor, int command, ...) {
    va_list arguments;
    va_start(arguments, command);
    void* argument = va_arg(arguments, void*); // as wide as any
    va_end(arguments);
    Streams* own = streams_of_caller();
    const int number = own != nullptr ? number_of(*own, descriptor) : -1;
    if (number >= 0 && (command == F_GETFD || command == F_SETFD) && real(number) >= 0) {
        return control_flags(own->flags[number], command, argument);
    }
    const int result = control_descriptor(real(descriptor), command, argument);
    const bool is_copy = command == F_DUPFD || command == F_DUPFD_CLOEXEC;
    return is_copy ? place_from(static_cast<int>(reinterpret_cast<std::intptr_t>(argument)), result)
                   : result;
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
            fcntl(number, F_SETFD, own->flags[number].load(std::memory_order_relaxed));
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
        std::copy_n(streams.reserved, 3, streams.first);
        const auto same = [&](std::uint32_t other) {
            return other < stream_count && plan.ranks[other].output == planned.output;
        };
        streams.shared = same(rank + 1) || (rank > 0 && same(rank - 1));
    }
    std::vector<int> kept = plan.kept;
    kept.insert(kept.end(), {plan.reports, nothing});
    for (const HostPlan::Rank& rank : plan.ranks) {
        kept.insert(kept.end(), {rank.output, rank.errors});
    }
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    of_host_size = std::max(std::min<std::size_t>(limit.rlim_max, 1 << 20),
                            static_cast<std::size_t>(std::ranges::max(kept) + 1));
    of_host = std::make_unique<std::atomic<bool>[]>(of_host_size);
    for (const int one : kept) {
        keep(one);
    }
    pthread_atfork(nullptr, nullptr, take_streams);
    // The process's table grows to hold them now: where threads share it, that takes milliseconds.
    if (const int last = fcntl(nothing, F_DUPFD_CLOEXEC, 2 * first_kept - 1); last >= 0) {
        close(last);
    }
    warren_image_keep_descriptors(keep_file);
    warren_image_place_files_by(place_new);
}

int real_descriptor(int descriptor) {
    return real(descriptor);
}

int first_input(std::uint32_t rank) {
    return all_streams[rank].place[0].load(std::memory_order_relaxed);
}

int add_own_streams(posix_spawn_file_actions_t* actions) {
    int error = 0;
    const Streams* own = streams_of_caller();
    for (int number = 0; error == 0 && number < 3; ++number) {
        const int place = real(number);
        const bool is_left = own != nullptr && own->flags[number] == FD_CLOEXEC;
        if (place < 0 || is_left) {
            error = posix_spawn_file_actions_addclose(actions, number);
        } else if (place != number) {
            error = posix_spawn_file_actions_adddup2(actions, place, number);
        }
    }
    return error;
}

int number_of_descriptor(int descriptor) {
    const Streams* own = streams_of_caller();
    const int number = own != nullptr ? number_of(*own, descriptor) : -1;
    return number < 0 ? descriptor : number;
}

std::span<const warren_image_binding> stream_bindings() {
    static const warren_image_binding bindings[] = {
        {"close_range", reinterpret_cast<void*>(&close_several)},
        {"closefrom", reinterpret_cast<void*>(&close_from)},
        {"close", reinterpret_cast<void*>(&close_one)},
        {"__close", reinterpret_cast<void*>(&close_one)},
        {"dup", reinterpret_cast<void*>(&duplicate)},
        {"dup2", reinterpret_cast<void*>(&duplicate_to)},
        {"pipe", reinterpret_cast<void*>(&make_pipe)},
        {"__pipe", reinterpret_cast<void*>(&make_pipe)},
        {"pipe2", reinterpret_cast<void*>(&make_pipe_with)},
        {"socket", reinterpret_cast<void*>(&make_socket)},
        {"dup3", reinterpret_cast<void*>(&duplicate_as)},
        {"fcntl", reinterpret_cast<void*>(&control)},
        {"fcntl64", reinterpret_cast<void*>(&control)},
        {"fclose", reinterpret_cast<void*>(&close_stream)},
        {"fdopen", reinterpret_cast<void*>(&open_descriptor)},
        {"freopen", reinterpret_cast<void*>(&reopen)},
        {"freopen64", reinterpret_cast<void*>(&reopen)},
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
