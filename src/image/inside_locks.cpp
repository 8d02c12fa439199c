// Waits for mutexes, condition variables, read-write locks and semaphores: a fibre parks, and gives
// its worker to other ranks meanwhile. The objects stay the C library's, and kernel threads wait as
// ever; a fibre tries whether an object is free, and who has freed it tells those that wait
// (fibre/object_waits.hpp).
//
// Not all do: a thread that waits for a condition frees its mutex within the C library; other
// processes, and other mappings of an object, know nothing of us; and sem_post is for handlers of
// signals too, which must not take locks. So a fibre tries again by itself, ever less often: it
// waits an eighth longer than it would have to, at most 10 ms. Conditions, which can't be tried,
// keep the worker if they are shared by processes; so do mutexes of priorities, and robust ones.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>

#include "base/futex.hpp"
#include "fibre/scheduler.hpp"
#include "image/inside.hpp"

namespace warren::image::inside {

namespace {

constexpr std::uint64_t shortest_look_ns = 20'000;
constexpr std::uint64_t longest_look_ns = 10'000'000;
constexpr std::uint64_t looks_per_wait = 8;
constexpr timespec long_ago = {0, 0};

void tell(const void* object, std::uint32_t count) {
    if (fibre::Scheduler* const scheduler = fibre::scheduler()) {
        scheduler->object_waits().tell(object, count);
    }
}

// When it is that time of a clock, by the monotonic clock. False: it isn't a time.
bool time_by(clockid_t clock, const timespec& time, std::uint64_t& until_ns) {
    constexpr std::uint64_t second_ns = 1'000'000'000;
    timespec now{};
    if (time.tv_nsec < 0 || time.tv_nsec >= static_cast<long>(second_ns) ||
        (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC) || clock_gettime(clock, &now) != 0) {
        return false;
    }
    std::uint64_t left_ns = 0;
    if (time.tv_sec > now.tv_sec || (time.tv_sec == now.tv_sec && time.tv_nsec > now.tv_nsec)) {
        constexpr std::uint64_t century_s = 3'155'760'000;
        const auto seconds = static_cast<std::uint64_t>(time.tv_sec - now.tv_sec);
        left_ns = std::min(seconds, century_s) * second_ns +
                  static_cast<std::uint64_t>(time.tv_nsec) -
                  static_cast<std::uint64_t>(now.tv_nsec);
    }
    until_ns = monotonic_ns() + left_ns;
    return true;
}

// Until `attempt` returns something else than EBUSY, or the time has come.
template <typename Attempt>
int try_till(const void* object, std::uint64_t until_ns, Attempt attempt) {
    fibre::ObjectWait wait(object);
    const std::uint64_t begin_ns = monotonic_ns();
    while (true) {
        const int error = attempt();
        if (error != EBUSY) {
            return error;
        }
        const std::uint64_t now_ns = monotonic_ns();
        if (now_ns >= until_ns) {
            return ETIMEDOUT;
        }
        const std::uint64_t look_ns =
            std::clamp((now_ns - begin_ns) / looks_per_wait, shortest_look_ns, longest_look_ns);
        if (wait.park(std::min(until_ns, now_ns + look_ns))) {
            wait.repeat();
        }
    }
}

// The C library's functions with time limits find out what else may be wrong.
int busy_if_late(int error) {
    return error == ETIMEDOUT ? EBUSY : error;
}

// The kinds of mutexes are numbers of the C library's, which static initialisers contain.
bool can_be_tried(const pthread_mutex_t& mutex) {
    constexpr int robust_or_priority = 16 | 32 | 64;
    return (mutex.__data.__kind & robust_or_priority) == 0;
}

bool checks_errors(const pthread_mutex_t& mutex) {
    return (mutex.__data.__kind & 3) == PTHREAD_MUTEX_ERRORCHECK_NP;
}

int try_mutex(pthread_mutex_t* mutex) {
    return checks_errors(*mutex)
               ? busy_if_late(::pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &long_ago))
               : ::pthread_mutex_trylock(mutex);
}

int lock_till(pthread_mutex_t* mutex, std::uint64_t until_ns) {
    return try_till(mutex, until_ns, [mutex] { return try_mutex(mutex); });
}

// As pthread_cond_init, and static initialisers, write it: pthread_condattr_getpshared and
// pthread_condattr_getclock of the attributes.
bool is_of_processes(const pthread_cond_t& condition) {
    return (__atomic_load_n(&condition.__data.__wrefs, __ATOMIC_RELAXED) & 1) != 0;
}

clockid_t clock_of(const pthread_cond_t& condition) {
    return (__atomic_load_n(&condition.__data.__wrefs, __ATOMIC_RELAXED) & 2) != 0 ? CLOCK_MONOTONIC
                                                                                   : CLOCK_REALTIME;
}

int wait_till(pthread_cond_t* condition, pthread_mutex_t* mutex, std::uint64_t until_ns) {
    fibre::ObjectWait wait(condition);
    if (const int error = unlock_mutex(mutex)) {
        if (!wait.withdraw()) {
            tell(condition, 1); // a signal that came meanwhile is another's
        }
        return error;
    }
    // Told at the last moment: it counts, for nobody else has been told instead.
    const bool told = wait.park(until_ns) || !wait.withdraw();
    const int error = lock_mutex(mutex);
    return error != 0 ? error : told ? 0 : ETIMEDOUT;
}

int c11_result(int error) {
    switch (error) {
    case 0:
        return thrd_success;
    case ETIMEDOUT:
        return thrd_timedout;
    case EBUSY:
        return thrd_busy;
    case ENOMEM:
        return thrd_nomem;
    default:
        return thrd_error;
    }
}

pthread_mutex_t* mutex_of(mtx_t* mutex) {
    return reinterpret_cast<pthread_mutex_t*>(mutex);
}

pthread_cond_t* condition_of(cnd_t* condition) {
    return reinterpret_cast<pthread_cond_t*>(condition);
}

int try_semaphore(sem_t* semaphore) {
    const int error = ::sem_trywait(semaphore) == 0 ? 0 : errno;
    return error == EAGAIN ? EBUSY : error;
}

int wait_till(sem_t* semaphore, std::uint64_t until_ns) {
    const int before = errno;
    const int error =
        try_till(semaphore, until_ns, [semaphore] { return try_semaphore(semaphore); });
    errno = error != 0 ? error : before;
    return error != 0 ? -1 : 0;
}

} // namespace

