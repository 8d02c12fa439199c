#include "launch/host/descriptor_calls.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <termios.h>
#include <unistd.h>
#include <vector>

#include "base/futex.hpp"
#include "image/host_interface.hpp"
#include "launch/host/descriptor_signals.hpp"
#include "launch/host/fibre_waits.hpp"
#include "launch/host/standard_streams.hpp"

// The C library's, which ends a program that would overrun its memory.
extern "C" [[noreturn]] void __chk_fail(); // NOLINT(readability-identifier-naming)

namespace warren::launch {

namespace {

int number_of_stream(std::FILE* stream) {
    const int descriptor = fileno(stream);
    return descriptor < 0 ? descriptor : number_of_descriptor(descriptor);
}

// Programs of old headers ask with a version, of which there is one.
int describe(int, int descriptor, struct stat* status) {
    return fstat(real_descriptor(descriptor), status);
}

int describe_at(int folder, const char* path, struct stat* status, int flags) {
    return fstatat(real_descriptor(folder), path, status, flags);
}

int describe_fully(int folder, const char* path, int flags, unsigned mask, struct statx* status) {
    return statx(real_descriptor(folder), path, flags, mask, status);
}

int control_stream_or_device(int descriptor, unsigned long request, ...) {
    va_list arguments;
    va_start(arguments, request);
    void* argument = va_arg(arguments, void*);
    va_end(arguments);
    return control_device(real_descriptor(descriptor), request, argument);
}

int print(int descriptor, const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int count = vdprintf(real_descriptor(descriptor), format, arguments);
    va_end(arguments);
    return count;
}

// Checked forms: `room` is what the program has for the data.
void check_room(std::size_t bytes, std::size_t room) {
    if (bytes > room) {
        __chk_fail();
    }
}

ssize_t read_chk(int descriptor, void* data, std::size_t bytes, std::size_t room) {
    check_room(bytes, room);
    return read(real_descriptor(descriptor), data, bytes);
}

ssize_t pread_chk(int descriptor, void* data, std::size_t bytes, off_t offset, std::size_t room) {
    check_room(bytes, room);
    return pread(real_descriptor(descriptor), data, bytes, offset);
}

// The result is the caller's, as each fibre has thread-local variables of its own.
char* name_terminal(int descriptor) {
    thread_local std::array<char, TTY_NAME_MAX> name{};
    const int error = ttyname_r(real_descriptor(descriptor), name.data(), name.size());
    errno = error != 0 ? error : errno;
    return error == 0 ? name.data() : nullptr;
}

int ttyname_chk(int descriptor, char* name, std::size_t bytes, std::size_t room) {
    check_room(bytes, room);
    return ttyname_r(real_descriptor(descriptor), name, bytes);
}

int print_chk(int descriptor, int, const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int count = vdprintf(real_descriptor(descriptor), format, arguments);
    va_end(arguments);
    return count;
}

int print_list_chk(int descriptor, int, const char* format, va_list arguments) {
    return vdprintf(real_descriptor(descriptor), format, arguments);
}

void* map(void* address, std::size_t bytes, int access, int flags, int descriptor, off_t offset) {
    return mmap(address, bytes, access, flags, real_descriptor(descriptor), offset);
}

ssize_t splice_data(int from, off_t* from_offset, int to, off_t* to_offset, std::size_t bytes,
                    unsigned flags) {
    return splice(real_descriptor(from), from_offset, real_descriptor(to), to_offset, bytes, flags);
}

ssize_t copy_range(int from, off_t* from_offset, int to, off_t* to_offset, std::size_t bytes,
                   unsigned flags) {
    return copy_file_range(real_descriptor(from), from_offset, real_descriptor(to), to_offset,
                           bytes, flags);
}

int change_watch(int watcher, int operation, int descriptor, epoll_event* event) {
    return epoll_ctl(watcher, operation, real_descriptor(descriptor), event);
}

// ---- Several descriptors

bool names_standard(int descriptor) {
    return descriptor >= 0 && descriptor <= 2;
}

// The program's list with the process's descriptors in it.
class PollList {
  public:
    PollList(pollfd* given, nfds_t count) : given_(given), count_(count) {
        if (std::none_of(given, given + count,
                         [](const pollfd& one) { return names_standard(one.fd); })) {
            return;
        }
        real_.assign(given, given + count);
        for (pollfd& one : real_) {
            const int descriptor = real_descriptor(one.fd);
            one.fd = one.fd >= 0 && descriptor < 0 ? INT_MAX : descriptor; // INT_MAX: never open
        }
    }
    ~PollList() {
        for (std::size_t i = 0; i < real_.size(); ++i) {
            given_[i].revents = real_[i].revents;
        }
    }
    PollList(const PollList&) = delete;
    PollList& operator=(const PollList&) = delete;

