#include "launch/host/signals.hpp"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <iterator>
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
#include "launch/host/descriptor_signals.hpp"
#include "launch/host/dispatch.hpp"
#include "launch/host/fibre_signals.hpp"
#include "launch/host/interrupted_calls.hpp"
#include "launch/host/passed_signals.hpp"
#include "launch/host/rank_signals.hpp"
#include "launch/host/rank_timers.hpp"
#include "launch/host/ranks.hpp"
#include "launch/host/sent_signals.hpp"
#include "launch/host/signal_owners.hpp"
#include "launch/host/thread_signals.hpp"
#include "launch/host/thread_status.hpp"
#include "runtime/fibres/api.hpp"

namespace warren::launch {

namespace {

// Signals that a rank ignores while its commands run (system).
constexpr int changed_by_commands[] = {SIGINT, SIGQUIT};

struct Commands {
    std::uint32_t running = 0;
    struct sigaction before[std::size(changed_by_commands)] = {};
};

struct State {
    pid_t process = 0;
    bool fibres = false;
    std::atomic<bool> forked{false}; // the process is a child of fork, with memory of its own
    sigset_t before_fork{};          // signals blocked before a fork that is under way
    // By signal. The ranks' actions count, not the process's; how many ranks ignore the signal, and
    // which flags one of them has asked for. All but the first under the lock.
    std::atomic<bool> dispatched[NSIG] = {};
    std::uint32_t ignoring[NSIG] = {};
    // A rank has blocked it: ignored, too, it is pending then.
    std::atomic<bool> watched[NSIG] = {};
    std::unique_ptr<Commands[]> commands;              // of ranks
    std::unique_ptr<std::atomic<Mask>[]> interrupting; // of ranks: signals of siginterrupt(…, 1)
    int flags[NSIG] = {};
};

State& state() {
    static State& only = *new State; // outlives everything
    return only;
}

void ignore_for_process(int number) {
    struct sigaction action {};
    action.sa_handler = SIG_IGN;
    sigaction(number, &action, nullptr);
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
        install_dispatcher(number, SA_RESTART | state().flags[number]);
    }
}

bool wants_signal_stack(int number) {
    bool wants = false;
    for (std::uint32_t rank = 0; rank < actions().ranks() && !wants; ++rank) {
        const struct sigaction& action = actions().of(rank, number);
        wants = is_handler(action) && (action.sa_flags & SA_ONSTACK) != 0;
    }
    return wants;
}

// The process's action becomes the dispatcher with the first rank that sets one. Under the lock.
void take_signal(int number, std::uint32_t rank, const struct sigaction& wanted) {
    struct sigaction& own = actions().of(rank, number);
    if (!state().dispatched[number].load(std::memory_order_relaxed)) {
        struct sigaction former {};
        sigaction(number, nullptr, &former);
        const bool is_default = !is_handler(wanted) && !is_ignored(wanted);
        if (is_default && (wanted.sa_flags & SA_NOCLDWAIT) == 0 && !is_ignored(former)) {
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
    const int before_flags = own.sa_flags;
    own = wanted;
    if (((wanted.sa_flags ^ before_flags) & SA_ONSTACK) != 0) {
        state().flags[number] = wants_signal_stack(number) ? SA_ONSTACK : 0;
    }
    install_for_all(number);
}

// The dispatcher gets the signal from now on, also if all ranks ignore it.
void watch_signal(int number) {
    if (state().watched[number].load(std::memory_order_acquire)) {
        return;
    }
    const BlockedSignals blocked;
    const std::lock_guard guard(actions().lock);
    if (!state().dispatched[number].load(std::memory_order_relaxed)) {
        struct sigaction former {};
        sigaction(number, nullptr, &former);
        for (std::uint32_t one = 0; is_ignored(former) && one < actions().ranks(); ++one) {
            actions().of(one, number).sa_handler = SIG_IGN;
        }
        state().ignoring[number] = is_ignored(former) ? actions().ranks() : 0;
        state().dispatched[number].store(true, std::memory_order_relaxed);
    }
    install_dispatcher(number, SA_RESTART | state().flags[number]);
    state().watched[number].store(true, std::memory_order_release);
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

// Whether the rank ignores the signal only while commands run.
bool ignores_for_commands(std::uint32_t rank, int number) {
    const Commands& commands = state().commands[rank];
    for (std::size_t i = 0; i < std::size(changed_by_commands); ++i) {
        if (changed_by_commands[i] == number && commands.running != 0) {
            return !is_ignored(commands.before[i]);
        }
    }
    return false;
}

// Whether the rank's commands ignore the signal, though the process doesn't.
bool is_ignored_for_itself(std::uint32_t rank, int number) {
    struct sigaction now {};
    return is_ignored(actions().of(rank, number)) && !ignores_for_commands(rank, number) &&
           sigaction(number, nullptr, &now) == 0 && is_ours(now);
}

// Whether commands that the calling rank starts would miss that it ignores signals. Under the lock.
bool ignores_for_itself() {
    const std::uint32_t rank = rank_of_thread();
    for (int number = 1; rank != no_rank && number < NSIG; ++number) {
        if (is_ignored_for_itself(rank, number)) {
            return true;
        }
    }
    return false;
}

bool start_with_actions(int (*function)(void*), void* argument, int& error) {
    const BlockedSignals blocked;
    const std::lock_guard guard(actions().lock);
    if (ignores_for_itself()) {
        return false;
    }
    error = function(argument);
    return true;
}

// In a child, before it executes a program: that ignores what the rank ignores.
void pass_ignored_on() {
    const std::uint32_t rank = rank_of_thread();
    for (int number = 1; rank != no_rank && number < NSIG; ++number) {
        if (is_ignored_for_itself(rank, number)) {
            ignore_for_process(number);
        }
    }
}

// A signal that gets ignored is no longer pending.
void discard_pending(std::uint32_t rank, int number) {
    if (RankSignals* signals = signals_of_rank(rank)) {
        remove_from_queue(*signals, number);
    }
    if (state().fibres) {
        return;
    }
    // The calling thread's own; what is pending for the process may be another rank's.
    if ((signals_of_thread(own_thread(), "\nSigPnd:", 0) >> (number - 1) & 1) != 0) {
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, number);
        constexpr timespec at_once{};
        siginfo_t information{};
        while (sigtimedwait(&set, &information, &at_once) > 0) {
            if (take_passed(information) == Passed::to_rank) {
                note_come();
            }
            note_taken(information);
        }
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
        struct sigaction of_process {};
        sigaction(number, nullptr, &of_process);
        if (is_ignored(of_process)) { // mpiexec was started so
            before = of_process;
        }
    }
    if (action != nullptr) {
        struct sigaction wanted = *action; // it may be what `former` points to
        sigdelset(&wanted.sa_mask, SIGKILL);
        sigdelset(&wanted.sa_mask, SIGSTOP);
        take_signal(number, rank, wanted);
        if (is_ignored(wanted) || (!is_handler(wanted) && is_ignored_by_default(number))) {
            discard_pending(rank, number);
        }
        if (number == SIGCHLD && is_handler(wanted) && !is_handler(before)) {
            skip_stops(rank);
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

// Whether handlers that signal() sets end calls. Null: the caller is no rank.
std::atomic<Mask>* interrupting_signals() {
    const std::uint32_t rank = rank_of_thread();
    return rank != no_rank && !is_child_in_parents_memory() ? &state().interrupting[rank] : nullptr;
}

Handler set_handler(int number, Handler handler) {
    const std::atomic<Mask>* interrupting = interrupting_signals();
    const bool ends_calls = interrupting != nullptr && Actions::has(number) &&
                            (interrupting->load(std::memory_order_relaxed) & bit(number)) != 0;
    return set_handler_with(number, handler, ends_calls ? 0 : SA_RESTART);
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
    if (std::atomic<Mask>* interrupting = interrupting_signals()) {
        wanted != 0 ? interrupting->fetch_or(bit(number)) : interrupting->fetch_and(~bit(number));
    }
    return set_action(number, &action, nullptr);
}

// As the C library's: a signal that is handled is not blocked.
Handler set_handler_and_mask(int number, Handler handler) {
    sigset_t set;
    sigset_t before;
    struct sigaction former {};
    sigemptyset(&set);
    if (handler == SIG_ERR || sigaddset(&set, number) != 0 ||
        set_action(number, nullptr, &former) != 0) {
        errno = EINVAL;
        return SIG_ERR;
    }
    if (handler != SIG_HOLD) {
        struct sigaction action {};
        action.sa_handler = handler;
        if (set_action(number, &action, nullptr) != 0) {
            return SIG_ERR;
        }
    }
    set_signal_mask(handler == SIG_HOLD ? SIG_BLOCK : SIG_UNBLOCK, &set, &before);
    return sigismember(&before, number) == 1 ? SIG_HOLD : former.sa_handler;
}

// A rank's first command under way changes its actions, the last one restores them.
sigset_t begin_command() {
    sigset_t defaults;
    sigemptyset(&defaults);
    const std::uint32_t rank = rank_of_thread();
    if (rank == no_rank || is_child_in_parents_memory()) {
        return defaults;
    }
    const BlockedSignals blocked;
    const std::lock_guard guard(actions().lock);
    Commands& commands = state().commands[rank];
    for (std::size_t i = 0; i < std::size(changed_by_commands); ++i) {
        const int number = changed_by_commands[i];
        if (commands.running == 0) {
            if (!state().dispatched[number].load(std::memory_order_relaxed)) {
                sigaction(number, nullptr, &commands.before[i]);
            } else {
                commands.before[i] = actions().of(rank, number);
            }
            struct sigaction ignored {};
            ignored.sa_handler = SIG_IGN;
            take_signal(number, rank, ignored);
            discard_pending(rank, number);
        }
        if (!is_ignored(commands.before[i])) {
            sigaddset(&defaults, number);
        }
    }
    ++commands.running;
    return defaults;
}

void end_command() {
    const std::uint32_t rank = rank_of_thread();
    if (rank == no_rank || is_child_in_parents_memory()) {
        return;
    }
    const BlockedSignals blocked;
    const std::lock_guard guard(actions().lock);
    Commands& commands = state().commands[rank];
    if (--commands.running == 0) {
        for (std::size_t i = 0; i < std::size(changed_by_commands); ++i) {
            take_signal(changed_by_commands[i], rank, commands.before[i]);
        }
    }
}

} // namespace

void prepare_signals(std::uint32_t ranks, bool fibres) {
    actions().prepare(ranks);
    state().process = getpid();
    state().fibres = fibres;
    state().commands = std::make_unique<Commands[]>(ranks);
    state().interrupting = std::make_unique<std::atomic<Mask>[]>(ranks);
    prepare_timers(ranks, fibres);
    prepare_rank_signals(ranks);
    prepare_thread_signals(ranks, fibres, watch_signal);
    prepare_sending(ranks, fibres);
    prepare_descriptor_signals(fibres);
    prepare_dispatch(fibres);
    if (fibres) {
        prepare_fibre_signals(ranks, {deliver_by_caller, watch_signal, dispatch});
    }
    pthread_atfork(begin_fork, end_fork, end_fork_in_child);
    warren_image_watch_exec(pass_ignored_on);
}

const CommandSignals& command_signals() {
    static constexpr CommandSignals functions{begin_command, end_command, start_with_actions};
    return functions;
}

void end_signals_of_fibre(std::uint32_t rank) {
    end_timers(rank);
    const BlockedSignals blocked;
    const std::lock_guard guard(actions().lock);
    for (int number = 1; number < NSIG; ++number) {
        struct sigaction& action = actions().of(rank, number);
        if (is_handler(action)) {
            action = {};
        }
    }
}

void end_signals_of_thread(std::uint32_t rank) {
    end_timers(rank);
    end_signal_thread(rank);
}

void note_thread(std::uint32_t rank, const sigset_t& blocked) {
    note_signal_thread(rank, blocked);
    note_first_thread(rank);
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
        {"sigset", reinterpret_cast<void*>(&set_handler_and_mask)},
    };
    return bindings;
}

} // namespace warren::launch
