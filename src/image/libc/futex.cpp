// Waits for words: barriers, pthread_once, and futexes that programs and libraries ask the system
// for by syscall (std::atomic's wait, latches, semaphores and the static variables of C++). A fibre
// parks, and looks at its word by itself now and then, as in pthread_mutex.cpp. Who calls the
// system without the C library (OpenMP of gcc) waits in the system: that keeps the worker, and a
// fibre that waits for it finds what has changed when it looks. A handler of a signal may wake a
// futex that fibres wait for; where it has interrupted a switch, it wakes all of them, and soon.
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <threads.h>
#include <unistd.h>
#include <utility>

#include "base/futex.hpp"
#include "image/libc/deadline.hpp"
#include "image/libc/functions.hpp"
#include "runtime/fibres/scheduler.hpp"

namespace warren::image::libc {

namespace {

using fibre::Looks;
using fibre::ObjectWait;

bool has_changed(const void* word, std::uint32_t expected) {
    return __atomic_load_n(static_cast<const std::uint32_t*>(word), __ATOMIC_RELAXED) != expected;
}

constexpr Looks own_word = {has_changed, 20'000, 100'000'000, Looks::ByHandlers::for_nothing};
constexpr Looks shared_word = {has_changed, 20'000, 10'000'000, Looks::ByHandlers::for_nothing};

std::uint32_t tell(const void* word, std::uint32_t count) {
    fibre::Scheduler* const scheduler = fibre::scheduler();
    return scheduler != nullptr ? scheduler->object_waits().tell(word, count) : 0;
}

// As FUTEX_WAKE of a program, which may be a handler of a signal.
std::uint32_t tell_safely(const void* word, std::uint32_t count) {
    fibre::Scheduler* const scheduler = fibre::scheduler();
    return scheduler != nullptr ? scheduler->object_waits().tell_safely(word, count) : 0;
}

// Parks the fibre while the word says what is expected, until somebody tells or the time has come.
// Returns an errno as the system's wait does: EAGAIN if it says something else to begin with, EINTR
// if a handler has run that ends the wait.
int wait_for_word(const std::uint32_t* word, std::uint32_t expected, bool is_shared,
                  const Deadline& deadline) {
    const Interruptions interruptions(deadline);
    ObjectWait wait(word, is_shared ? shared_word : own_word, expected);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (__atomic_load_n(word, __ATOMIC_ACQUIRE) != expected) {
        if (!wait.withdraw()) {
            tell(word, 1);
        }
        return EAGAIN;
    }
    while (!wait.park(deadline.until_ns())) {
        if (interruptions.have_come()) {
            return wait.withdraw() ? EINTR : 0;
        }
        if (has_changed(word, expected)) {
            return 0;
        }
        if (wait.has_been_away() && !interruptions.has_handled()) {
            return 0; // others may have been told in its place; the system allows it
        }
        if (deadline.is_over()) {
            return wait.withdraw() ? ETIMEDOUT : 0;
        }
    }
    return 0;
}

// --- Barriers

// The C library's, since its version 2.25 (nptl/pthread_barrier_wait.c). Fibres take part in the
// same rounds as threads do. A barrier is also shared with processes that have none of this.
struct Barrier {
    std::uint32_t in;    // how many have come, in all rounds
    std::uint32_t round; // those before this number may go on
    std::uint32_t count;
    std::int32_t shared;
    std::uint32_t out; // how many have gone on; plus what is missing to the last, once destroyed
};
static_assert(sizeof(Barrier) <= sizeof(pthread_barrier_t));

// Objects of another C library are left to it.
bool knows_barriers() {
    static const bool known = [] {
        pthread_barrier_t made;
        constexpr std::uint32_t count = 0x1234567;
        if (pthread_barrier_init(&made, nullptr, count) != 0) {
            return false;
        }
        const auto& seen = reinterpret_cast<const Barrier&>(made);
        const bool as_expected = seen.in == 0 && seen.round == 0 && seen.count == count &&
                                 seen.shared == 0 && seen.out == 0;
        ::pthread_barrier_destroy(&made);
        return as_expected;
    }();
    return known;
}

// Rounds have numbers until here; then all begins again.
std::uint32_t last_in(const Barrier& barrier) {
    constexpr std::uint32_t most = UINT_MAX / 2;
    return most - most % barrier.count;
}

void wake_all(std::uint32_t* word, bool is_shared) {
    ::syscall(SYS_futex, word, is_shared ? FUTEX_WAKE : FUTEX_WAKE_PRIVATE, INT_MAX, nullptr,
              nullptr, 0);
    tell(word, UINT_MAX);
}

int go_through(Barrier& barrier) {
    const std::uint32_t count = barrier.count;
    const std::uint32_t last = last_in(barrier);
    const bool is_shared = barrier.shared != 0;
    std::uint32_t number = __atomic_add_fetch(&barrier.in, 1, __ATOMIC_ACQ_REL);
    while (number > last) { // the others of the last round have yet to go on
        while (number > last) {
            wait_for_word(&barrier.in, number, is_shared, Deadline::never());
            number = __atomic_load_n(&barrier.in, __ATOMIC_RELAXED);
        }
        number = __atomic_add_fetch(&barrier.in, 1, __ATOMIC_ACQ_REL);
    }
    std::uint32_t round = __atomic_load_n(&barrier.round, __ATOMIC_RELAXED);
    while (round + count <= number) { // it completes one, or finds one that is complete
        const std::uint32_t next = number - number % count;
        if (__atomic_compare_exchange_n(&barrier.round, &round, next, true, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED)) {
            round = next;
            wake_all(&barrier.round, is_shared);
            break;
        }
    }
    while (number > round) {
        wait_for_word(&barrier.round, round, is_shared, Deadline::never());
        round = __atomic_load_n(&barrier.round, __ATOMIC_RELAXED);
    }
    std::atomic_thread_fence(std::memory_order_acquire);
    // From here on it may be destroyed, but by the last one.
    if (__atomic_add_fetch(&barrier.out, 1, __ATOMIC_RELEASE) == last) {
        std::atomic_thread_fence(std::memory_order_acquire);
        __atomic_store_n(&barrier.round, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&barrier.out, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&barrier.in, 0, __ATOMIC_RELEASE);
        wake_all(&barrier.in, is_shared);
    }
    return number % count == 0 ? PTHREAD_BARRIER_SERIAL_THREAD : 0;
}

} // namespace

int pthread_barrier_wait(pthread_barrier_t* barrier) {
    if (is_fibre() && knows_barriers()) {
        return go_through(*reinterpret_cast<Barrier*>(barrier));
    }
    const int result = ::pthread_barrier_wait(barrier);
    if (knows_barriers()) { // it may be gone: its address tells
        tell(&reinterpret_cast<Barrier*>(barrier)->round, UINT_MAX);
        tell(&reinterpret_cast<Barrier*>(barrier)->in, UINT_MAX);
    }
    return result;
}

// When all that have come have gone on, too.
int pthread_barrier_destroy(pthread_barrier_t* barrier) {
    if (!is_fibre() || !knows_barriers()) {
        return ::pthread_barrier_destroy(barrier);
    }
    auto& all = *reinterpret_cast<Barrier*>(barrier);
    const std::uint32_t in = __atomic_load_n(&all.in, __ATOMIC_RELAXED);
    const std::uint32_t missing = last_in(all) - in;
    if (__atomic_fetch_add(&all.out, missing, __ATOMIC_RELAXED) < in) {
        while (__atomic_load_n(&all.in, __ATOMIC_RELAXED) != 0) {
            wait_for_word(&all.in, in, all.shared != 0, Deadline::never());
        }
    }
    std::atomic_thread_fence(std::memory_order_acquire);
    return 0;
}

// --- Once

namespace {

// pthread_once_t, in the C library: two bits, below the number of forks that there were.
constexpr std::uint32_t once_begun = 1;
constexpr std::uint32_t once_done = 2;

} // namespace

// An exception of the function passes here: nothing that has a destructor may stand in its way,
// which only the image's own unwinder could run. Who waits meanwhile finds that by looking.
int pthread_once(pthread_once_t* control, void (*function)()) {
    const auto* word = reinterpret_cast<const std::uint32_t*>(control);
    std::uint32_t seen = __atomic_load_n(word, __ATOMIC_ACQUIRE);
    while (is_fibre() && (seen & (once_begun | once_done)) == once_begun) {
        wait_for_word(word, seen, false, Deadline::never());
        seen = __atomic_load_n(word, __ATOMIC_ACQUIRE);
    }
    if ((seen & once_done) != 0) {
        return 0;
    }
    const int error = ::pthread_once(control, function);
    tell(word, UINT_MAX);
    return error;
}

void call_once(once_flag* control, void (*function)()) {
    libc::pthread_once(reinterpret_cast<pthread_once_t*>(control), function);
}

// --- Futexes

namespace {

// FUTEX_WAIT counts from now, FUTEX_WAIT_BITSET names a time.
bool deadline_of(int command, bool by_day, const timespec* time, Deadline& deadline) {
    if (time == nullptr) {
        deadline = Deadline::never();
        return true;
    }
    if (command == FUTEX_WAIT_BITSET) {
        return Deadline::of(by_day ? CLOCK_REALTIME : CLOCK_MONOTONIC, *time, deadline);
    }
    timespec until{};
    ::clock_gettime(CLOCK_MONOTONIC, &until);
    constexpr long second_ns = 1'000'000'000;
    if (time->tv_sec < 0 || time->tv_nsec < 0 || time->tv_nsec >= second_ns) {
        return false;
    }
    if (__builtin_add_overflow(until.tv_sec, time->tv_sec, &until.tv_sec)) {
        deadline = Deadline::never();
        return true;
    }
    until.tv_nsec += time->tv_nsec;
    if (until.tv_nsec >= second_ns) {
        until.tv_nsec -= second_ns;
        ++until.tv_sec;
    }
    return Deadline::of(CLOCK_MONOTONIC, until, deadline);
}

// Whether it can be read. The system reads this set of signals before it refuses what is to be done
// with it.
bool is_readable(const std::uint32_t* word) {
    constexpr std::size_t set_bytes = 8;
    const auto address = reinterpret_cast<std::uintptr_t>(word) & ~(set_bytes - 1);
    const int before = errno;
    // (No set at all is none that it would read.)
    const bool readable =
        address != 0 && (::syscall(SYS_rt_sigprocmask, -1, address, nullptr, set_bytes) == 0 ||
                         std::exchange(errno, before) != EFAULT);
    return readable;
}

long failed(int error) {
    errno = error;
    return -1;
}

} // namespace

long syscall(long number, long first, long second, long third, long fourth, long fifth,
             long sixth) {
    const auto call = [&] { return ::syscall(number, first, second, third, fourth, fifth, sixth); };
    if (number != SYS_futex || fibre::scheduler() == nullptr) {
        return call();
    }
    const auto* word = reinterpret_cast<const std::uint32_t*>(first);
    const int command = static_cast<int>(second) & FUTEX_CMD_MASK;
    const bool is_shared = (second & FUTEX_PRIVATE_FLAG) == 0;
    const bool any = static_cast<std::uint32_t>(sixth) == FUTEX_BITSET_MATCH_ANY;
    switch (command) {
    case FUTEX_WAIT:
    case FUTEX_WAIT_BITSET: {
        Deadline deadline;
        // (A handler that has interrupted a switch waits in the system.)
        if (!is_fibre() || fibre::Inside::has_caller() || (command == FUTEX_WAIT_BITSET && !any) ||
            first % sizeof *word != 0 ||
            !deadline_of(command, (second & FUTEX_CLOCK_REALTIME) != 0,
                         reinterpret_cast<const timespec*>(fourth), deadline)) {
            return call();
        }
        if (!is_readable(word)) {
            return failed(EFAULT);
        }
        const int error =
            wait_for_word(word, static_cast<std::uint32_t>(third), is_shared, deadline);
        return error == 0 ? 0 : failed(error);
    }
    case FUTEX_WAKE:
    case FUTEX_WAKE_BITSET: {
        const auto count = static_cast<int>(third);
        const std::uint32_t told =
            count > 0 ? tell_safely(word, static_cast<std::uint32_t>(count)) : 0;
        third = count - static_cast<int>(told);
        if (told != 0 && third == 0) {
            return told;
        }
        const long woken = call();
        return woken < 0 ? woken : woken + told;
    }
    case FUTEX_REQUEUE:
    case FUTEX_CMP_REQUEUE:
    case FUTEX_WAKE_OP: {
        // Fibres go on for nothing, as the system allows.
        const long result = call();
        tell_safely(word, UINT_MAX);
        tell_safely(reinterpret_cast<const void*>(fifth), UINT_MAX);
        return result;
    }
    case FUTEX_LOCK_PI:
    case FUTEX_LOCK_PI2:
    case FUTEX_TRYLOCK_PI:
    case FUTEX_UNLOCK_PI:
        // The system would have the worker own it.
        return fibre::Scheduler::current() != nullptr ? failed(ENOSYS) : call();
    default:
        return call();
    }
}

} // namespace warren::image::libc
