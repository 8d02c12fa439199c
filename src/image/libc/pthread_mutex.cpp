// Waits for mutexes, condition variables, read-write locks and semaphores: a fibre parks, and gives
// its worker to other ranks meanwhile. The objects stay the C library's, and kernel threads wait as
// ever; a fibre tries whether an object is free, and who has freed it tells those that wait
// (runtime/fibres/object_waits.hpp).
//
// Other processes, and other mappings of an object, tell nobody here. So a fibre also looks by
// itself: it waits an eighth longer than it would have to, at most 10 ms for what processes share.
// A condition can't be looked at: of one that processes share the wait ends for nothing that often,
// as the standard allows.
//
// Where it differs from the C library: these waits are no points of cancellation of a rank's own
// fibre (its threads' are as ever), and mutexes have no priorities (PTHREAD_PRIO_INHERIT,
// PTHREAD_PRIO_PROTECT): those that a rank makes are plain ones.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>

#include "base/futex.hpp"
#include "image/libc/deadline.hpp"
#include "image/libc/functions.hpp"
#include "image/libc/layout.hpp"
#include "image/tuning.hpp"
#include "runtime/fibres/scheduler.hpp"

namespace warren::image::libc {

namespace {

void tell(const void* object, std::uint32_t count) {
    if (fibre::Scheduler* const scheduler = fibre::scheduler()) {
        scheduler->object_waits().tell(object, count);
    }
}

using fibre::Looks;
using fibre::ObjectWait;

// --- What the C library's objects look like (nptl; the same since its version 2.25).

constexpr timespec long_ago = {0, 0};

// Kinds are numbers of the C library's, which static initialisers contain.
constexpr int robust_kind = 16;
constexpr int inheriting_kind = 32;
constexpr int protected_kind = 64;
constexpr int shared_kind = 128;

bool has_priorities(const pthread_mutex_t& mutex) {
    return (mutex.__data.__kind & (inheriting_kind | protected_kind)) != 0;
}

bool checks_errors(const pthread_mutex_t& mutex) {
    return (mutex.__data.__kind & 3) == PTHREAD_MUTEX_ERRORCHECK_NP;
}

bool mutex_may_be_free(const void* object, std::uint32_t) {
    const auto& mutex = *static_cast<const pthread_mutex_t*>(object);
    const int lock = __atomic_load_n(&mutex.__data.__lock, __ATOMIC_RELAXED);
    constexpr int owner_died = 0x40000000;
    return lock == 0 || ((mutex.__data.__kind & robust_kind) != 0 && (lock & owner_died) != 0);
}

constexpr unsigned write_phase = 1;
constexpr unsigned write_locked = 2;
constexpr unsigned reader_shift = 3;

unsigned readers_of(const void* object) {
    const auto& lock = *static_cast<const pthread_rwlock_t*>(object);
    return __atomic_load_n(&lock.__data.__readers, __ATOMIC_RELAXED);
}

// Those that wait to write wait for the second byte of a lock, and if it prefers them have, until
// they got it, a wait for its third one, which nobody tells.
const void* writers_of(const pthread_rwlock_t* lock) {
    return reinterpret_cast<const char*>(lock) + 1;
}

const void* preference_of(const pthread_rwlock_t* lock) {
    return reinterpret_cast<const char*>(lock) + 2;
}

// Whether a fibre waits to write whom readers must let pass; the C library knows nothing of it.
bool gives_way_to_writers(const pthread_rwlock_t& lock) {
    fibre::Scheduler* const scheduler = fibre::scheduler();
    return scheduler != nullptr &&
           lock.__data.__flags == PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP &&
           scheduler->enabled() && scheduler->object_waits().is_waited_for(preference_of(&lock));
}

bool may_be_read(const void* object, std::uint32_t) {
    return (readers_of(object) & (write_phase | write_locked)) != (write_phase | write_locked) &&
           !gives_way_to_writers(*static_cast<const pthread_rwlock_t*>(object));
}

bool may_be_written(const void* object, std::uint32_t) {
    const unsigned readers = readers_of(static_cast<const char*>(object) - 1);
    return readers >> reader_shift == 0 && (readers & write_locked) == 0;
}

bool is_of_processes(const pthread_rwlock_t& lock) {
    return lock.__data.__shared != 0;
}

// As pthread_cond_init, and static initialisers, write it: pthread_condattr_getpshared and
// pthread_condattr_getclock of the attributes.
bool is_of_processes(const pthread_cond_t& condition) {
    return (condition_flags(condition) & 1) != 0;
}

clockid_t clock_of(const pthread_cond_t& condition) {
    return (condition_flags(condition) & 2) != 0 ? CLOCK_MONOTONIC : CLOCK_REALTIME;
}

struct Semaphore {
    std::uint64_t value; // and in the upper half how many wait in the C library
    std::uint32_t shared;
    std::uint32_t unused;
};
static_assert(sizeof(Semaphore) <= sizeof(sem_t));

bool semaphore_may_be_free(const void* object, std::uint32_t) {
    const auto& semaphore = *static_cast<const Semaphore*>(object);
    return static_cast<std::uint32_t>(__atomic_load_n(&semaphore.value, __ATOMIC_RELAXED)) != 0;
}

// --- How those are waited for

constexpr Looks own_mutex = {mutex_may_be_free, shortest_look_ns, longest_look_ns};
constexpr Looks shared_mutex = {mutex_may_be_free, shortest_look_ns, longest_shared_look_ns};
constexpr Looks own_reading = {may_be_read, shortest_look_ns, longest_look_ns};
constexpr Looks shared_reading = {may_be_read, shortest_look_ns, longest_shared_look_ns};
constexpr Looks own_writing = {may_be_written, shortest_look_ns, longest_look_ns};
constexpr Looks shared_writing = {may_be_written, shortest_look_ns, longest_shared_look_ns};
constexpr Looks own_semaphore = {semaphore_may_be_free, shortest_look_ns, longest_look_ns,
                                 Looks::ByHandlers::if_free};
constexpr Looks shared_semaphore = {semaphore_may_be_free, shortest_look_ns, longest_shared_look_ns,
                                    Looks::ByHandlers::if_free};
constexpr Looks untold = {nullptr, longest_look_ns, longest_look_ns};

// The lock is free, or readers need give way no more. (One writer that comes too early waits
// again.)
void tell_of(const pthread_rwlock_t* lock) {
    if (fibre::Scheduler* const scheduler = fibre::scheduler()) {
        if (scheduler->object_waits().tell(writers_of(lock), 1) == 0 ||
            !gives_way_to_writers(*lock)) {
            scheduler->object_waits().tell(lock, UINT32_MAX);
        }
    }
}

// Until `attempt` returns something else than EBUSY, the time has come or, if the wait
// `is_for_semaphore`, a handler of a signal has ended it.
template <typename Attempt>
int try_till(ObjectWait& wait, const Deadline& deadline, Attempt attempt, bool& missed,
             bool is_for_semaphore = false) {
    const Interruptions interruptions(deadline);
    while (true) {
        int error = is_for_semaphore && interruptions.have_come() ? EINTR : attempt();
        if (error == EBUSY && deadline.is_over()) {
            error = ETIMEDOUT;
        }
        if (error != EBUSY) {
            missed = !wait.withdraw(); // told at the last moment: that is another's
            return error;
        }
        if (wait.park(deadline.until_ns())) {
            wait.repeat();
        }
    }
}

// The C library's functions with time limits find out what else may be wrong.
int busy_if_late(int error) {
    return error == ETIMEDOUT ? EBUSY : error;
}

int try_mutex(pthread_mutex_t* mutex) {
    return checks_errors(*mutex)
               ? busy_if_late(::pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &long_ago))
               : ::pthread_mutex_trylock(mutex);
}

int lock_till(pthread_mutex_t* mutex, const Deadline& deadline) {
    ObjectWait wait(mutex, (mutex->__data.__kind & shared_kind) != 0 ? shared_mutex : own_mutex);
    bool missed = false;
    const int error = try_till(
        wait, deadline, [mutex] { return try_mutex(mutex); }, missed);
    if (missed) {
        tell(mutex, 1);
    }
    return error;
}

// A fibre's number is no kernel thread's, which is what the kernel looks for.
int refuse_priorities() {
    static std::atomic<bool> told{false};
    if (!told.exchange(true)) {
        libc::warnx("a mutex with priorities, which another process has made, can't be "
                    "locked by a rank that is a fibre: make it in a rank, or without "
                    "pthread_mutexattr_setprotocol");
    }
    return ENOTSUP;
}

// Waits for a condition that has become true: those of one fibre for one condition that follow
// each other.
struct Series {
    const void* condition = nullptr;
    std::uint64_t begin_ns = 0;
    std::uint64_t end_ns = 0; // of the last
};
thread_local Series series;

// When a condition of processes is to be looked at: by going on for nothing, as the standard allows
// at any time.
std::uint64_t look_at_shared(const pthread_cond_t* condition) {
    const std::uint64_t now_ns = monotonic_ns();
    if (series.condition != condition || now_ns - series.end_ns > longest_shared_look_ns) {
        series = {.condition = condition, .begin_ns = now_ns};
    }
    return now_ns +
           std::clamp((now_ns - series.begin_ns) / 8, shortest_look_ns, longest_shared_look_ns);
}

int wait_till(pthread_cond_t* condition, pthread_mutex_t* mutex, const Deadline& deadline) {
    const bool is_shared = is_of_processes(*condition);
    ObjectWait wait(condition, untold);
    if (const int error = libc::pthread_mutex_unlock(mutex)) {
        if (!wait.withdraw()) {
            tell(condition, 1); // a signal that came meanwhile is another's
        }
        return error;
    }
    const std::uint64_t look_ns = is_shared ? look_at_shared(condition) : UINT64_MAX;
    bool told = false;
    bool looks = false;
    do {
        told = wait.park(std::min(look_ns, deadline.until_ns()));
        // Goes on for nothing: a handler may have kept it from a signal of the condition.
        looks = (is_shared && !deadline.is_over()) || wait.has_been_away();
    } while (!told && !looks && !deadline.is_over());
    // Told at the last moment: it counts, for nobody else has been told instead.
    told = told || !wait.withdraw();
    const int error = libc::pthread_mutex_lock(mutex);
    if (is_shared) {
        series.end_ns = monotonic_ns();
        if (told) {
            series.condition = nullptr;
        }
    }
    return error != 0 ? error : told || looks ? 0 : ETIMEDOUT;
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

int try_to_read(pthread_rwlock_t* lock) {
    return gives_way_to_writers(*lock)
               ? EBUSY
               : busy_if_late(::pthread_rwlock_clockrdlock(lock, CLOCK_MONOTONIC, &long_ago));
}

int read_till(pthread_rwlock_t* lock, const Deadline& deadline) {
    ObjectWait wait(lock, is_of_processes(*lock) ? shared_reading : own_reading);
    bool missed = false; // all readers have been told, then
    return try_till(
        wait, deadline, [lock] { return try_to_read(lock); }, missed);
}

int write_till(pthread_rwlock_t* lock, const Deadline& deadline) {
    bool missed = false;
    int error = 0;
    {
        const ObjectWait preference(preference_of(lock), untold);
        ObjectWait wait(writers_of(lock), is_of_processes(*lock) ? shared_writing : own_writing);
        error = try_till(
            wait, deadline,
            [lock] {
                return busy_if_late(::pthread_rwlock_clockwrlock(lock, CLOCK_MONOTONIC, &long_ago));
            },
            missed);
    }
    if (missed || error != 0) {
        tell_of(lock); // also readers, who have given way to this one
    }
    return error;
}

int try_semaphore(sem_t* semaphore) {
    const int error = ::sem_trywait(semaphore) == 0 ? 0 : errno;
    return error == EAGAIN ? EBUSY : error;
}

int wait_till(sem_t* semaphore, const Deadline& deadline) {
    const int before = errno;
    bool missed = false;
    int error = 0;
    {
        ObjectWait wait(semaphore, reinterpret_cast<const Semaphore*>(semaphore)->shared != 0
                                       ? shared_semaphore
                                       : own_semaphore);
        error = try_till(
            wait, deadline, [semaphore] { return try_semaphore(semaphore); }, missed, true);
    }
    // One of many posts at once is told.
    if (missed || (error == 0 && semaphore_may_be_free(semaphore, 0))) {
        tell(semaphore, 1);
    }
    errno = error != 0 ? error : before;
    return error != 0 ? -1 : 0;
}

} // namespace

// --- Mutexes

int pthread_mutex_init(pthread_mutex_t* mutex, const pthread_mutexattr_t* attributes) {
    // Fibres have no priorities of the kernel's, nor may it take them for the thread that they run
    // on.
    int protocol = PTHREAD_PRIO_NONE;
    if (fibre::scheduler() == nullptr || attributes == nullptr ||
        pthread_mutexattr_getprotocol(attributes, &protocol) != 0 ||
        protocol == PTHREAD_PRIO_NONE) {
        return ::pthread_mutex_init(mutex, attributes);
    }
    pthread_mutexattr_t plain = *attributes;
    pthread_mutexattr_setprotocol(&plain, PTHREAD_PRIO_NONE);
    return ::pthread_mutex_init(mutex, &plain);
}

int pthread_mutex_lock(pthread_mutex_t* mutex) {
    if (fibre::Scheduler::current() == nullptr) {
        return ::pthread_mutex_lock(mutex);
    }
    if (has_priorities(*mutex)) {
        return refuse_priorities();
    }
    const int error = ::pthread_mutex_trylock(mutex);
    if (error != EBUSY) {
        return error;
    }
    return is_fibre() ? lock_till(mutex, Deadline::never()) : ::pthread_mutex_lock(mutex);
}

int pthread_mutex_trylock(pthread_mutex_t* mutex) {
    if (fibre::Scheduler::current() != nullptr && has_priorities(*mutex)) {
        return refuse_priorities();
    }
    return ::pthread_mutex_trylock(mutex);
}

int pthread_mutex_clocklock(pthread_mutex_t* mutex, clockid_t clock, const timespec* time) {
    Deadline deadline;
    if (fibre::Scheduler::current() != nullptr && has_priorities(*mutex)) {
        return refuse_priorities();
    }
    if (!is_fibre() || !Deadline::of(clock, *time, deadline)) {
        return ::pthread_mutex_clocklock(mutex, clock, time);
    }
    return lock_till(mutex, deadline);
}

int pthread_mutex_timedlock(pthread_mutex_t* mutex, const timespec* time) {
    return libc::pthread_mutex_clocklock(mutex, CLOCK_REALTIME, time);
}

int pthread_mutex_unlock(pthread_mutex_t* mutex) {
    const int error = ::pthread_mutex_unlock(mutex);
    tell(mutex, 1);
    return error;
}

int mtx_lock(mtx_t* mutex) {
    return c11_result(libc::pthread_mutex_lock(mutex_of(mutex)));
}

int mtx_timedlock(mtx_t* mutex, const timespec* time) {
    return c11_result(libc::pthread_mutex_timedlock(mutex_of(mutex), time));
}

int mtx_unlock(mtx_t* mutex) {
    return c11_result(libc::pthread_mutex_unlock(mutex_of(mutex)));
}

// --- Conditions. A signal has a thread and a fibre go on if both wait: one of them too many, which
// the standard allows. A thread frees its mutex within the C library: who waits for it is told
// right before, and looks often from then on.

int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
    if (!is_fibre()) {
        tell(mutex, 1);
        return ::pthread_cond_wait(condition, mutex);
    }
    return wait_till(condition, mutex, Deadline::never());
}