// --- Mutexes

int lock_mutex(pthread_mutex_t* mutex) {
    if (fibre::Scheduler::current() == nullptr || !can_be_tried(*mutex)) {
        return ::pthread_mutex_lock(mutex);
    }
    const int error = ::pthread_mutex_trylock(mutex);
    if (error != EBUSY) {
        return error;
    }
    return is_fibre() ? lock_till(mutex, UINT64_MAX) : ::pthread_mutex_lock(mutex);
}

int lock_mutex_by_clock(pthread_mutex_t* mutex, clockid_t clock, const timespec* time) {
    std::uint64_t until_ns = 0;
    if (!is_fibre() || !can_be_tried(*mutex) || !time_by(clock, *time, until_ns)) {
        return ::pthread_mutex_clocklock(mutex, clock, time);
    }
    return lock_till(mutex, until_ns);
}

int lock_mutex_till(pthread_mutex_t* mutex, const timespec* time) {
    return lock_mutex_by_clock(mutex, CLOCK_REALTIME, time);
}

int unlock_mutex(pthread_mutex_t* mutex) {
    const int error = ::pthread_mutex_unlock(mutex);
    tell(mutex, 1);
    return error;
}

int lock_c11(mtx_t* mutex) {
    return c11_result(lock_mutex(mutex_of(mutex)));
}

int lock_c11_till(mtx_t* mutex, const timespec* time) {
    return c11_result(lock_mutex_till(mutex_of(mutex), time));
}

int unlock_c11(mtx_t* mutex) {
    return c11_result(unlock_mutex(mutex_of(mutex)));
}

// --- Conditions. A signal has a thread and a fibre go on if both wait: one of them too many, which
// the standard allows.

int wait_condition(pthread_cond_t* condition, pthread_mutex_t* mutex) {
    if (!is_fibre() || is_of_processes(*condition)) {
        return ::pthread_cond_wait(condition, mutex);
    }
    return wait_till(condition, mutex, UINT64_MAX);
}

int wait_condition_by_clock(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                            const timespec* time) {
    std::uint64_t until_ns = 0;
    if (!is_fibre() || is_of_processes(*condition) || !time_by(clock, *time, until_ns)) {
        return ::pthread_cond_clockwait(condition, mutex, clock, time);
    }
    return wait_till(condition, mutex, until_ns);
}

