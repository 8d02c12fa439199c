#include "launch/host/signals.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <memory>
#include <mutex>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "image/host_interface.hpp"
#include "launch/host/actions.hpp"
#include "launch/host/crash.hpp"
#include "launch/host/interrupted_calls.hpp"
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
    std::atomic<bool> forked{false}; // the process is a child of fork, with memory of its own
    // By signal. The ranks' actions count, not the process's; how many ranks ignore the signal, and
    // which flags one of them has asked for. The last two under the lock.
    std::atomic<bool> dispatched[NSIG] = {};
    std::uint32_t ignoring[NSIG] = {};
    int flags[NSIG] = {};
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

void ignore_for_process(int number) {
    struct sigaction action {};
    action.sa_handler = SIG_IGN;
    sigaction(number, &action, nullptr);
}

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

bool is_about_stops(int number, const siginfo_t& information) {
    return number == SIGCHLD &&
           (information.si_code == CLD_STOPPED || information.si_code == CLD_CONTINUED);
}

// `is_running`: the rank's code is what the signal has interrupted.
void deliver(std::uint32_t rank, int number, siginfo_t* information, void* context, bool own,
             bool is_running) {
    struct sigaction& action = actions().of(rank, number);
    const int flags = action.sa_flags;
    if (is_handler(action)) {
        if ((flags & SA_NOCLDSTOP) != 0 && is_about_stops(number, *information)) {
            return;
        }
        run_handler(action, number, information, context);
        if (is_running && (flags & SA_RESTART) == 0) {
            end_interrupted_call(context);
        }
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
    const std::uint32_t running = rank_of_thread();
    std::uint32_t rank = running;
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
    if (rank == no_rank && state().fibres) { // a thread of the host's, for a fibre's timer
        rank = receiver_among_fibres(rank, number);
        own = false;
    }
    if (rank != no_rank) {
        deliver(rank, number, information, context, own, rank == running);
    }
    errno = error;
}

// The process's own action: while all ranks ignore a signal it is ignored, so that every command
// which they start ignores it too. Calls restart unless the rank wants otherwise (deliver). Under
// the lock.
void install_for_all(int number) {
    const bool all_ignore = state().ignoring[number] == actions().ranks();
    if (is_crash_signal(number)) {
        if (number == SIGPIPE) { // of the others, processors raise some that can't be ignored
            watch_for_crash(number, all_ignore);
        }
    } else if (all_ignore) {
        ignore_for_process(number);
    } else {
        install(number, SA_RESTART | state().flags[number]);
    }
}

// The process's action becomes the dispatcher with the first rank that sets one. Under the lock.
void take_signal(int number, std::uint32_t rank, const struct sigaction& wanted) {
    struct sigaction& own = actions().of(rank, number);
    if (!state().dispatched[number].load(std::memory_order_relaxed)) {
        struct sigaction former {};
        sigaction(number, nullptr, &former);
        if (!is_handler(wanted) && !is_ignored(wanted) && !is_ignored(former)) {
            own = wanted;
            return; // the default, as it is
        }
        std::uint32_t& ignoring = state().ignoring[number];
        for (std::uint32_t one = 0; one < actions().ranks(); ++one) {
            struct sigaction& action = actions().of(one, number);
            if (is_ignored(former) && !is_crash_signal(number)) {
                action.sa_handler = SIG_IGN;
            }
            ignoring += is_ignored(action) ? 1 : 0;
        }
        state().dispatched[number].store(true, std::memory_order_relaxed);
    }
    state().ignoring[number] += is_ignored(wanted) ? 1 : 0;
    state().ignoring[number] -= is_ignored(own) ? 1 : 0;
    own = wanted;
    state().flags[number] |= wanted.sa_flags & SA_ONSTACK;
    install_for_all(number);
}

// The child of a vfork, which has its parent's memory but actions of its own until it executes a
// program.
bool is_child_in_parents_memory() {
    return getpid() != state().process && !state().forked.load(std::memory_order_relaxed);
}

// A handler that the kernel has, rather than one that a rank has.
bool is_ours(const struct sigaction& action) {
    return (action.sa_flags & SA_SIGINFO) != 0 &&
           (action.sa_sigaction == dispatch || is_crash_handler(action));
}

// Whether commands that the calling rank starts would miss that it ignores signals.
bool ignores_for_itself() {
    const std::uint32_t rank = rank_of_thread();
    for (int number = 1; rank != no_rank && number < NSIG; ++number) {
        struct sigaction now {};
        if (is_ignored(actions().of(rank, number)) && sigaction(number, nullptr, &now) == 0 &&
            is_ours(now)) {
            return true;
        }
    }
    return false;
}

// In a child, before it executes a program: that ignores what the rank ignores.
void pass_ignored_on() {
    const std::uint32_t rank = rank_of_thread();
    for (int number = 1; rank != no_rank && number < NSIG; ++number) {
        struct sigaction now {};
        if (is_ignored(actions().of(rank, number)) && sigaction(number, nullptr, &now) == 0 &&
            is_ours(now)) {
            ignore_for_process(number);
        }
    }
}

// ---- What programs call

int set_action(int number, const struct sigaction* action, struct sigaction* former) {
    const std::uint32_t rank = rank_of_thread();
    const bool is_reserved = number >= __SIGRTMIN && number < SIGRTMIN; // the C library's
    if (rank == no_rank || !Actions::has(number) || is_reserved || number == SIGKILL ||
        number == SIGSTOP || is_child_in_parents_memory()) {
        return sigaction(number, action, former);
    }
    const std::lock_guard guard(actions().lock);
    struct sigaction before = actions().of(rank, number);
    if (!is_crash_signal(number) && !state().dispatched[number].load(std::memory_order_relaxed)) {
        sigaction(number, nullptr, &before); // ignored, when mpiexec was started so
    }
    if (action != nullptr) {
        const struct sigaction wanted = *action; // it may be what `former` points to
        take_signal(number, rank, wanted);
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

// Whether the thread has the signal neither blocked, but for a wait for it, nor ended.
bool takes(pid_t thread, int number) {
    char text[80];
    std::snprintf(text, sizeof text, "/proc/self/task/%d/status", static_cast<int>(thread));
    const int file = open(text, O_RDONLY | O_CLOEXEC);
    char status[4096];
    const ssize_t bytes = file >= 0 ? read(file, status, sizeof status - 1) : -1;
    if (file >= 0) {
        close(file);
    }
    status[std::max(bytes, ssize_t{0})] = 0;
    constexpr const char* title = "\nSigBlk:";
    const char* found = std::strstr(status, title);
    const std::uint64_t blocked =
        found != nullptr ? std::strtoull(found + std::strlen(title), nullptr, 16) : ~0ULL;
    return (blocked >> (number - 1) & 1) == 0;
}

// Where the caller has the signal blocked, as the kernel chooses: a thread of the rank's that does
// not, or waits for it, maybe a little later. Else it stays with the caller.
pid_t other_receiver(int number) {
    constexpr int looks = 50;
    constexpr timespec pause{.tv_sec = 0, .tv_nsec = 1'000'000};
    for (int i = 0; i < looks; ++i) {
        if (const pid_t thread = warren_image_find_thread(takes, number); thread != 0) {
            return thread;
        }
        if (warren_image_find_thread([](pid_t, int) { return true; }, 0) == 0) {
            break;
        }
        nanosleep(&pause, nullptr);
    }
    return own_thread();
}

// A signal that a rank sends to its process reaches that rank alone. A fibre's blocked signals are
// a worker's: then the signal goes to the process.
bool send_to_rank(int number, int code, sigval value, int& result) {
    sigset_t blocked;
    pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
    if (rank_of_thread() == no_rank || getpid() != state().process || !Actions::has(number)) {
        return false;
    }
    pid_t thread = own_thread();
    if (sigismember(&blocked, number) == 1) {
        if (state().fibres) {
            return false;
        }
        thread = other_receiver(number);
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
    pthread_atfork(nullptr, nullptr, [] { state().forked.store(true, std::memory_order_relaxed); });
    warren_image_watch_exec(ignores_for_itself, pass_ignored_on);
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