int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const timespec* time) {
    Deadline deadline;
    if (!is_fibre() || !Deadline::of(clock, *time, deadline)) {
        tell(mutex, 1);
        return ::pthread_cond_clockwait(condition, mutex, clock, time);
    }
    return wait_till(condition, mutex, deadline);
}

int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                           const timespec* time) {
    Deadline deadline;
    if (!is_fibre() || !Deadline::of(clock_of(*condition), *time, deadline)) {
        tell(mutex, 1);
        return ::pthread_cond_timedwait(condition, mutex, time);
    }
    return wait_till(condition, mutex, deadline);
}

int pthread_cond_signal(pthread_cond_t* condition) {
    const int error = ::pthread_cond_signal(condition);
    tell(condition, 1);
    return error;
}

int pthread_cond_broadcast(pthread_cond_t* condition) {
    const int error = ::pthread_cond_broadcast(condition);
    tell(condition, UINT_MAX);
    return error;
}

int cnd_wait(cnd_t* condition, mtx_t* mutex) {
    return c11_result(libc::pthread_cond_wait(condition_of(condition), mutex_of(mutex)));
}

int cnd_timedwait(cnd_t* condition, mtx_t* mutex, const timespec* time) {
    return c11_result(libc::pthread_cond_timedwait(condition_of(condition), mutex_of(mutex), time));
}