int wait_condition_till(pthread_cond_t* condition, pthread_mutex_t* mutex, const timespec* time) {
    std::uint64_t until_ns = 0;
    if (!is_fibre() || is_of_processes(*condition) ||
        !time_by(clock_of(*condition), *time, until_ns)) {
        return ::pthread_cond_timedwait(condition, mutex, time);
    }
    return wait_till(condition, mutex, until_ns);
}

int signal_condition(pthread_cond_t* condition) {
    const int error = ::pthread_cond_signal(condition);
    tell(condition, 1);
    return error;
}

int broadcast_condition(pthread_cond_t* condition) {
    const int error = ::pthread_cond_broadcast(condition);
    tell(condition, UINT_MAX);
    return error;
}

int wait_condition_c11(cnd_t* condition, mtx_t* mutex) {
    return c11_result(wait_condition(condition_of(condition), mutex_of(mutex)));
}

int wait_condition_c11_till(cnd_t* condition, mtx_t* mutex, const timespec* time) {
    return c11_result(wait_condition_till(condition_of(condition), mutex_of(mutex), time));
}

int signal_condition_c11(cnd_t* condition) {
    return c11_result(signal_condition(condition_of(condition)));
}

int broadcast_condition_c11(cnd_t* condition) {
    return c11_result(broadcast_condition(condition_of(condition)));
}

// --- Read-write locks

int read_lock(pthread_rwlock_t* lock) {
    const int error = ::pthread_rwlock_tryrdlock(lock);
    if (error != EBUSY || !is_fibre()) {
        return error != EBUSY ? error : ::pthread_rwlock_rdlock(lock);
    }
    return try_till(lock, UINT64_MAX, [lock] {
        return busy_if_late(::pthread_rwlock_clockrdlock(lock, CLOCK_MONOTONIC, &long_ago));
    });
}

int read_lock_by_clock(pthread_rwlock_t* lock, clockid_t clock, const timespec* time) {
    std::uint64_t until_ns = 0;
    if (!is_fibre() || !time_by(clock, *time, until_ns)) {
        return ::pthread_rwlock_clockrdlock(lock, clock, time);
    }
    return try_till(lock, until_ns, [lock] {
        return busy_if_late(::pthread_rwlock_clockrdlock(lock, CLOCK_MONOTONIC, &long_ago));
    });
}

int read_lock_till(pthread_rwlock_t* lock, const timespec* time) {
    return read_lock_by_clock(lock, CLOCK_REALTIME, time);
}

int write_lock(pthread_rwlock_t* lock) {
    const int error = ::pthread_rwlock_trywrlock(lock);
    if (error != EBUSY || !is_fibre()) {
        return error != EBUSY ? error : ::pthread_rwlock_wrlock(lock);
    }
    return try_till(lock, UINT64_MAX, [lock] {
        return busy_if_late(::pthread_rwlock_clockwrlock(lock, CLOCK_MONOTONIC, &long_ago));
    });
}

int write_lock_by_clock(pthread_rwlock_t* lock, clockid_t clock, const timespec* time) {
    std::uint64_t until_ns = 0;
    if (!is_fibre() || !time_by(clock, *time, until_ns)) {
        return ::pthread_rwlock_clockwrlock(lock, clock, time);
    }
    return try_till(lock, until_ns, [lock] {
        return busy_if_late(::pthread_rwlock_clockwrlock(lock, CLOCK_MONOTONIC, &long_ago));
    });
}

int write_lock_till(pthread_rwlock_t* lock, const timespec* time) {
    return write_lock_by_clock(lock, CLOCK_REALTIME, time);
}

int unlock_read_write(pthread_rwlock_t* lock) {
    const int error = ::pthread_rwlock_unlock(lock);
    tell(lock, UINT_MAX);
    return error;
}

// --- Semaphores

int wait_semaphore(sem_t* semaphore) {
    if (fibre::Scheduler::current() != nullptr && ::sem_trywait(semaphore) == 0) {
        return 0;
    }
    return is_fibre() ? wait_till(semaphore, UINT64_MAX) : ::sem_wait(semaphore);
}

int wait_semaphore_by_clock(sem_t* semaphore, clockid_t clock, const timespec* time) {
    std::uint64_t until_ns = 0;
    if (!is_fibre() || !time_by(clock, *time, until_ns)) {
        return ::sem_clockwait(semaphore, clock, time);
    }
    return wait_till(semaphore, until_ns);
}

int wait_semaphore_till(sem_t* semaphore, const timespec* time) {
    return wait_semaphore_by_clock(semaphore, CLOCK_REALTIME, time);
}

} // namespace warren::image::inside
