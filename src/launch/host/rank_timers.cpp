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
#include "launch/host/actions.hpp"
#include "launch/host/descriptor_signals.hpp"
#include "launch/host/dispatch.hpp"
#include "launch/host/passed_signals.hpp"
#include "launch/host/ranks.hpp"
#include "launch/host/signal_owners.hpp"
#include "launch/host/signals_to_parent.hpp"
#include "launch/host/thread_signals.hpp"

namespace warren::launch {

namespace {

struct RankTimer {
    std::mutex lock;
    timer_t number{};
    bool is_made = false;
    std::atomic<bool> ended{false}; // the rank has; written under the lock
};

struct RankTimers {
    pid_t process = 0;
    bool fibres = false;
    std::uint32_t ranks = 0;
    std::unique_ptr<RankTimer[]> all;
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

constexpr Mask mask_of_router = bit(signal_of_router);

void bring(std::uint32_t owner, siginfo_t& information) {
    if (owner >= rank_timers().ranks) {
        return;
    }
    const std::lock_guard guard(rank_timers().all[owner].lock); // it doesn't end meanwhile
    if (has_ended(owner)) {
        note_taken(information); // by nobody
    } else {
        send_to_rank(owner, information);
    }
}

// Gets the signals of ranks' timers, children and (fibres') descriptors, and posts them: the kernel
// would give them to one thread, whatever that blocks, or to another rank's, whose calls they would
// end. It has no descriptors, which would keep a rank's pipes open.
void* route(void*) {
    if (unshare(CLONE_FILES) == 0) {
        syscall(SYS_close_range, 0U, ~0U, 0U);
    }
    // The C library's functions leave this signal alone.
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, &mask_of_router, nullptr, sizeof mask_of_router);
    rank_timers().router.store(own_thread(), std::memory_order_release);
    while (true) {
        siginfo_t information{};
        if (syscall(SYS_rt_sigtimedwait, &mask_of_router, &information, nullptr,
                    sizeof mask_of_router) <= 0) {
            continue;
        }
        std::uint32_t rank = no_rank;
        if (take_from_child(information, rank)) {
            const pid_t sender = information.si_pid;
            bring(rank, information);
            note_brought(sender);
        } else if (take_of_descriptor(information, rank)) {
            bring(rank, information);
        } else {
            bring(owner_of_signal(information), information);
        }
    }
}

// Has the signals of a timer come to the owner's rank. The caller has signals blocked.
void aim(sigevent& event, sigval tag) {
    event.sigev_value = tag;
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = signal_of_router;
    event._sigev_un._tid = rank_timers().router.load(std::memory_order_relaxed);
}

bool make_timer(RankTimer& timer) {
    sigevent event{};
    event.sigev_signo = SIGALRM;
    if (!timer.is_made) {
        aim(event, tag_of_alarm(static_cast<std::uint32_t>(&timer - rank_timers().all.get())));
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

bool is_of_rank(std::uint32_t rank) {
    return rank < rank_timers().ranks && getpid() == rank_timers().process;
}

enum class Aim : std::uint8_t { at_rank, at_thread, nowhere };

// A fibre asks for its own signals by the number of the thread that runs it, or has run it a moment
// ago.
Aim find_aim(std::uint32_t rank, const sigevent& event) {
    if (event.sigev_notify != SIGEV_THREAD_ID) {
        return Aim::at_rank;
    }
    const pid_t thread = event._sigev_un._tid;
    const std::uint32_t owner = rank_of_kernel_thread(thread);
    if (owner != no_rank) {
        return owner == rank ? Aim::at_thread : Aim::nowhere;
    }
    return !rank_timers().fibres                           ? Aim::at_thread
           : syscall(SYS_tgkill, getpid(), thread, 0) == 0 ? Aim::at_rank
                                                           : Aim::nowhere;
}

bool aim_event(sigevent* event) {
    const std::uint32_t rank = rank_of_thread();
    if (!is_of_rank(rank)) {
        return true;
    }
    const Aim aimed = find_aim(rank, *event);
    if (aimed == Aim::at_thread) {
        return true;
    }
    if (aimed == Aim::nowhere || !Actions::has(event->sigev_signo)) {
        errno = EINVAL;
        return false;
    }
    const BlockedSignals blocked;
    sigval tag{};
    if (!make_owner(rank, *event, tag)) {
        errno = EAGAIN;
        return false;
    }
    aim(*event, tag);
    return true;
}

bool find_receiver(std::uint32_t& number) {
    number = rank_of_thread();
    return is_of_rank(number);
}

// A rank that has ended would get it by default, which ends the process.
void send_event(std::uint32_t rank, const siginfo_t& information) {
    siginfo_t copy = information;
    if (!is_of_rank(rank) || !Actions::has(information.si_signo)) {
        return;
    }
    const BlockedSignals blocked;                              // a handler may set the timer
    const std::lock_guard guard(rank_timers().all[rank].lock); // it doesn't end meanwhile
    if (!has_ended(rank)) {
        send_to_rank(rank, copy);
    }
}

void note_made(const sigevent& event, const timer_t* timer) {
    note_timer(event.sigev_value, timer);
}

void note_deleted(timer_t timer) {
    const std::uint32_t rank = rank_of_thread();
    if (is_of_rank(rank)) {
        const BlockedSignals blocked;
        forget_timer(rank, timer);
    }
}

int get_overruns(timer_t timer) {
    const std::uint32_t rank = rank_of_thread();
    const int overruns = is_of_rank(rank) ? overruns_of(rank, timer) : -1;
    return overruns >= 0 ? overruns : timer_getoverrun(timer);
}

} // namespace

void prepare_timers(std::uint32_t ranks, bool fibres) {
    rank_timers().process = getpid();
    rank_timers().fibres = fibres;
    rank_timers().ranks = ranks;
    rank_timers().all = std::make_unique<RankTimer[]>(ranks);
    prepare_owners(ranks);
    static const image::SignalFunctions functions{.aim = aim_event,
                                                  .receiver = find_receiver,
                                                  .send = send_event,
                                                  .made = note_made,
                                                  .deleted = note_deleted};
    warren_image_aim_signals_by(&functions);
}

bool has_ended(std::uint32_t rank) {
    return rank_timers().all[rank].ended.load(std::memory_order_acquire);
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

pid_t router_of_signals() {
    return rank_timers().router.load(std::memory_order_acquire);
}

bool expects_timers() {
    for (std::uint32_t rank = 0; rank < rank_timers().ranks; ++rank) {
        RankTimer& timer = rank_timers().all[rank];
        const BlockedSignals blocked;
        const std::lock_guard guard(timer.lock);
        itimerspec times{};
        if (timer.is_made && timer_gettime(timer.number, &times) == 0 &&
            (times.it_value.tv_sec != 0 || times.it_value.tv_nsec != 0)) {
            return true;
        }
    }
    return a_timer_runs();
}

void end_timers(std::uint32_t rank) {
    RankTimer& timer = rank_timers().all[rank];
    const BlockedSignals blocked;
    const std::lock_guard guard(timer.lock);
    if (timer.is_made) {
        timer_delete(timer.number);
        timer.is_made = false;
    }
    timer.ended.store(true, std::memory_order_release);
    end_owners(rank);
}

std::span<const warren_image_binding> timer_bindings() {
    static const warren_image_binding bindings[] = {
        {"setitimer", reinterpret_cast<void*>(&set_timer)},
        {"getitimer", reinterpret_cast<void*>(&get_timer)},
        {"alarm", reinterpret_cast<void*>(&set_alarm)},
        {"timer_getoverrun", reinterpret_cast<void*>(&get_overruns)},
        {"ualarm", reinterpret_cast<void*>(&set_short_alarm)},
    };
    return bindings;
}

} // namespace warren::launch