int cnd_signal(cnd_t* condition) {
    return c11_result(libc::pthread_cond_signal(condition_of(condition)));
}

int cnd_broadcast(cnd_t* condition) {
    return c11_result(libc::pthread_cond_broadcast(condition_of(condition)));
}

// --- Read-write locks

int pthread_rwlock_rdlock(pthread_rwlock_t* lock) {
    const int error = libc::pthread_rwlock_tryrdlock(lock);
    if (error != EBUSY) {
        return error;
    }
    return is_fibre() || gives_way_to_writers(*lock) ? read_till(lock, Deadline::never())
                                                     : ::pthread_rwlock_rdlock(lock);
}

int pthread_rwlock_tryrdlock(pthread_rwlock_t* lock) {
    return gives_way_to_writers(*lock) ? EBUSY : ::pthread_rwlock_tryrdlock(lock);
}

int pthread_rwlock_clockrdlock(pthread_rwlock_t* lock, clockid_t clock, const timespec* time) {
    Deadline deadline;
    if ((!is_fibre() && !gives_way_to_writers(*lock)) || !Deadline::of(clock, *time, deadline)) {
        return ::pthread_rwlock_clockrdlock(lock, clock, time);
    }
    return read_till(lock, deadline);
}

int pthread_rwlock_timedrdlock(pthread_rwlock_t* lock, const timespec* time) {
    return libc::pthread_rwlock_clockrdlock(lock, CLOCK_REALTIME, time);
}