    pollfd* list() { return real_.empty() ? given_ : real_.data(); }

    int ask(const timespec* limit, const sigset_t* blocked) {
        return poll_in_fibre(list(), count_, limit, blocked);
    }

  private:
    pollfd* given_;
    nfds_t count_;
    std::vector<pollfd> real_; // empty: `given_` names no standard descriptor
};

int poll_some(pollfd* descriptors, nfds_t count, int limit_ms) {
    constexpr int ms_of_s = 1000;
    constexpr long ns_of_ms = 1'000'000;
    const timespec limit{.tv_sec = limit_ms / ms_of_s, .tv_nsec = limit_ms % ms_of_s * ns_of_ms};
    return PollList(descriptors, count).ask(limit_ms >= 0 ? &limit : nullptr, nullptr);
}

int poll_and_block(pollfd* descriptors, nfds_t count, const timespec* limit,
                   const sigset_t* blocked) {
    return PollList(descriptors, count).ask(limit, blocked);
}

int poll_chk(pollfd* descriptors, nfds_t count, int limit_ms, std::size_t room) {
    check_room(count * sizeof *descriptors, room);
    return poll_some(descriptors, count, limit_ms);
}

int poll_and_block_chk(pollfd* descriptors, nfds_t count, const timespec* limit,
                       const sigset_t* blocked, std::size_t room) {
    check_room(count * sizeof *descriptors, room);
    return poll_and_block(descriptors, count, limit, blocked);
}

// A set with room for any descriptor of the process, which a program's may not have: the kernel
// reads no more words than the count of descriptors says.
class DescriptorSet {
  public:
    explicit DescriptorSet(fd_set* given) : given_(given) {}

    void take(int count, const std::array<int, 3>& standard, int real_count) {
        if (given_ == nullptr) {
            return;
        }
        words_.assign(static_cast<std::size_t>(real_count) / bits + 1, 0);
        for (int one = 0; one < count; ++one) {
            if (FD_ISSET(one, given_)) {
                set(one <= 2 ? standard[static_cast<std::size_t>(one)] : one);
            }
        }
    }
    void give_back(int count, const std::array<int, 3>& standard) {
        for (int one = 0; given_ != nullptr && one < count; ++one) {
            if (!has(one <= 2 ? standard[static_cast<std::size_t>(one)] : one)) {
                FD_CLR(one, given_);
            }
        }
    }
    bool names(int descriptor) const { return given_ != nullptr && FD_ISSET(descriptor, given_); }
    fd_set* list() {
        return given_ != nullptr ? reinterpret_cast<fd_set*>(words_.data()) : nullptr;
    }

  private:
    static constexpr std::size_t bits = 8 * sizeof(unsigned long);

    void set(int one) {
        words_[static_cast<std::size_t>(one) / bits] |= 1UL << static_cast<std::size_t>(one) % bits;
    }
    bool has(int one) const {
        return (words_[static_cast<std::size_t>(one) / bits] >>
                    static_cast<std::size_t>(one) % bits &
                1) != 0;
    }

