#include "launch/host/rank_timers.hpp"

#include <atomic>
#include <ctime>
#include <memory>
#include <mutex>
#include <sys/time.h>
#include <unistd.h>

#include "base/blocked_signals.hpp"
#include "launch/host/ranks.hpp"

namespace warren::launch {

namespace {

struct RankTimer {
    std::atomic<pid_t> thread{0}; // whom it signals
    std::mutex lock;
    timer_t number{};
    bool is_made = false;
};

struct RankTimers {
    pid_t process = 0;
    bool fibres = false;
    std::uint32_t ranks = 0;
    std::unique_ptr<RankTimer[]> all;
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

// A timer that signals the rank's first thread, or the process for a fibre.
bool make_timer(RankTimer& timer) {
    if (!timer.is_made) {
        sigevent event{};
        event.sigev_signo = SIGALRM;
        if (rank_timers().fibres) {
            event.sigev_notify = SIGEV_SIGNAL;
            event.sigev_value.sival_ptr = &timer; // tells whose it is
        } else {
            event.sigev_notify = SIGEV_THREAD_ID;
            event._sigev_un._tid = timer.thread.load(std::memory_order_relaxed);
        }
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

} // namespace

void prepare_timers(std::uint32_t ranks, bool fibres) {
    rank_timers().process = getpid();
    rank_timers().fibres = fibres;
    rank_timers().ranks = ranks;
    rank_timers().all = std::make_unique<RankTimer[]>(ranks);
}

void note_timer_thread(std::uint32_t rank, pid_t thread) {
    rank_timers().all[rank].thread.store(thread, std::memory_order_relaxed);
}

std::uint32_t owner_of_timer(const siginfo_t& information) {
    const RankTimer* timers = rank_timers().all.get();
    const auto* owner = static_cast<const RankTimer*>(information.si_value.sival_ptr);
    const bool is_own = information.si_signo == SIGALRM && information.si_code == SI_TIMER &&
                        rank_timers().fibres && owner >= timers &&
                        owner < timers + rank_timers().ranks;
    return is_own ? static_cast<std::uint32_t>(owner - timers) : no_rank;
}

void end_timer(std::uint32_t rank) {
    RankTimer& timer = rank_timers().all[rank];
    const BlockedSignals blocked;
    const std::lock_guard guard(timer.lock);
    if (timer.is_made) {
        timer_delete(timer.number);
        timer.is_made = false;
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
