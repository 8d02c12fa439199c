#include "launch/host/fibre_waits.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/uio.h>
#include <threads.h>
#include <type_traits>
#include <unistd.h>

#include "base/futex.hpp"
#include "launch/host/actions.hpp"
#include "launch/host/fibre_signals.hpp"
#include "launch/host/rank_signals.hpp"
#include "launch/host/thread_signals.hpp"

namespace warren::launch {

namespace {

using Kind = SignalWait::Kind;

constexpr std::uint64_t ns_of_s = 1'000'000'000;
constexpr std::uint64_t ns_of_ms = 1'000'000;
constexpr std::uint64_t ns_of_us = 1'000;
constexpr std::uint64_t never = UINT64_MAX;

bool is_time(const timespec& time) {
    return time.tv_sec >= 0 && time.tv_nsec >= 0 && time.tv_nsec < static_cast<long>(ns_of_s);
}

// At most a century.
std::uint64_t in_ns(const timespec& time) {
    constexpr std::uint64_t century_s = 3'155'760'000;
    return std::min(static_cast<std::uint64_t>(time.tv_sec), century_s) * ns_of_s +
           static_cast<std::uint64_t>(time.tv_nsec);
}

timespec to_timespec(std::uint64_t ns) {
    return {.tv_sec = static_cast<time_t>(ns / ns_of_s),
            .tv_nsec = static_cast<long>(ns % ns_of_s)};
}

std::uint64_t end_after(const timespec* limit) {
    return limit == nullptr ? never : monotonic_ns() + in_ns(*limit);
}

std::uint64_t left_until(std::uint64_t end_ns) {
    const std::uint64_t now = monotonic_ns();
    return end_ns > now ? end_ns - now : 0;
}

// Null: the caller can't give way to other fibres, and sleeps in the kernel.
RankSignals* signals_of_sleeper() {
    return is_in_handler() ? nullptr : signals_of_caller();
}

// Who gives a mask waits for a signal, too.
Kind kind_of(const sigset_t* mask) {
    return mask != nullptr ? Kind::for_any : Kind::for_other;
}

// A thread makes a call of the kernel, again while only other ranks' signals end it.
template <typename Call>
std::invoke_result_t<Call> in_thread(const Call& call) {
    while (true) {
        const std::uint32_t handlers = handlers_of_thread();
        const auto result = call();
        if (result >= 0 || errno != EINTR || handlers_of_thread() != handlers) {
            return result;
        }
    }
}

// A call that gets the time that is left.
template <typename Call>
int in_thread(const timespec* limit, const Call& call) {
    if (limit == nullptr || !is_time(*limit)) {
        return in_thread([&] { return call(limit); });
    }
    const std::uint64_t end_ns = end_after(limit);
    return in_thread([&] {
        const timespec left = to_timespec(left_until(end_ns));
        return call(&left);
    });
}

// nanosleep in a thread.
int sleep_in_thread(const timespec* time, timespec* left) {
    timespec until_now{};
    const int result =
        in_thread(time, [&](const timespec* wanted) { return nanosleep(wanted, &until_now); });
    if (result != 0 && errno == EINTR && left != nullptr) {
        *left = until_now;
    }
    return result;
}

// clock_nanosleep in a thread, which returns the error. What is left of a time is slept on.
int sleep_by_clock_in_thread(clockid_t clock, int flags, const timespec* time, timespec* left) {
    const bool is_until = (flags & TIMER_ABSTIME) != 0;
    timespec wanted = *time;
    timespec until_now{};
    int error = 0;
    in_thread([&] {
        error = clock_nanosleep(clock, flags, &wanted, is_until ? nullptr : &until_now);
        wanted = error == EINTR && !is_until ? until_now : wanted;
        errno = error;
        return error == 0 ? 0 : -1;
    });
    if (error == EINTR && !is_until && left != nullptr) {
        *left = until_now;
    }
    return error;
}

// ---- Signals

int suspend(RankSignals& signals, const sigset_t* mask) {
    {
        SignalWait wait(signals, Kind::for_any, mask);
        while (wait.act() == Handled::none) {
            wait.sleep(never);
        }
    }
    errno = EINTR;
    return -1;
}

int wait_for_handler() {
    RankSignals* signals = signals_of_caller();
    return signals == nullptr ? in_thread([] { return pause(); }) : suspend(*signals, nullptr);
}

int wait_with_mask(const sigset_t* set) {
    RankSignals* signals = signals_of_caller();
    if (signals == nullptr) {
        const LetThrough let_through(set);
        return in_thread([&] { return sigsuspend(set); });
    }
    return suspend(*signals, set);
}

// The number of a signal of the set; -1: EINTR, as a handler has run, or EAGAIN, as it is `end_ns`.
int await(RankSignals& signals, const sigset_t& set, siginfo_t& information, std::uint64_t end_ns) {
    SignalWait wait(signals, Kind::for_any, nullptr, &set);
    while (true) {
        const Handled handled = wait.act();
        if (wait.take_awaited(information)) {
            return information.si_signo;
        }
        if (handled != Handled::none) {
            errno = EINTR;
            return -1;
        }
        if (!wait.sleep(end_ns)) {
            errno = EAGAIN;
            return -1;
        }
    }
}

// As await; the caller may be anything. `wait`: the C library's.
template <typename Wait>
int await_by_caller(const sigset_t* set, siginfo_t* information, std::uint64_t end_ns,
                    const Wait& wait) {
    RankSignals* signals = signals_of_caller();
    RankSignals* of_thread = signals == nullptr ? watch_for_thread(*set) : nullptr;
    if (signals == nullptr && of_thread == nullptr) {
        return wait();
    }
    siginfo_t its{};
    const int number = signals != nullptr ? await(*signals, *set, its, end_ns)
                                          : await_in_thread(*of_thread, *set, its, end_ns);
    if (number > 0 && information != nullptr) {
        *information = its;
        if (its.si_code == SI_TKILL) { // which the C library hides
            information->si_code = SI_USER;
        }
    }
    return number;
}

int wait_with_information(const sigset_t* set, siginfo_t* information) {
    return await_by_caller(set, information, never, [&] { return sigwaitinfo(set, information); });
}

int wait_until(const sigset_t* set, siginfo_t* information, const timespec* limit) {
    if (limit != nullptr && !is_time(*limit)) {
        errno = EINVAL;
        return -1;
    }
    return await_by_caller(set, information, end_after(limit),
                           [&] { return sigtimedwait(set, information, limit); });
}

int wait_for_any_of(const sigset_t* set, int* taken) {
    int number = -1;
    do { // a handler ends no sigwait
        number = await_by_caller(set, nullptr, never, [&] { return sigwaitinfo(set, nullptr); });
    } while (number < 0 && errno == EINTR);
    if (number < 0) {
        return errno;
    }
    *taken = number;
    return 0;
}

// ---- Time

// False: handlers have run before that time.
bool sleep_until(RankSignals& signals, std::uint64_t end_ns, const sigset_t* mask = nullptr) {
    SignalWait wait(signals, kind_of(mask), mask);
    while (wait.act() == Handled::none) {
        if (!wait.sleep(end_ns)) {
            return true;
        }
    }
    return false;
}

// -1 and EINTR: with the time that is left.
int sleep_for(RankSignals& signals, std::uint64_t ns, timespec* left) {
    const std::uint64_t end_ns = monotonic_ns() + ns;
    if (sleep_until(signals, end_ns)) {
        return 0;
    }
    if (left != nullptr) {
        *left = to_timespec(left_until(end_ns));
    }
    errno = EINTR;
    return -1;
}

unsigned sleep_seconds(unsigned seconds) {
    RankSignals* signals = signals_of_sleeper();
    timespec left{};
    if (signals == nullptr) {
        const timespec time{.tv_sec = seconds, .tv_nsec = 0};
        sleep_in_thread(&time, &left);
    } else {
        sleep_for(*signals, seconds * ns_of_s, &left);
    }
    return static_cast<unsigned>(left.tv_sec); // a part of one more doesn't count
}

int sleep_microseconds(useconds_t microseconds) {
    RankSignals* signals = signals_of_sleeper();
    const std::uint64_t ns = microseconds * ns_of_us;
    const timespec time = to_timespec(ns);
    return signals == nullptr ? sleep_in_thread(&time, nullptr) : sleep_for(*signals, ns, nullptr);
}

int sleep_nanoseconds(const timespec* time, timespec* left) {
    RankSignals* signals = signals_of_sleeper();
    if (signals == nullptr || !is_time(*time)) {
        return sleep_in_thread(time, left);
    }
    return sleep_for(*signals, in_ns(*time), left);
}

int sleep_by_clock(clockid_t clock, int flags, const timespec* time, timespec* left) {
    RankSignals* signals = signals_of_sleeper();
    if (signals == nullptr || !is_time(*time) ||
        (clock != CLOCK_MONOTONIC && clock != CLOCK_REALTIME)) {
        return sleep_by_clock_in_thread(clock, flags, time, left);
    }
    std::uint64_t ns = in_ns(*time);
    if ((flags & TIMER_ABSTIME) != 0) {
        timespec now{};
        clock_gettime(clock, &now);
        ns -= std::min(ns, in_ns(now));
        left = nullptr;
    }
    return sleep_for(*signals, ns, left) == 0 ? 0 : EINTR;
}

int sleep_in_c_thread(const timespec* time, timespec* left) {
    const int result = sleep_nanoseconds(time, left);
    return result == 0 ? 0 : errno == EINTR ? -1 : -2;
}

// ---- Descriptors

// Makes a call of the kernel, which gets the time that is left (null: no limit) and a mask. As in
// the kernel, descriptors that are ready come before signals: `look` is the call without a wait.
template <typename Call, typename Look>
int wait_for_descriptors(RankSignals& signals, const timespec* limit, const sigset_t* mask,
                         const Call& call, const Look& look) {
    const std::uint64_t end_ns = end_after(limit);
    SignalWait wait(signals, kind_of(mask), mask);
    if (wait.is_interrupted()) {
        const int ready = look();
        if (ready != 0 && (ready > 0 || errno != EINTR)) {
            return ready;
        }
    }
    return wait.call([&](const sigset_t* of_thread) {
        const timespec left = to_timespec(limit != nullptr ? left_until(end_ns) : 0);
        return call(limit != nullptr ? &left : nullptr, of_thread);
    });
}

// Without descriptors these are sleeps, and others run meanwhile.
int sleep_with_mask(RankSignals& signals, const timespec* limit, const sigset_t* mask) {
    const bool is_over = sleep_until(signals, end_after(limit), mask);
    errno = is_over ? errno : EINTR;
    return is_over ? 0 : -1;
}

bool never_waits(const timespec* limit, const sigset_t* mask) {
    return mask == nullptr && limit != nullptr && limit->tv_sec == 0 && limit->tv_nsec == 0;
}

int wait_for_events(int watcher, epoll_event* events, int room, const timespec* limit,
                    const sigset_t* mask) {
    RankSignals* signals = signals_of_sleeper();
    const auto call = [&](const timespec* left, const sigset_t* blocked) {
        // Rounded up: a wait is not shorter than asked for.
        const std::uint64_t ms = left == nullptr ? 0 : (in_ns(*left) + ns_of_ms - 1) / ns_of_ms;
        const int limit_ms =
            left == nullptr ? -1 : static_cast<int>(std::min<std::uint64_t>(ms, INT_MAX));
        return epoll_pwait(watcher, events, room, limit_ms, blocked);
    };
    if (signals != nullptr && !never_waits(limit, mask)) {
        return wait_for_descriptors(*signals, limit, mask, call,
                                    [&] { return epoll_wait(watcher, events, room, 0); });
    }
    const LetThrough let_through(mask);
    return in_thread(limit, [&](const timespec* left) { return call(left, mask); });
}

int wait_for_events_and_block(int watcher, epoll_event* events, int room, int limit_ms,
                              const sigset_t* mask) {
    const timespec limit =
        to_timespec(static_cast<std::uint64_t>(std::max(limit_ms, 0)) * ns_of_ms);
    return wait_for_events(watcher, events, room, limit_ms >= 0 ? &limit : nullptr, mask);
}

int wait_for_events_until(int watcher, epoll_event* events, int room, int limit_ms) {
    return wait_for_events_and_block(watcher, events, room, limit_ms, nullptr);
}

int wait_for_events_by_time(int watcher, epoll_event* events, int room, const timespec* limit,
                            const sigset_t* mask) {
    if (limit != nullptr && !is_time(*limit)) {
        errno = EINVAL;
        return -1;
    }
    return wait_for_events(watcher, events, room, limit, mask);
}

} // namespace

int poll_in_fibre(pollfd* descriptors, nfds_t count, const timespec* limit, const sigset_t* mask) {
    RankSignals* signals = signals_of_sleeper();
    if (signals == nullptr || (limit != nullptr && !is_time(*limit)) || never_waits(limit, mask)) {
        const LetThrough let_through(mask);
        return in_thread(
            limit, [&](const timespec* left) { return ppoll(descriptors, count, left, mask); });
    }
    if (count == 0) {
        return sleep_with_mask(*signals, limit, mask);
    }
    return wait_for_descriptors(
        *signals, limit, mask,
        [&](const timespec* left, const sigset_t* blocked) {
            return ppoll(descriptors, count, left, blocked);
        },
        [&] { return poll(descriptors, count, 0); });
}

namespace {

// select without a wait. If no descriptor is ready, the sets keep what they ask for. 0, too, if
// that can't be found out: a set for more descriptors than an fd_set has may be shorter than
// `count` says, since the kernel reads no more than the process has descriptors.
int look_at_sets(int count, const std::array<fd_set*, 3>& sets) {
    if (count < 0) {
        errno = EINVAL;
        return -1;
    }
    if (count > FD_SETSIZE) {
        return 0;
    }
    const std::size_t bytes =
        (static_cast<std::size_t>(count) + NFDBITS - 1) / NFDBITS * sizeof(fd_mask);
    std::array<fd_set, 3> asked{};
    for (std::size_t i = 0; i < sets.size(); ++i) {
        if (sets[i] == nullptr) {
            continue;
        }
        // By the kernel, which answers for memory that isn't there.
        const iovec to{.iov_base = &asked[i], .iov_len = bytes};
        const iovec from{.iov_base = sets[i], .iov_len = bytes};
        const ssize_t copied = process_vm_readv(getpid(), &to, 1, &from, 1, 0);
        if (copied < 0 && errno != EFAULT) {
            return 0; // it may not copy
        }
        if (copied != static_cast<ssize_t>(bytes)) {
            errno = EFAULT;
            return -1;
        }
    }
    timeval at_once{};
    const int ready = select(count, sets[0], sets[1], sets[2], &at_once);
    for (std::size_t i = 0; i < sets.size() && ready == 0; ++i) {
        if (sets[i] != nullptr) {
            std::memcpy(sets[i], &asked[i], bytes);
        }
    }
    return ready;
}

} // namespace

int select_in_fibre(int count, fd_set* to_read, fd_set* to_write, fd_set* exceptional,
                    const timespec* limit, const sigset_t* mask) {
    RankSignals* signals = signals_of_sleeper();
    if (signals == nullptr || (limit != nullptr && !is_time(*limit)) || never_waits(limit, mask)) {
        const LetThrough let_through(mask);
        return in_thread(limit, [&](const timespec* left) {
            return pselect(count, to_read, to_write, exceptional, left, mask);
        });
    }
    if (count == 0) {
        return sleep_with_mask(*signals, limit, mask);
    }
    return wait_for_descriptors(
        *signals, limit, mask,
        [&](const timespec* left, const sigset_t* blocked) {
            return pselect(count, to_read, to_write, exceptional, left, blocked);
        },
        [&] {
            return look_at_sets(count, {to_read, to_write, exceptional});
        });
}

namespace {

int poll_in_thread(pollfd* descriptors, nfds_t count, int limit_ms) {
    const timespec limit =
        to_timespec(static_cast<std::uint64_t>(std::max(limit_ms, 0)) * ns_of_ms);
    return poll_in_fibre(descriptors, count, limit_ms >= 0 ? &limit : nullptr, nullptr);
}

// Which has the system say what is left of the limit.
int select_in_thread(int count, fd_set* to_read, fd_set* to_write, fd_set* exceptional,
                     timeval* limit) {
    return in_thread([&] { return select(count, to_read, to_write, exceptional, limit); });
}

// ---- Semaphores and queues of messages, whose waits the system never restarts

int await_semaphore_by_clock(sem_t* semaphore, clockid_t clock, const timespec* end) {
    return in_thread([&] { return sem_clockwait(semaphore, clock, end); });
}

int await_semaphore(sem_t* semaphore, const timespec* end) {
    return in_thread([&] { return sem_timedwait(semaphore, end); });
}

int change_semaphores(int set, sembuf* operations, std::size_t count) {
    return in_thread([&] { return semop(set, operations, count); });
}

int change_semaphores_until(int set, sembuf* operations, std::size_t count, const timespec* limit) {
    return in_thread(
        limit, [&](const timespec* left) { return semtimedop(set, operations, count, left); });
}

int send_message(int queue, const void* message, std::size_t bytes, int flags) {
    return in_thread([&] { return msgsnd(queue, message, bytes, flags); });
}

ssize_t receive_message(int queue, void* message, std::size_t bytes, long type, int flags) {
    return in_thread([&] { return msgrcv(queue, message, bytes, type, flags); });
}

} // namespace

std::span<const warren_image_binding> thread_poll_bindings() {
    static const warren_image_binding bindings[] = {
        {"poll", reinterpret_cast<void*>(&poll_in_thread)},
        {"ppoll", reinterpret_cast<void*>(&poll_in_fibre)},
        {"pselect", reinterpret_cast<void*>(&select_in_fibre)},
        {"select", reinterpret_cast<void*>(&select_in_thread)},
        {"sem_timedwait", reinterpret_cast<void*>(&await_semaphore)},
        {"sem_clockwait", reinterpret_cast<void*>(&await_semaphore_by_clock)},
    };
    return bindings;
}

std::span<const warren_image_binding> wait_bindings() {
    static const warren_image_binding bindings[] = {
        {"pause", reinterpret_cast<void*>(&wait_for_handler)},
        {"sigsuspend", reinterpret_cast<void*>(&wait_with_mask)},
        {"sigwait", reinterpret_cast<void*>(&wait_for_any_of)},
        {"sigwaitinfo", reinterpret_cast<void*>(&wait_with_information)},
        {"sigtimedwait", reinterpret_cast<void*>(&wait_until)},
        {"sleep", reinterpret_cast<void*>(&sleep_seconds)},
        {"usleep", reinterpret_cast<void*>(&sleep_microseconds)},
        {"nanosleep", reinterpret_cast<void*>(&sleep_nanoseconds)},
        {"__nanosleep", reinterpret_cast<void*>(&sleep_nanoseconds)},
        {"clock_nanosleep", reinterpret_cast<void*>(&sleep_by_clock)},
        {"thrd_sleep", reinterpret_cast<void*>(&sleep_in_c_thread)},
        {"semop", reinterpret_cast<void*>(&change_semaphores)},
        {"semtimedop", reinterpret_cast<void*>(&change_semaphores_until)},
        {"msgsnd", reinterpret_cast<void*>(&send_message)},
        {"msgrcv", reinterpret_cast<void*>(&receive_message)},
        {"epoll_wait", reinterpret_cast<void*>(&wait_for_events_until)},
        {"epoll_pwait", reinterpret_cast<void*>(&wait_for_events_and_block)},
        {"epoll_pwait2", reinterpret_cast<void*>(&wait_for_events_by_time)},
    };
    return bindings;
}

} // namespace warren::launch