    fd_set* given_;
    std::vector<unsigned long> words_;
};

// `ask` gets the count and the sets.
template <typename Ask>
int select_by(int count, fd_set* to_read, fd_set* to_write, fd_set* exceptional, const Ask& ask) {
    std::array<DescriptorSet, 3> sets = {DescriptorSet(to_read), DescriptorSet(to_write),
                                         DescriptorSet(exceptional)};
    std::array<int, 3> standard = {0, 1, 2};
    int real_count = count;
    bool any = false;
    for (int number = 0; number < std::min(count, 3); ++number) {
        for (const DescriptorSet& set : sets) {
            if (!set.names(number)) {
                continue;
            }
            any = true;
            const int descriptor = real_descriptor(number);
            if (descriptor < 0) {
                errno = EBADF;
                return -1;
            }
            standard[static_cast<std::size_t>(number)] = descriptor;
            real_count = std::max(real_count, descriptor + 1);
        }
    }
    if (!any) {
        return ask(count, to_read, to_write, exceptional);
    }
    for (DescriptorSet& set : sets) {
        set.take(count, standard, real_count);
    }
    const int result = ask(real_count, sets[0].list(), sets[1].list(), sets[2].list());
    for (DescriptorSet& set : sets) {
        if (result >= 0) {
            set.give_back(count, standard);
        }
    }
    return result;
}

// As the system's, it leaves in `limit` what is left of it.
int select_some(int count, fd_set* to_read, fd_set* to_write, fd_set* exceptional, timeval* limit) {
    constexpr long us_of_s = 1'000'000;
    constexpr std::uint64_t ns_of_us = 1000;
    if (limit != nullptr && (limit->tv_sec < 0 || limit->tv_usec < 0)) {
        errno = EINVAL;
        return -1;
    }
    timespec time{};
    if (limit != nullptr) {
        time = {.tv_sec = limit->tv_sec + limit->tv_usec / us_of_s,
                .tv_nsec = limit->tv_usec % us_of_s * static_cast<long>(ns_of_us)};
    }
    const std::uint64_t begin_ns = monotonic_ns();
    const int result =
        select_by(count, to_read, to_write, exceptional,
                  [&](int real_count, fd_set* first, fd_set* second, fd_set* third) {
                      return select_in_fibre(real_count, first, second, third,
                                             limit != nullptr ? &time : nullptr, nullptr);
                  });
    if (limit != nullptr) {
        const auto took_us = static_cast<std::int64_t>((monotonic_ns() - begin_ns) / ns_of_us);
        const std::int64_t most_us = INT64_MAX / us_of_s; // else the time stays as it is
        if (time.tv_sec < most_us) {
            const std::int64_t asked_us =
                time.tv_sec * us_of_s + time.tv_nsec / static_cast<long>(ns_of_us);
            const std::int64_t left_us = std::max<std::int64_t>(asked_us - took_us, 0);
            *limit = {.tv_sec = left_us / us_of_s, .tv_usec = left_us % us_of_s};
        }
    }
    return result;
}

int select_and_block(int count, fd_set* to_read, fd_set* to_write, fd_set* exceptional,
                     const timespec* limit, const sigset_t* blocked) {
    return select_by(count, to_read, to_write, exceptional,
                     [&](int real_count, fd_set* first, fd_set* second, fd_set* third) {
                         return select_in_fibre(real_count, first, second, third, limit, blocked);
                     });
}

// The child first gets the rank's descriptors as 0, 1 and 2: what follows means those.
int begin_actions(posix_spawn_file_actions_t* actions) {
    const int error = posix_spawn_file_actions_init(actions);
    return error != 0 ? error : add_own_streams(actions);
}

template <typename Function>
void* erase(Function* function) {
    return reinterpret_cast<void*>(function);
}

// Calls whose first argument is a descriptor, and whose first two are.
template <auto function, typename Result, typename... Rest>
Result call_with_one(int descriptor, Rest... rest) {
    return function(real_descriptor(descriptor), rest...);
}

template <auto function, typename Result, typename... Rest>
Result call_with_two(int first, int second, Rest... rest) {
    return function(real_descriptor(first), real_descriptor(second), rest...);
}

template <auto function, typename Result, typename... Rest>
void* one_of_type(Result (*)(int, Rest...)) {
    return erase(call_with_one<function, Result, Rest...>);
}

template <auto function, typename Result, typename... Rest>
void* two_of_type(Result (*)(int, int, Rest...)) {
    return erase(call_with_two<function, Result, Rest...>);
}

template <auto function>
void* one_of() {
    return one_of_type<function>(function);
}

template <auto function>
void* two_of() {
    return two_of_type<function>(function);
}

const warren_image_binding descriptor_calls[] = {
    {"fileno", erase(number_of_stream)},
    {"fileno_unlocked", erase(number_of_stream)},
    {"read", one_of<::read>()},
    {"__read", one_of<::read>()},
    {"__read_chk", erase(read_chk)},
    {"readv", one_of<::readv>()},
    {"pread", one_of<::pread>()},
    {"pread64", one_of<::pread>()},
    {"__pread_chk", erase(pread_chk)},
    {"__pread64_chk", erase(pread_chk)},
    {"preadv", one_of<::preadv>()},
    {"preadv64", one_of<::preadv>()},
    {"write", one_of<::write>()},
    {"__write", one_of<::write>()},
    {"writev", one_of<::writev>()},
    {"pwrite", one_of<::pwrite>()},
    {"pwrite64", one_of<::pwrite>()},
    {"pwritev", one_of<::pwritev>()},
    {"pwritev64", one_of<::pwritev>()},
    {"lseek", one_of<::lseek>()},
    {"lseek64", one_of<::lseek>()},
    {"fsync", one_of<::fsync>()},
    {"fdatasync", one_of<::fdatasync>()},
    {"syncfs", one_of<::syncfs>()},
    {"ftruncate", one_of<::ftruncate>()},
    {"ftruncate64", one_of<::ftruncate>()},
    {"fallocate", one_of<::fallocate>()},
    {"fallocate64", one_of<::fallocate>()},
    {"posix_fallocate", one_of<::posix_fallocate>()},
    {"posix_fallocate64", one_of<::posix_fallocate>()},
    {"posix_fadvise", one_of<::posix_fadvise>()},
    {"posix_fadvise64", one_of<::posix_fadvise>()},
    {"flock", one_of<::flock>()},
    {"fchmod", one_of<::fchmod>()},
    {"fchown", one_of<::fchown>()},
    {"futimens", one_of<::futimens>()},
    {"futimes", one_of<::futimes>()},
    {"fstat", one_of<::fstat>()},
    {"fstat64", one_of<::fstat>()},
    {"__fxstat", erase(describe)},
    {"__fxstat64", erase(describe)},
    {"fstatat", erase(describe_at)},
    {"fstatat64", erase(describe_at)},
    {"statx", erase(describe_fully)},
    {"fstatfs", one_of<::fstatfs>()},
    {"fstatfs64", one_of<::fstatfs>()},
    {"fstatvfs", one_of<::fstatvfs>()},
    {"fstatvfs64", one_of<::fstatvfs>()},
    {"fpathconf", one_of<::fpathconf>()},
    {"ioctl", erase(control_stream_or_device)},
    {"isatty", one_of<::isatty>()},
    {"ttyname", erase(name_terminal)},
    {"ttyname_r", one_of<::ttyname_r>()},
    {"__ttyname_r_chk", erase(ttyname_chk)},
    {"tcgetattr", one_of<::tcgetattr>()},
    {"tcsetattr", one_of<::tcsetattr>()},
    {"tcdrain", one_of<::tcdrain>()},
    {"tcflow", one_of<::tcflow>()},
    {"tcflush", one_of<::tcflush>()},
    {"tcsendbreak", one_of<::tcsendbreak>()},
    {"tcgetpgrp", one_of<::tcgetpgrp>()},
    {"tcsetpgrp", one_of<::tcsetpgrp>()},
    {"tcgetsid", one_of<::tcgetsid>()},
    {"dprintf", erase(print)},
    {"vdprintf", one_of<::vdprintf>()},
    {"__dprintf_chk", erase(print_chk)},
    {"__vdprintf_chk", erase(print_list_chk)},
    {"mmap", erase(map)},
    {"mmap64", erase(map)},
    {"vmsplice", one_of<::vmsplice>()},
    {"sendfile", two_of<::sendfile>()},
    {"sendfile64", two_of<::sendfile>()},
    {"tee", two_of<::tee>()},
    {"splice", erase(splice_data)},
    {"copy_file_range", erase(copy_range)},
    {"epoll_ctl", erase(change_watch)},
    {"poll", erase(poll_some)},
    {"ppoll", erase(poll_and_block)},
    {"__poll_chk", erase(poll_chk)},
    {"__ppoll_chk", erase(poll_and_block_chk)},
    {"select", erase(select_some)},
    {"pselect", erase(select_and_block)},
    {"posix_spawn_file_actions_init", erase(begin_actions)},
};

} // namespace

std::span<const warren_image_binding> descriptor_bindings() {
    return descriptor_calls;
}

} // namespace warren::launch
