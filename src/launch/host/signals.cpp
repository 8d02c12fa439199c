#include "launch/host/signals.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <memory>
#include <mutex>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "launch/host/actions.hpp"
#include "launch/host/crash.hpp"
#include "launch/host/ranks.hpp"

namespace warren::launch {

namespace {

// A signal that was passed on from one rank's thread to another's has this and its own code in a
// field that the system leaves 0, because the system lets threads send each other some codes only.
constexpr int passed_on = 0x57410000;
constexpr int code_mask = 0xffff;

struct RankThread {
    std::atomic<pid_t> id{0};
    std::mutex timer_lock;
    timer_t timer{}; // of alarm and setitimer
    bool has_timer = false;
};

struct State {
    pid_t process = 0;
    bool fibres = false;
    std::unique_ptr<RankThread[]> threads;
    std::atomic<bool> dispatched[NSIG]; // by signal: the process's action is the dispatcher
};

State& state() {
    static State& only = *new State; // outlives everything
    return only;
}

pid_t own_thread() {
    return static_cast<pid_t>(syscall(SYS_gettid));
}

// The rank whose first thread can be sent signals: none in a child of fork, which is a process.
RankThread* thread_of_caller() {
    const std::uint32_t rank = rank_of_thread();
    return rank != no_rank && !state().fibres && getpid() == state().process
               ? &state().threads[rank]
               : nullptr;
}

bool is_ignored_by_default(int number) {
    return number == SIGCHLD || number == SIGURG || number == SIGWINCH || number == SIGCONT;
}

bool stops_by_default(int number) {
    return number == SIGTSTP || number == SIGTTIN || number == SIGTTOU;
}

void dispatch(int number, siginfo_t* information, void* context);

void install(int number, int flags) {
    struct sigaction action {};
    action.sa_sigaction = dispatch;
    action.sa_flags = SA_SIGINFO | flags;
    sigaction(number, &action, nullptr);
}

// The default action, by or for one rank, is the process's.
void end_by(std::uint32_t rank, int number, bool own) {
    take_default(number);
    if (own && getpid() == state().process && !stops_by_default(number)) {
        report_crash(rank, number);
    }
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, number);
    syscall(SYS_tgkill, getpid(), own_thread(), number);
    pthread_sigmask(SIG_UNBLOCK, &set, nullptr); // it comes now
    install(number, SA_RESTART);                 // the process was stopped, and goes on
}

void deliver(std::uint32_t rank, int number, siginfo_t* information, void* context, bool own) {
    struct sigaction& action = actions().of(rank, number);
    if (is_handler(action)) {
        run_handler(action, number, information, context);
    } else if (!is_ignored(action) && !is_ignored_by_default(number)) {
        end_by(rank, number, own);
    }
}

// From outside the process, or from its kernel state that no rank has of its own.
bool is_for_all(const siginfo_t& information) {
    switch (information.si_code) {
    case SI_TKILL:
    case SI_TIMER:
    case SI_ASYNCIO:
    case SI_MESGQ:
        return false;
    case SI_USER:
    case SI_QUEUE:
        return information.si_pid != getpid();
    default:
        return true;
    }
}

// A fibre gets what it has a handler for; else a rank that has one.
std::uint32_t receiver_among_fibres(std::uint32_t running, int number) {
    const Actions& all = actions();
    if (running != no_rank && is_handler(all.of(running, number))) {
        return running;
    }
    for (std::uint32_t rank = 0; rank < all.ranks(); ++rank) {
        if (is_handler(all.of(rank, number))) {
            return rank;
        }
    }
    return running != no_rank ? running : 0;
}

void dispatch(int number, siginfo_t* information, void* context) {
    const int error = errno;
    std::uint32_t rank = rank_of_thread();
    bool own = true;
    if ((information->si_errno & ~code_mask) == passed_on) {
        information->si_code = static_cast<std::int16_t>(information->si_errno & code_mask);
        information->si_errno = 0;
        own = false;
    } else if (is_for_all(*information) && getpid() == state().process) {
        own = false;
        if (state().fibres) {
            rank = receiver_among_fibres(rank, number);
        } else {
            siginfo_t copy = *information;
            copy.si_errno = passed_on | (information->si_code & code_mask);
            copy.si_code = SI_QUEUE;
            for (std::uint32_t other = 0; other < actions().ranks(); ++other) {
                const pid_t thread = state().threads[other].id.load(std::memory_order_relaxed);
                if (other != rank && thread != 0) {
                    syscall(SYS_rt_tgsigqueueinfo, getpid(), thread, number, &copy);
                }
            }
        }
    }
    if (rank != no_rank) {
        deliver(rank, number, information, context, own);
    }
    errno = error;
}

// The process's action becomes the dispatcher with the first rank that sets one. Under the lock.
void take_signal(int number, const struct sigaction& action) {
    if (!state().dispatched[number].load(std::memory_order_relaxed)) {
        struct sigaction former {};
        sigaction(number, nullptr, &former);
        if (!is_handler(action) && !is_ignored(action) && !is_ignored(former)) {
            return; // the default, as it is
        }
        for (std::uint32_t rank = 0; is_ignored(former) && rank < actions().ranks(); ++rank) {
            struct sigaction& other = actions().of(rank, number);
            if (rank != rank_of_thread()) {
                other.sa_handler = SIG_IGN;
            }
        }
        state().dispatched[number].store(true, std::memory_order_relaxed);
    }
    // When several ranks set an action, the last one decides the flags.
    int flags = action.sa_flags & (SA_RESTART | SA_ONSTACK | SA_NOCLDSTOP | SA_NOCLDWAIT);
    flags |= is_handler(action) ? 0 : SA_RESTART;
    flags |= number == SIGCHLD && is_ignored(action) ? SA_NOCLDWAIT : 0;
    install(number, flags);
}

// ---- What programs call

int set_action(int number, const struct sigaction* action, struct sigaction* former) {
    const std::uint32_t rank = rank_of_thread();
    const bool is_reserved = number >= __SIGRTMIN && number < SIGRTMIN; // the C library's
    if (rank == no_rank || !Actions::has(number) || is_reserved || number == SIGKILL ||
        number == SIGSTOP) {
        return sigaction(number, action, former);
    }
    const std::lock_guard guard(actions().lock);
    struct sigaction& own = actions().of(rank, number);
    struct sigaction before = own;
    if (!is_crash_signal(number) && !state().dispatched[number].load(std::memory_order_relaxed)) {
        sigaction(number, nullptr, &before); // ignored, when mpiexec was started so
    }
    if (action != nullptr) {
        const struct sigaction wanted = *action; // it may be what `former` points to
        own = wanted;
        if (!is_crash_signal(number)) {
            take_signal(number, wanted);
        }
    }
    if (former != nullptr) {
        *former = before;
    }
    return 0;
}

using Handler = void (*)(int);

Handler set_handler_with(int number, Handler handler, int flags) {
    struct sigaction action {};
    action.sa_handler = handler;
    action.sa_flags = flags;
    struct sigaction former {};
    return set_action(number, &action, &former) == 0 ? former.sa_handler : SIG_ERR;
}

Handler set_handler(int number, Handler handler) {
    return set_handler_with(number, handler, SA_RESTART);
}

Handler set_handler_once(int number, Handler handler) {
    return set_handler_with(number, handler, static_cast<int>(SA_RESETHAND) | SA_NODEFER);
}

int ignore_signal(int number) {
    return set_handler_with(number, SIG_IGN, 0) == SIG_ERR ? -1 : 0;
}

int interrupt_calls(int number, int wanted) {
    struct sigaction action {};
    if (set_action(number, nullptr, &action) != 0) {
        return -1;
    }
    action.sa_flags = wanted != 0 ? action.sa_flags & ~SA_RESTART : action.sa_flags | SA_RESTART;
    return set_action(number, &action, nullptr);
}

int send_to_self(int number) {
    return static_cast<int>(syscall(SYS_tgkill, getpid(), own_thread(), number));
}

// A signal that a rank sends to its process reaches that rank alone. A caller that blocks the
// signal may have a thread that waits for it in the kernel, and only the kernel knows which: then
// the signal goes to the process.
bool send_to_rank(int number, int code, sigval value, int& result) {
    sigset_t blocked;
    pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
    if (rank_of_thread() == no_rank || getpid() != state().process || !Actions::has(number)) {
        return false;
    }
    pid_t thread = own_thread();
    if (sigismember(&blocked, number) == 1) {
        const RankThread* first = thread_of_caller();
        if (first == nullptr || first->id.load(std::memory_order_relaxed) == thread) {
            return false;
        }
        thread = first->id.load(std::memory_order_relaxed);
        if (code == SI_USER) {
            result = static_cast<int>(syscall(SYS_tgkill, getpid(), thread, number));
            return true;
        }
    }
    siginfo_t information{};
    information.si_signo = number;
    information.si_code = code;
    information.si_pid = getpid();
    information.si_uid = getuid();
    information.si_value = value;
    result =
        static_cast<int>(syscall(SYS_rt_tgsigqueueinfo, getpid(), thread, number, &information));
    return true;
}

int send_signal(pid_t process, int number) {
    int result = 0;
    return process == getpid() && send_to_rank(number, SI_USER, {}, result) ? result
                                                                            : kill(process, number);
}

int queue_signal(pid_t process, int number, sigval value) {
    int result = 0;
    return process == getpid() && send_to_rank(number, SI_QUEUE, value, result)
               ? result
               : sigqueue(process, number, value);
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

// A timer that signals the rank's first thread.
bool make_timer(RankThread& thread) {
    if (!thread.has_timer) {
        sigevent event{};
        event.sigev_notify = SIGEV_THREAD_ID;
        event.sigev_signo = SIGALRM;
        event._sigev_un._tid = thread.id.load(std::memory_order_relaxed);
        thread.has_timer = timer_create(CLOCK_MONOTONIC, &event, &thread.timer) == 0;
    }
    return thread.has_timer;
}

int set_timer(__itimer_which_t which, const itimerval* wanted, itimerval* former) {
    RankThread* thread = which == ITIMER_REAL ? thread_of_caller() : nullptr;
    if (thread == nullptr) {
        return setitimer(which, wanted, former);
    }
    const std::lock_guard guard(thread->timer_lock);
    const itimerval none{};
    const itimerval& set = wanted != nullptr ? *wanted : none;
    const itimerspec times{of_timeval(set.it_interval), of_timeval(set.it_value)};
    itimerspec before{};
    if (!make_timer(*thread) || timer_settime(thread->timer, 0, &times, &before) != 0) {
        return -1;
    }
    if (former != nullptr) {
        *former = to_itimerval(before);
    }
    return 0;
}

int get_timer(__itimer_which_t which, itimerval* value) {
    RankThread* thread = which == ITIMER_REAL ? thread_of_caller() : nullptr;
    if (thread == nullptr) {
        return getitimer(which, value);
    }
    const std::lock_guard guard(thread->timer_lock);
    itimerspec times{};
    if (thread->has_timer && timer_gettime(thread->timer, &times) != 0) {
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

void prepare_signals(std::uint32_t ranks, bool fibres) {
    actions().prepare(ranks);
    state().process = getpid();
    state().fibres = fibres;
    state().threads = std::make_unique<RankThread[]>(fibres ? 0 : ranks);
}

void note_thread(std::uint32_t rank) {
    if (!state().fibres) {
        state().threads[rank].id.store(own_thread(), std::memory_order_relaxed);
    }
}

std::span<const warren_image_binding> signal_bindings() {
    static const warren_image_binding bindings[] = {
        {"sigaction", reinterpret_cast<void*>(&set_action)},
        {"__sigaction", reinterpret_cast<void*>(&set_action)},
        {"signal", reinterpret_cast<void*>(&set_handler)},
        {"bsd_signal", reinterpret_cast<void*>(&set_handler)},
        {"ssignal", reinterpret_cast<void*>(&set_handler)},
        {"sysv_signal", reinterpret_cast<void*>(&set_handler_once)},
        {"__sysv_signal", reinterpret_cast<void*>(&set_handler_once)},
        {"sigignore", reinterpret_cast<void*>(&ignore_signal)},
        {"siginterrupt", reinterpret_cast<void*>(&interrupt_calls)},
        {"raise", reinterpret_cast<void*>(&send_to_self)},
        {"gsignal", reinterpret_cast<void*>(&send_to_self)},
        {"kill", reinterpret_cast<void*>(&send_signal)},
        {"sigqueue", reinterpret_cast<void*>(&queue_signal)},
        {"setitimer", reinterpret_cast<void*>(&set_timer)},
        {"getitimer", reinterpret_cast<void*>(&get_timer)},
        {"alarm", reinterpret_cast<void*>(&set_alarm)},
        {"ualarm", reinterpret_cast<void*>(&set_short_alarm)},
    };
    return bindings;
}

} // namespace warren::launch