int pthread_rwlock_wrlock(pthread_rwlock_t* lock) {
    const int error = ::pthread_rwlock_trywrlock(lock);
    if (error != EBUSY || !is_fibre()) {
        return error != EBUSY ? error : ::pthread_rwlock_wrlock(lock);
    }
    return write_till(lock, Deadline::never());
}

int pthread_rwlock_clockwrlock(pthread_rwlock_t* lock, clockid_t clock, const timespec* time) {
    Deadline deadline;
    if (!is_fibre() || !Deadline::of(clock, *time, deadline)) {
        return ::pthread_rwlock_clockwrlock(lock, clock, time);
    }
    return write_till(lock, deadline);
}

int pthread_rwlock_timedwrlock(pthread_rwlock_t* lock, const timespec* time) {
    return libc::pthread_rwlock_clockwrlock(lock, CLOCK_REALTIME, time);
}

int pthread_rwlock_unlock(pthread_rwlock_t* lock) {
    const int error = ::pthread_rwlock_unlock(lock);
    tell_of(lock);
    return error;
}

// --- Semaphores

int sem_wait(sem_t* semaphore) {
    if (fibre::Scheduler::current() != nullptr && ::sem_trywait(semaphore) == 0) {
        return 0;
    }
    return is_fibre() ? wait_till(semaphore, Deadline::never()) : ::sem_wait(semaphore);
}

int sem_clockwait(sem_t* semaphore, clockid_t clock, const timespec* time) {
    Deadline deadline;
    if (!is_fibre() || !Deadline::of(clock, *time, deadline)) {
        return ::sem_clockwait(semaphore, clock, time);
    }
    return wait_till(semaphore, deadline);
}

int sem_timedwait(sem_t* semaphore, const timespec* time) {
    return libc::sem_clockwait(semaphore, CLOCK_REALTIME, time);
}

int sem_post(sem_t* semaphore) {
    const int result = ::sem_post(semaphore);
    if (fibre::Scheduler* const scheduler = result == 0 ? fibre::scheduler() : nullptr) {
        const int before = errno;
        scheduler->object_waits().tell_soon(semaphore); // it may be a handler of a signal
        errno = before;
    }
    return result;
}

} // namespace warren::image::libc
