#include "launch/host/rank_timers.hpp"

#include <atomic>
#include <cerrno>
#include <ctime>
#include <memory>
#include <mutex>
#include <sys/time.h>
#include <unistd.h>

#include "base/blocked_signals.hpp"
#include "launch/host/passed_signals.hpp"
#include "launch/host/ranks.hpp"
#include "launch/host/thread_status.hpp"

namespace warren::launch {

namespace {

struct RankTimer {
    std::atomic<pid_t> thread{0}; // the rank's first
    pid_t waiter = 0;             // the thread that waits for SIGALRM; 0: none
    pid_t signals = 0;            // the thread that the timer signals
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

// A timer that signals a thread, or the process for a fibre.
bool make_timer(RankTimer& timer, pid_t thread) {
    sigevent event{};
    event.sigev_signo = SIGALRM;
    if (rank_timers().fibres) {
        event.sigev_notify = SIGEV_SIGNAL;
        event.sigev_value.sival_ptr = &timer; // tells whose it is
    } else {
        event.sigev_notify = SIGEV_THREAD_ID;
        event._sigev_un._tid = thread;
    }
    timer.is_made = timer_create(CLOCK_MONOTONIC, &event, &timer.number) == 0;
    timer.signals = thread;
    return timer.is_made;
}

// As the kernel chooses for a process: the first thread gets the signal if that has not blocked it,
// else who waits for it. `former`: what the timer was set to.
bool make_timer_for(RankTimer& timer, bool first_blocks, itimerspec& former) {
    const pid_t first = timer.thread.load(std::memory_order_relaxed);
    const pid_t wanted = first_blocks && timer.waiter != 0 ? timer.waiter : first;
    if (timer.is_made && (rank_timers().fibres || timer.signals == wanted)) {
        return true;
    }
    if (timer.is_made) {
        timer_gettime(timer.number, &former);
        timer_delete(timer.number);
    }
    // (The waiter may have ended.)
    return make_timer(timer, wanted) || (wanted != first && make_timer(timer, first));
}

// Call it with no more signals blocked than the program has.
bool first_thread_blocks(const RankTimer& timer) {
    const pid_t first = timer.thread.load(std::memory_order_relaxed);
    if (rank_timers().fibres) {
        return false; // its process gets the signal
    }
    if (first == own_thread()) {
        sigset_t blocked;
        pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
        return sigismember(&blocked, SIGALRM) == 1;
    }
    return (signals_of_thread(first, "\nSigBlk:", 0) >> (SIGALRM - 1) & 1) != 0;
}

int set_timer(__itimer_which_t which, const itimerval* wanted, itimerval* former) {
    RankTimer* timer = which == ITIMER_REAL ? timer_of_caller() : nullptr;
    if (timer == nullptr) {
        return setitimer(which, wanted, former);
    }
    const bool first_blocks = first_thread_blocks(*timer);
    const BlockedSignals blocked; // a handler may set it
    const std::lock_guard guard(timer->lock);
    const itimerval none{};
    const itimerval& set = wanted != nullptr ? *wanted : none;
    const itimerspec times{of_timeval(set.it_interval), of_timeval(set.it_value)};
    itimerspec of_other{}; // the timer that this one replaces
    itimerspec before{};
    if (!make_timer_for(*timer, first_blocks, of_other) ||
        timer_settime(timer->number, 0, &times, &before) != 0) {
        return -1;
    }
    if (former != nullptr) {
        const bool was_other = of_other.it_value.tv_sec != 0 || of_other.it_value.tv_nsec != 0;
        *former = to_itimerval(was_other ? of_other : before);
    }
    return 0;
}

// A thread that has waited for the timer's signals has ended: they are the rank's first thread's.
struct AimedTimer {
    AimedTimer() = default;
    ~AimedTimer() {
        if (timer == nullptr || getpid() != rank_timers().process) {
            return;
        }
        const BlockedSignals blocked;
        const std::lock_guard guard(timer->lock);
        itimerspec left{};
        if (timer->is_made && timer->signals == own_thread() &&
            make_timer_for(*timer, false, left) &&
            (left.it_value.tv_sec != 0 || left.it_value.tv_nsec != 0)) {
            timer_settime(timer->number, 0, &left, nullptr);
        }
    }
    AimedTimer(const AimedTimer&) = delete;
    AimedTimer& operator=(const AimedTimer&) = delete;

    RankTimer* timer = nullptr;
};
thread_local AimedTimer aimed_timer;

// While it lives, a thread of a rank that is a thread waits for these: the rank's timer signals it.
class TimerWait {
  public:
    explicit TimerWait(const sigset_t& awaited)
        : timer_(sigismember(&awaited, SIGALRM) == 1 ? timer_of_caller() : nullptr) {
        if (timer_ == nullptr) {
            return;
        }
        const bool first_blocks = first_thread_blocks(*timer_);
        const BlockedSignals blocked;
        const std::lock_guard guard(timer_->lock);
        timer_->waiter = own_thread();
        aimed_timer.timer = timer_;
        itimerspec left{};
        if (timer_->is_made && make_timer_for(*timer_, first_blocks, left) &&
            (left.it_value.tv_sec != 0 || left.it_value.tv_nsec != 0)) {
            timer_settime(timer_->number, 0, &left, nullptr);
        }
    }
    ~TimerWait() {
        if (timer_ != nullptr) {
            const int error = errno;
            const BlockedSignals blocked;
            const std::lock_guard guard(timer_->lock);
            timer_->waiter = timer_->waiter == own_thread() ? 0 : timer_->waiter;
            errno = error;
        }
    }
    TimerWait(const TimerWait&) = delete;
    TimerWait& operator=(const TimerWait&) = delete;

  private:
    RankTimer* const timer_;
};

int wait_with_timer(const sigset_t* set, int* taken) {
    const TimerWait wait(*set);
    return sigwait(set, taken);
}

int wait_for_information_with_timer(const sigset_t* set, siginfo_t* information) {
    const TimerWait wait(*set);
    return sigwaitinfo(set, information);
}

int wait_until_with_timer(const sigset_t* set, siginfo_t* information, const timespec* limit) {
    const TimerWait wait(*set);
    return sigtimedwait(set, information, limit);
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

std::span<const warren_image_binding> timer_wait_bindings() {
    static const warren_image_binding bindings[] = {
        {"sigwait", reinterpret_cast<void*>(&wait_with_timer)},
        {"sigwaitinfo", reinterpret_cast<void*>(&wait_for_information_with_timer)},
        {"sigtimedwait", reinterpret_cast<void*>(&wait_until_with_timer)},
    };
    return bindings;
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
