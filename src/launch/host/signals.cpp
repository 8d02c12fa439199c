#include "launch/host/signals.hpp"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <mutex>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/blocked_signals.hpp"
#include "image/host_interface.hpp"
#include "launch/host/actions.hpp"
#include "launch/host/children.hpp"
#include "launch/host/crash.hpp"
#include "launch/host/fibre_signals.hpp"
#include "launch/host/interrupted_calls.hpp"
#include "launch/host/passed_signals.hpp"
#include "launch/host/rank_timers.hpp"
#include "launch/host/ranks.hpp"
#include "launch/host/thread_status.hpp"
#include "runtime/fibres/api.hpp"

namespace warren::launch {

namespace {

struct State {
    pid_t process = 0;
    bool fibres = false;
    std::unique_ptr<std::atomic<pid_t>[]> threads; // the first one of each rank
    std::atomic<bool> forked{false}; // the process is a child of fork, with memory of its own
    sigset_t before_fork{};          // signals blocked before a fork that is under way
    // By signal. The ranks' actions count, not the process's; how many ranks ignore the signal, and
    // which flags one of them has asked for. All but the first under the lock.
    std::atomic<bool> dispatched[NSIG] = {};
    std::uint32_t ignoring[NSIG] = {};
    bool watched[NSIG] = {}; // a fibre has blocked it: ignored, too, it is pending then
    int flags[NSIG] = {};
};

State& state() {
    static State& only = *new State; // outlives everything
    return only;
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

// `is_running`: the rank's code is what the signal has interrupted. False: no handler has run.
bool deliver(std::uint32_t rank, int number, siginfo_t* information, void* context, bool own,
             bool is_running) {
    struct sigaction& action = actions().of(rank, number);
    const int flags = action.sa_flags;
    if (is_handler(action)) {
        if ((flags & SA_NOCLDSTOP) != 0 && is_about_stops(number, *information)) {
            return false;
        }
        const std::uint32_t former = act_for(is_running ? no_rank : rank);
        run_handler(action, number, information, context);
        act_for(former);
        if (is_running && (flags & SA_RESTART) == 0) {
            end_interrupted_call(context);
        }
        return true;
    }
    if (!is_ignored(action) && !is_ignored_by_default(number)) {
        end_by(rank, number, own);
    }
    return false;
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

// The fibre that acts on a signal for all: the running one, or else another, that has a handler; if
// none has, the default action is the process's. Best one that doesn't block it.
std::uint32_t receiver_among_fibres(std::uint32_t running, int number) {
    const Actions& all = actions();
    for (const bool with_handler : {true, false}) {
        for (const bool unblocked : {true, false}) {
            const auto fits = [&](std::uint32_t rank) {
                return (!with_handler || is_handler(all.of(rank, number))) &&
                       (!unblocked || !blocks_signal(rank, number));
            };
            if (running != no_rank && fits(running)) {
                return running;
            }
            for (std::uint32_t rank = 0; rank < all.ranks(); ++rank) {
                if (fits(rank)) {
                    return rank;
                }
            }
        }
    }
    return running;
}

// The ends of fibres' children: a signal may stand for several, which are of any rank.
void dispatch_ends(std::uint32_t running, siginfo_t* information, void* context) {
    bool found = false;
    for (std::uint32_t rank = 0; rank < actions().ranks(); ++rank) {
        siginfo_t its{};
        while (is_handler(actions().of(rank, SIGCHLD)) && find_ended_child(rank, its)) {
            found = true;
            if (rank == running) { // the handler may wait for children
                end_of_child_is_handled(rank);
            }
            if (!hold_back(rank, its)) {
                deliver(rank, SIGCHLD, &its, context, true, rank == running);
            }
            if (rank != running) {
                end_of_child_is_handled(rank);
            }
        }
    }
    siginfo_t there{};
    const auto id = static_cast<id_t>(information->si_pid);
    if (!found && !may_be_child_of_fibre(information->si_pid) &&
        waitid(P_PID, id, &there, WEXITED | WNOHANG | WNOWAIT) == 0 &&
        there.si_pid == information->si_pid) { // a child of a thread that is no fibre
        const std::uint32_t rank = receiver_among_fibres(running, SIGCHLD);
        if (rank != no_rank && !hold_back(rank, *information)) {
            deliver(rank, SIGCHLD, information, context, false, rank == running);
        }
    }
    act_on_held_back(SIGCHLD);
}

// All fibres that wait for a signal get it. False: none does.
bool wake_waiting_fibres(int number, const siginfo_t& information) {
    bool woken = false;
    for (std::uint32_t rank = 0; rank < actions().ranks(); ++rank) {
        woken |= waits_for_signal(rank, number) && hold_back(rank, information);
    }
    return woken;
}

// The rank's handler runs in the thread that runs the rank, where it may end the call that it has
// interrupted or leave by siglongjmp. False: none runs it, or the calling one.
bool pass_to_worker(std::uint32_t rank, const siginfo_t& information) {
    const pid_t thread = warren_fibre_thread(rank);
    if (thread == 0 || thread == own_thread() ||
        !is_handler(actions().of(rank, information.si_signo))) {
        return false;
    }
    return pass_on(thread, Passed::to_worker, information);
}

// `passes`: another thread may be the right one.
void dispatch_to_fibre(int number, siginfo_t* information, void* context, bool passes) {
    const std::uint32_t running = rank_of_thread();
    if (information->si_code == SI_TKILL && running != no_rank && !warren_fibre_is_one()) {
        deliver(running, number, information, context, true, true); // for a thread of the program's
        return;
    }
    std::uint32_t rank = owner_of_timer(*information);
    bool own = false;
    if (rank == no_rank && is_for_all(*information)) {
        if (number == SIGCHLD && !is_about_stops(number, *information)) {
            dispatch_ends(running, information, context);
            return;
        }
        if (wake_waiting_fibres(number, *information)) {
            return;
        }
        rank = receiver_among_fibres(running, number);
    } else if (rank == no_rank) {
        own = running != no_rank; // else a thread of the host's, for a fibre's timer
        rank = own ? running : receiver_among_fibres(running, number);
    }
    if (rank != no_rank && !hold_back(rank, *information) &&
        !(passes && rank != running && pass_to_worker(rank, *information))) {
        deliver(rank, number, information, context, own, rank == running);
        act_on_held_back(number);
    }
}

void dispatch(int number, siginfo_t* information, void* context) {
    const int error = errno;
    const Passed passed = take_passed(*information);
    if (passed == Passed::to_wake) {
        return;
    }
    if (state().fibres && getpid() == state().process) {
        dispatch_to_fibre(number, information, context, passed == Passed::none);
        errno = error;
        return;
    }
    const std::uint32_t running = rank_of_thread();
    bool own = passed != Passed::to_rank;
    if (own && is_for_all(*information) && getpid() == state().process) {
        own = false;
        for (std::uint32_t other = 0; other < actions().ranks(); ++other) {
            const pid_t thread = state().threads[other].load(std::memory_order_relaxed);
            if (other != running && thread != 0 &&
                !pass_on(thread, Passed::to_rank, *information) && errno == EAGAIN) {
                deliver(other, number, information, context, false, false);
            }
        }
    }
    if (running != no_rank) {
        deliver(running, number, information, context, own, true);
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
    } else if (all_ignore && !state().watched[number]) {
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

// The dispatcher gets the signal from now on, also if all ranks ignore it.
void watch_signal(int number) {
    const BlockedSignals blocked;
    const std::lock_guard guard(actions().lock);
    if (state().watched[number]) {
        return;
    }
    state().watched[number] = true;
    if (!state().dispatched[number].load(std::memory_order_relaxed)) {
        struct sigaction former {};
        sigaction(number, nullptr, &former);
        for (std::uint32_t one = 0; is_ignored(former) && one < actions().ranks(); ++one) {
            actions().of(one, number).sa_handler = SIG_IGN;
        }
        state().ignoring[number] = is_ignored(former) ? actions().ranks() : 0;
        state().dispatched[number].store(true, std::memory_order_relaxed);
    }
    install(number, SA_RESTART | state().flags[number]);
}

bool deliver_in_fibre(std::uint32_t rank, siginfo_t& information) {
    ucontext_t context{};
    return deliver(rank, information.si_signo, &information, &context, true, false);
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

// A signal that gets ignored is no longer pending.
void discard_pending(std::uint32_t rank, int number) {
    if (state().fibres) {
        discard_signal(rank, number);
        return;
    }
    // The calling thread's own; what is pending for the process may be another rank's.
    if ((signals_of_thread(own_thread(), "\nSigPnd:", 0) >> (number - 1) & 1) != 0) {
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, number);
        constexpr timespec at_once{};
        sigtimedwait(&set, nullptr, &at_once);
    }
}

// A fork holds the lock, with signals blocked: a handler of the forking thread would wait for
// itself.
void begin_fork() {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    actions().lock.lock();
    state().before_fork = before;
}

void end_fork() {
    const sigset_t before = state().before_fork;
    actions().lock.unlock();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void end_fork_in_child() {
    state().forked.store(true, std::memory_order_relaxed);
    end_fork();
}

// ---- What programs call

int set_action(int number, const struct sigaction* action, struct sigaction* former) {
    const std::uint32_t rank = rank_of_thread();
    const bool is_reserved = number >= __SIGRTMIN && number < SIGRTMIN; // the C library's
    if (rank == no_rank || !Actions::has(number) || is_reserved || number == SIGKILL ||
        number == SIGSTOP || is_child_in_parents_memory()) {
        return sigaction(number, action, former);
    }
    const BlockedSignals blocked;
    const std::lock_guard guard(actions().lock);
    struct sigaction before = actions().of(rank, number);
    if (!is_crash_signal(number) && !state().dispatched[number].load(std::memory_order_relaxed)) {
        sigaction(number, nullptr, &before); // ignored, when mpiexec was started so
    }
    if (action != nullptr) {
        const struct sigaction wanted = *action; // it may be what `former` points to
        take_signal(number, rank, wanted);
        if (is_ignored(wanted) || (!is_handler(wanted) && is_ignored_by_default(number))) {
            discard_pending(rank, number);
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

// Whether the thread has the signal neither blocked, but for a wait for it, nor ended.
bool takes(pid_t thread, int number) {
    constexpr std::uint64_t all = ~0ULL;
    return (signals_of_thread(thread, "\nSigBlk:", all) >> (number - 1) & 1) == 0;
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

// A signal that a rank sends to its process reaches that rank alone.
bool send_to_rank(int number, int code, sigval value, int& result) {
    const std::uint32_t rank = rank_of_thread();
    sigset_t blocked;
    pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
    if (rank == no_rank || getpid() != state().process || !Actions::has(number)) {
        return false;
    }
    pid_t thread = own_thread();
    const bool in_kernel = sigismember(&blocked, number) == 1;
    const bool is_fibre = state().fibres && warren_fibre_is_one();
    if (is_fibre && in_kernel) { // since the process began
        return false;
    }
    if (in_kernel || (is_fibre && blocks_signal(rank, number))) {
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

} // namespace

void prepare_signals(std::uint32_t ranks, bool fibres) {
    actions().prepare(ranks);
    state().process = getpid();
    state().fibres = fibres;
    state().threads = std::make_unique<std::atomic<pid_t>[]>(ranks);
    prepare_timers(ranks, fibres);
    if (fibres) {
        prepare_fibre_signals(ranks, {deliver_in_fibre, watch_signal});
    }
    pthread_atfork(begin_fork, end_fork, end_fork_in_child);
    warren_image_watch_exec(ignores_for_itself, pass_ignored_on);
}

void act_on_signal(std::uint32_t rank, siginfo_t& information) {
    if (!hold_back(rank, information, true)) {
        deliver_in_fibre(rank, information);
        act_on_held_back(0);
    }
}

void end_signals_of_fibre(std::uint32_t rank) {
    end_timer(rank);
    const BlockedSignals blocked;
    const std::lock_guard guard(actions().lock);
    for (int number = 1; number < NSIG; ++number) {
        struct sigaction& action = actions().of(rank, number);
        if (is_handler(action)) {
            action = {};
        }
    }
}

void note_thread(std::uint32_t rank) {
    if (!state().fibres) {
        state().threads[rank].store(own_thread(), std::memory_order_relaxed);
        note_timer_thread(rank, own_thread());
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
    };
    return bindings;
}

} // namespace warren::launch
