// Waits that let time pass, or others run, or are for the end of a thread: a fibre gives its worker
// to other ranks meanwhile. (So it does in pthread_mutex.cpp and futex.cpp. Other waits for
// what the program's own threads do, such as OpenMP's, or the system, keep the worker.)
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <sched.h>
#include <unistd.h>

#include "base/futex.hpp"
#include "image/host.hpp"
#include "image/image.hpp"
#include "image/libc/functions.hpp"
#include "image/tuning.hpp"
#include "runtime/fibres/scheduler.hpp"

namespace warren::image::libc {

namespace {

constexpr std::uint64_t ns_of_s = 1'000'000'000;

// At most a century.
std::uint64_t in_ns(std::uint64_t seconds, std::uint64_t ns) {
    constexpr std::uint64_t century_s = 3'155'760'000;
    return std::min(seconds, century_s) * ns_of_s + ns;
}

std::uint64_t in_ns(const timespec& time) {
    return in_ns(static_cast<std::uint64_t>(time.tv_sec), static_cast<std::uint64_t>(time.tv_nsec));
}

bool is_time(const timespec& time) {
    return time.tv_sec >= 0 && time.tv_nsec >= 0 && time.tv_nsec < static_cast<long>(ns_of_s);
}

void sleep_for(std::uint64_t ns) {
    fibre::scheduler()->sleep_until(monotonic_ns() + ns);
}

} // namespace

bool is_fibre() {
    stack_t signals{};
    return fibre::Scheduler::current() != nullptr && sigaltstack(nullptr, &signals) == 0 &&
           (signals.ss_flags & SS_ONSTACK) == 0;
}

int sched_yield() {
    if (fibre::Scheduler* scheduler = fibre::scheduler()) {
        scheduler->give_way();
        return 0;
    }
    return ::sched_yield();
}

void thrd_yield() {
    libc::sched_yield();
}

unsigned sleep(unsigned seconds) {
    if (!is_fibre()) {
        return ::sleep(seconds);
    }
    sleep_for(seconds * ns_of_s);
    return 0;
}

int usleep(useconds_t microseconds) {
    if (!is_fibre()) {
        return ::usleep(microseconds);
    }
    sleep_for(std::uint64_t{microseconds} * 1000);
    return 0;
}

int nanosleep(const timespec* time, timespec* left) {
    if (!is_fibre()) {
        return ::nanosleep(time, left);
    }
    if (!is_time(*time)) {
        errno = EINVAL;
        return -1;
    }
    sleep_for(in_ns(*time));
    return 0;
}

int clock_nanosleep(clockid_t clock, int flags, const timespec* time, timespec* left) {
    if (!is_fibre() || (clock != CLOCK_MONOTONIC && clock != CLOCK_REALTIME)) {
        return ::clock_nanosleep(clock, flags, time, left);
    }
    if (!is_time(*time)) {
        return EINVAL;
    }
    std::uint64_t ns = in_ns(*time);
    if ((flags & TIMER_ABSTIME) != 0) {
        timespec now{};
        ::clock_gettime(clock, &now);
        ns -= std::min(ns, in_ns(now));
    }
    sleep_for(ns);
    return 0;
}

int thrd_sleep(const timespec* time, timespec* left) {
    const int result = libc::nanosleep(time, left);
    return result == 0 ? 0 : errno == EINTR ? -1 : -2;
}

namespace {

// The thread of the process goes on until the program ends (pthread_exit).
void join_first(const Running& running, void** result) {
    while (!running.first_has_left.load(std::memory_order_acquire)) {
        libc::usleep(1000);
    }
    if (result != nullptr) {
        *result = running.first_result;
    }
}

bool is_first(Image* image, pthread_t thread) {
    return image != nullptr && image->running().first_thread != nullptr &&
           pthread_equal(thread, image->running().first_handle) != 0;
}

} // namespace

int pthread_join(pthread_t thread, void** result) {
    if (is_first(current_image(), thread) && pthread_equal(thread, pthread_self()) == 0) {
        join_first(current_image()->running(), result);
        return 0;
    }
    if (!is_fibre() || pthread_equal(thread, pthread_self()) != 0) {
        return ::pthread_join(thread, result);
    }
    // A thread that ends says so a moment before the system does, and may have said so already.
    std::atomic<std::uint32_t>& ended = current_image()->threads_ended;
    std::uint32_t seen = ended.load(std::memory_order_acquire);
    std::uint64_t look_ns = shortest_look_ns;
    while (true) {
        const int error = pthread_tryjoin_np(thread, result);
        if (error != EBUSY) {
            return error;
        }
        const timespec soon{0, static_cast<long>(look_ns)};
        futex_wait(ended, seen, &soon);
        const std::uint32_t now = ended.load(std::memory_order_acquire);
        look_ns = now != seen ? shortest_look_ns : std::min(2 * look_ns, longest_look_ns);
        seen = now;
    }
}

int thrd_join(thrd_t thread, int* result) {
    void* given = nullptr;
    const int error = libc::pthread_join(thread, &given);
    if (result != nullptr) {
        *result = static_cast<int>(reinterpret_cast<std::intptr_t>(given));
    }
    return error == 0 ? thrd_success : thrd_error;
}

int select(int count, fd_set* to_read, fd_set* to_write, fd_set* exceptional, timeval* limit) {
    if (!is_fibre() || count != 0 || limit == nullptr || limit->tv_sec < 0 || limit->tv_usec < 0) {
        return ::select(count, to_read, to_write, exceptional, limit);
    }
    sleep_for(in_ns(static_cast<std::uint64_t>(limit->tv_sec),
                    static_cast<std::uint64_t>(limit->tv_usec) * 1000));
    *limit = {};
    return 0;
}

int poll(pollfd* descriptors, nfds_t count, int limit_ms) {
    if (!is_fibre() || count != 0 || limit_ms < 0) {
        return ::poll(descriptors, count, limit_ms);
    }
    sleep_for(static_cast<std::uint64_t>(limit_ms) * 1'000'000);
    return 0;
}

} // namespace warren::image::libc
