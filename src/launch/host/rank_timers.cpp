#include "launch/host/rank_timers.hpp"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <ctime>
#include <memory>
#include <mutex>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/blocked_signals.hpp"
#include "image/host_interface.hpp"
#include "launch/host/passed_signals.hpp"
#include "launch/host/ranks.hpp"
#include "launch/host/thread_signals.hpp"

namespace warren::launch {

namespace {

// Whose signals have its address as their value, instead of the program's.
struct Owner {
    std::atomic<std::uint32_t> rank{0};
    int number = 0; // of the signal
    std::atomic<sigval> value{};
};

struct RankTimer {
    Owner owner;
    std::mutex lock;
    timer_t number{};
    bool is_made = false;
};

// Owners of what programs make: they stay for ever, as signals may be under way; ranks use them
// again.
constexpr std::size_t owners_of_chunk = 512;
constexpr std::size_t most_chunks = 512;
struct Chunk {
    Owner all[owners_of_chunk];
};

struct RankTimers {
    pid_t process = 0;
    bool fibres = false;
    std::uint32_t ranks = 0;
    std::unique_ptr<RankTimer[]> all;
    std::mutex lock; // of the following, and of the router's start
    std::size_t owners = 0;
    std::atomic<Chunk*> chunks[most_chunks] = {};
    std::atomic<pid_t> router{0};
};

RankTimers& rank_timers() {
    static RankTimers& only = *new RankTimers; // outlives everything
    return only;
}

// Null: the caller belongs to no rank, or is in a child of fork, which is a process.
RankTimer* timer_of_caller() {
    const std::uint32_t rank = rank_of_thread();
    return rank < rank_timers().ranks && getpid() == rank_timers().process
               ? &rank_timers().all[rank]
               : nullptr;
}

timespec of_timeval(const timeval& time) {
    return {.tv_sec = time.tv_sec, .tv_nsec = 1000 * time.tv_usec};
}

itimerval to_itimerval(const itimerspec& times) {
    constexpr long least = 999; // rounded up: a timer that runs isn't 0
    const auto convert = [](const timespec& time) {
        const long us = (time.tv_nsec + least) / 1000;
        return timeval{.tv_sec = time.tv_sec + us / 1000000, .tv_usec = us % 1000000};
    };
    return {.it_interval = convert(times.it_interval), .it_value = convert(times.it_value)};
}

// The router's signals, which no process sends.
int signal_of_router() {
    return SIGRTMAX;
}

// Gets the signals of the timers of ranks that are threads, and posts them: the kernel would give
// them to one thread, whatever that blocks, or to another rank's. It has no descriptors, which
// would keep a rank's pipes open.
void* route(void*) {
    if (unshare(CLONE_FILES) == 0) {
        syscall(SYS_close_range, 0U, ~0U, 0U);
    }
    rank_timers().router.store(own_thread(), std::memory_order_release);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal_of_router());
    while (true) {
        siginfo_t information{};
        if (sigwaitinfo(&set, &information) > 0) {
            const std::uint32_t owner = owner_of_signal(information);
            if (owner < rank_timers().ranks) { // else it is no rank's, or of one that has ended
                post_to_rank(owner, information);
            }
        }
    }
}

// Has the signals of an event come to the owner's rank. The caller has signals blocked.
void aim(sigevent& event, Owner& owner, bool of_timer) {
    event.sigev_value.sival_ptr = &owner;
    event.sigev_notify = SIGEV_SIGNAL;
    if (of_timer && !rank_timers().fibres) {
        event.sigev_notify = SIGEV_THREAD_ID;
        event.sigev_signo = signal_of_router();
        event._sigev_un._tid = rank_timers().router.load(std::memory_order_relaxed);
    }
}

bool make_timer(RankTimer& timer) {
    sigevent event{};
    event.sigev_signo = SIGALRM;
    if (!timer.is_made) {
        aim(event, timer.owner, true);
        timer.is_made = timer_create(CLOCK_MONOTONIC, &event, &timer.number) == 0;
    }
    return timer.is_made;
}

int set_timer(__itimer_which_t which, const itimerval* wanted, itimerval* former) {
    RankTimer* timer = which == ITIMER_REAL ? timer_of_caller() : nullptr;
    if (timer == nullptr) {
        return setitimer(which, wanted, former);
    }
    const BlockedSignals blocked; // a handler may set it
    const std::lock_guard guard(timer->lock);
    const itimerval none{};
    const itimerval& set = wanted != nullptr ? *wanted : none;
    const itimerspec times{of_timeval(set.it_interval), of_timeval(set.it_value)};
    itimerspec before{};
    if (!make_timer(*timer) || timer_settime(timer->number, 0, &times, &before) != 0) {
        return -1;
    }
    if (former != nullptr) {
        *former = to_itimerval(before);
    }
    return 0;
}

int get_timer(__itimer_which_t which, itimerval* value) {
    RankTimer* timer = which == ITIMER_REAL ? timer_of_caller() : nullptr;
    if (timer == nullptr) {
        return getitimer(which, value);
    }
    const BlockedSignals blocked; // a handler may set it
    const std::lock_guard guard(timer->lock);
    itimerspec times{};
    if (timer->is_made && timer_gettime(timer->number, &times) != 0) {
        return -1;
    }
    *value = to_itimerval(times);
    return 0;
}

// Whole seconds, of which a part counts as one.
unsigned set_alarm(unsigned seconds) {
    const itimerval wanted{.it_interval = {}, .it_value = {.tv_sec = seconds, .tv_usec = 0}};
    itimerval former{};
    if (set_timer(ITIMER_REAL, &wanted, &former) != 0) {
        return 0;
    }
    constexpr long half_us = 500000;
    const long whole = former.it_value.tv_sec;
    const bool up =
        former.it_value.tv_usec >= half_us || (whole == 0 && former.it_value.tv_usec > 0);
    return static_cast<unsigned>(whole + (up ? 1 : 0));
}

useconds_t set_short_alarm(useconds_t value, useconds_t interval) {
    constexpr useconds_t second = 1000000;
    const auto convert = [](useconds_t us) {
        return timeval{.tv_sec = us / second, .tv_usec = static_cast<suseconds_t>(us % second)};
    };
    const itimerval wanted{.it_interval = convert(interval), .it_value = convert(value)};
    itimerval former{};
    return set_timer(ITIMER_REAL, &wanted, &former) != 0
               ? static_cast<useconds_t>(-1)
               : static_cast<useconds_t>(former.it_value.tv_sec * second + former.it_value.tv_usec);
}

// In signal handlers. Null: the signal's value is the program's.
Owner* find_owner(const void* value) {
    RankTimers& own = rank_timers();
    const auto* timer = static_cast<const RankTimer*>(value);
    if (timer >= own.all.get() && timer < own.all.get() + own.ranks) {
        return &own.all[static_cast<std::size_t>(timer - own.all.get())].owner;
    }
    for (const std::atomic<Chunk*>& one : own.chunks) {
        Chunk* chunk = one.load(std::memory_order_acquire);
        if (chunk == nullptr) {
            break;
        }
        const auto* owner = static_cast<const Owner*>(value);
        if (owner >= chunk->all && owner < chunk->all + owners_of_chunk) {
            return &chunk->all[owner - chunk->all];
        }
    }
    return nullptr;
}

// Under the lock. Null: there is no room.
Owner* make_owner(std::uint32_t rank, int number, sigval value) {
    RankTimers& own = rank_timers();
    for (std::size_t index = 0; index < own.owners; ++index) {
        Owner& one = own.chunks[index / owners_of_chunk]
                         .load(std::memory_order_relaxed)
                         ->all[index % owners_of_chunk];
        if (one.rank.load(std::memory_order_relaxed) == rank && one.number == number &&
            one.value.load(std::memory_order_relaxed).sival_ptr == value.sival_ptr) {
            return &one;
        }
    }
    if (own.owners == owners_of_chunk * most_chunks) {
        return nullptr;
    }
    std::atomic<Chunk*>& chunk = own.chunks[own.owners / owners_of_chunk];
    if (chunk.load(std::memory_order_relaxed) == nullptr) {
        chunk.store(new Chunk, std::memory_order_release);
    }
    Owner& made = chunk.load(std::memory_order_relaxed)->all[own.owners++ % owners_of_chunk];
    made.rank.store(rank, std::memory_order_relaxed);
    made.number = number;
    made.value.store(value, std::memory_order_relaxed);
    return &made;
}

bool aim_event(sigevent* event, bool of_timer) {
    const std::uint32_t rank = rank_of_thread();
    if (rank >= rank_timers().ranks || getpid() != rank_timers().process) {
        return true;
    }
    const BlockedSignals blocked;
    Owner* owner = nullptr;
    {
        const std::lock_guard guard(rank_timers().lock);
        owner = make_owner(rank, event->sigev_signo, event->sigev_value);
    }
    if (owner == nullptr) {
        errno = EAGAIN;
        return false;
    }
    aim(*event, *owner, of_timer);
    return true;
}

} // namespace

std::uint32_t owner_of_signal(siginfo_t& information) {
    if (information.si_code != SI_TIMER && information.si_code != SI_MESGQ &&
        information.si_code != SI_ASYNCIO) {
        return no_rank;
    }
    const Owner* owner = find_owner(information.si_value.sival_ptr);
    if (owner == nullptr) {
        return no_rank;
    }
    const std::uint32_t rank = owner->rank.load(std::memory_order_relaxed);
    if (rank == ended_rank && information.si_code == SI_TIMER) {
        syscall(SYS_timer_delete, information.si_timerid);
    }
    information.si_signo = owner->number;
    information.si_value = owner->value.load(std::memory_order_relaxed);
    return rank;
}

void prepare_timers(std::uint32_t ranks, bool fibres) {
    rank_timers().process = getpid();
    rank_timers().fibres = fibres;
    rank_timers().ranks = ranks;
    rank_timers().all = std::make_unique<RankTimer[]>(ranks);
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        rank_timers().all[rank].owner.rank = rank;
        rank_timers().all[rank].owner.number = SIGALRM;
    }
    static const image::SignalFunctions functions{.aim = aim_event};
    warren_image_aim_signals_by(&functions);
}

int start_router() {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_t thread{};
    const int error = pthread_create(&thread, &attributes, route, nullptr);
    pthread_attr_destroy(&attributes);
    while (error == 0 && rank_timers().router.load(std::memory_order_acquire) == 0) {
        sched_yield();
    }
    return error;
}

void end_timers(std::uint32_t rank) {
    RankTimer& timer = rank_timers().all[rank];
    const BlockedSignals blocked;
    const std::lock_guard guard(timer.lock);
    if (timer.is_made) {
        timer_delete(timer.number);
        timer.is_made = false;
    }
    RankTimers& own = rank_timers();
    const std::lock_guard owners_guard(own.lock);
    for (std::size_t index = 0; index < own.owners; ++index) {
        Owner& one = own.chunks[index / owners_of_chunk]
                         .load(std::memory_order_relaxed)
                         ->all[index % owners_of_chunk];
        if (one.rank.load(std::memory_order_relaxed) == rank) {
            one.rank.store(ended_rank, std::memory_order_relaxed);
        }
    }
}

std::span<const warren_image_binding> timer_bindings() {
    static const warren_image_binding bindings[] = {
        {"setitimer", reinterpret_cast<void*>(&set_timer)},
        {"getitimer", reinterpret_cast<void*>(&get_timer)},
        {"alarm", reinterpret_cast<void*>(&set_alarm)},
        {"ualarm", reinterpret_cast<void*>(&set_short_alarm)},
    };
    return bindings;
}

} // namespace warren::launch
