// Signals. A signal that no handler takes and that ends the process writes its recording first. The
// program's handlers are called by this library, so that none runs while its thread is inside the
// recorder: a handler may leave by siglongjmp or _exit. A signal that arrives then is sent to the
// thread again with all signals blocked, and so waits in the kernel until the recorder is left.

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <sched.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "analyser/counts/counters.hpp"
#include "analyser/hooks/hooks.hpp"

namespace warren::locality::hooks {

namespace {

using Action = struct sigaction;
using KernelMask = std::uint64_t;

constexpr int signals = 64;

// False for signals that by default do nothing, or stop or continue the process, and for those that
// can't be handled.
bool is_deadly(int number) {
    switch (number) {
    case SIGCHLD:
    case SIGURG:
    case SIGWINCH:
    case SIGCONT:
    case SIGSTOP:
    case SIGTSTP:
    case SIGTTIN:
    case SIGTTOU:
    case SIGKILL:
        return false;
    default:
        return number >= 1 && number <= signals;
    }
}

// Whether an instruction caused the signal. It is executed again if the handler returns.
bool is_fault(int number, const siginfo_t& about) {
    return about.si_code > 0 && (number == SIGSEGV || number == SIGBUS || number == SIGILL ||
                                 number == SIGFPE || number == SIGTRAP || number == SIGSYS);
}

// The program's handlers. Invariant: `version` is odd while one is changed by a thread that has the
// lock and is inside. Readers are signal handlers and take no lock.
struct Handled {
    std::uint32_t version;
    Action action;
};
Handled handled[signals + 1];
std::uint32_t handled_lock = 0;

bool names_function(const Action& action) {
    return (action.sa_flags & SA_SIGINFO) != 0 ||
           (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN);
}

Action action_of(int number) {
    constexpr int most_turns = 1000;
    Action found{};
    for (int turn = 0; turn < most_turns; ++turn) {
        const std::uint32_t before = __atomic_load_n(&handled[number].version, __ATOMIC_ACQUIRE);
        found = handled[number].action;
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if (before % 2 == 0 &&
            before == __atomic_load_n(&handled[number].version, __ATOMIC_RELAXED)) {
            break;
        }
        sched_yield();
    }
    return found;
}

void set_action(int number, const Action& action) {
    Handled& of = handled[number];
    __atomic_store_n(&of.version, of.version + 1, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    of.action = action;
    __atomic_store_n(&of.version, of.version + 1, __ATOMIC_RELEASE);
}

int real_sigaction(int number, const Action* action, Action* before) {
    using Function = int (*)(int, const Action*, Action*);
    static Function next = nullptr;
    if (next == nullptr) {
        next = reinterpret_cast<Function>(behind("sigaction"));
    }
    return next(number, action, before);
}

void set_default(int number) {
    Action action{};
    action.sa_handler = SIG_DFL;
    real_sigaction(number, &action, nullptr);
}

KernelMask& mask_of(ucontext_t& context) {
    return *reinterpret_cast<KernelMask*>(&context.uc_sigmask); // its first words
}

void set_mask(const KernelMask& mask) {
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, nullptr, sizeof mask);
}

void end_by(int number) {
    char how[80];
    const char* const name = sigdescr_np(number);
    std::snprintf(how, sizeof how, "signal %d (%s)", number, name != nullptr ? name : "unknown");
    end_process(how);
    set_default(number);
    // Delivered when the signal is no longer blocked, after the handler returns.
    syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), number);
}

// All signals are blocked while this runs.
void on_signal(int number, siginfo_t* about, void* memory) {
    const int error = errno;
    auto& context = *static_cast<ucontext_t*>(memory);
    if (mine.inside != 0 && !is_fault(number, *about)) {
        if (number != SIGXFSZ) { // which is this library's own: it has written
            syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), number, about);
            if (!mine.held) {
                mine.mask = mask_of(context);
                mine.held = true;
            }
            mask_of(context) = ~KernelMask{0};
        }
        errno = error;
        return;
    }
    if (mine.inside != 0) {
        // The recorder itself has faulted: the stack ends, as its calls go deeper than the
        // program's.
        if (mine.locks == 0) {
            mine.inside = 0;
            end_by(number);
        }
        set_default(number);
        return;
    }
    const Action action = action_of(number);
    if (!names_function(action)) {
        if (action.sa_handler == SIG_DFL && is_deadly(number)) {
            end_by(number);
        }
        errno = error;
        return;
    }
    if ((action.sa_flags & static_cast<int>(SA_RESETHAND)) != 0) {
        Action none{};
        none.sa_handler = SIG_DFL;
        sigaction(number, &none, nullptr);
    }
    KernelMask blocked = 0;
    std::memcpy(&blocked, &action.sa_mask, sizeof blocked);
    blocked |= mask_of(context);
    if ((action.sa_flags & SA_NODEFER) == 0) {
        blocked |= KernelMask{1} << (number - 1);
    }
    set_mask(blocked);
    errno = error;
    if ((action.sa_flags & SA_SIGINFO) != 0) {
        action.sa_sigaction(number, about, memory);
    } else {
        action.sa_handler(number);
    }
}

Action own_action(const Action& of) {
    constexpr int kept = SA_NOCLDSTOP | SA_NOCLDWAIT | SA_RESTART | SA_ONSTACK;
    Action action{};
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | (of.sa_flags & kept);
    if (!names_function(of)) {
        action.sa_flags |= SA_ONSTACK;
    }
    sigfillset(&action.sa_mask);
    return action;
}

bool is_own(const Action& action) {
    return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == on_signal;
}

bool is_wanted(int number, const Action& action) {
    return names_function(action) || (action.sa_handler == SIG_DFL && is_deadly(number));
}

sighandler_t set_handler(int number, sighandler_t handler, int flags) {
    if (handler == SIG_ERR) {
        errno = EINVAL;
        return SIG_ERR;
    }
    Action action{};
    Action before{};
    action.sa_handler = handler;
    action.sa_flags = flags;
    return sigaction(number, &action, &before) == 0 ? before.sa_handler : SIG_ERR;
}

sighandler_t pass_on(const char* name, int number, sighandler_t handler) {
    using Function = sighandler_t (*)(int, sighandler_t);
    return reinterpret_cast<Function>(behind(name))(number, handler);
}

constexpr std::size_t stack_bytes = std::size_t{256} << 10; // touched when it is needed

} // namespace

void Inside::leave() {
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    mine.inside = 0;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (mine.held) [[unlikely]] { // no other can come
        mine.held = false;
        const int error = errno;
        const KernelMask mask = mine.mask;
        set_mask(mask);
        errno = error;
    }
}

void take_signals() {
    for (int number = 1; number <= signals; ++number) {
        Action before{};
        if (real_sigaction(number, nullptr, &before) == 0 && is_wanted(number, before) &&
            !is_own(before)) {
            set_action(number, before);
            const Action action = own_action(before);
            real_sigaction(number, &action, nullptr);
        }
    }
}

void forget_signals() {
    handled_lock = 0;
    for (Handled& one : handled) {
        one.version &= ~std::uint32_t{1};
    }
}

void take_stack_overflows() {
    stack_t stack{};
    if (mine.stack == nullptr && sigaltstack(nullptr, &stack) == 0 &&
        (stack.ss_flags & SS_DISABLE) != 0) {
        mine.stack = counts::reserve(stack_bytes);
        if (mine.stack != nullptr) {
            stack.ss_sp = mine.stack;
            stack.ss_size = stack_bytes;
            stack.ss_flags = 0;
            sigaltstack(&stack, nullptr);
        }
    }
}

void leave_stack_overflows() {
    stack_t stack{};
    if (mine.stack == nullptr || sigaltstack(nullptr, &stack) != 0 ||
        (stack.ss_flags & SS_ONSTACK) != 0) {
        return;
    }
    if (stack.ss_sp == mine.stack) {
        stack.ss_flags = SS_DISABLE;
        sigaltstack(&stack, nullptr);
    }
    counts::release(mine.stack, stack_bytes);
    mine.stack = nullptr;
}

extern "C" {

// Reports the program's own handlers, and the defaults where this library's are installed.
int sigaction(int number, const Action* action, Action* before) {
    if (!is_recording() || number < 1 || number > signals) {
        return real_sigaction(number, action, before);
    }
    const Inside inside;
    if (!inside || !is_own_process()) {
        return real_sigaction(number, action, before);
    }
    const bool borrowed = is_borrowed_memory();
    while (__atomic_exchange_n(&handled_lock, 1, __ATOMIC_ACQUIRE) != 0) {
        sched_yield();
    }
    Action was = action_of(number);
    const Action wanted = action != nullptr ? *action : Action{};
    int result = 0;
    Action found{};
    if (action == nullptr || borrowed || !is_wanted(number, wanted)) {
        result = real_sigaction(number, action != nullptr ? &wanted : nullptr, &found);
    } else {
        // Set first, so that a signal in between is handled as the program asks.
        set_action(number, wanted);
        const Action own = own_action(wanted);
        result = real_sigaction(number, &own, &found);
        if (result != 0) {
            set_action(number, was);
        }
    }
    __atomic_store_n(&handled_lock, 0, __ATOMIC_RELEASE);
    if (result == 0 && before != nullptr) {
        *before = is_own(found) ? was : found;
    }
    return result;
}

// As in the C library, whose own signal() would not call this sigaction().
sighandler_t signal(int number, sighandler_t handler) {
    return is_recording() ? set_handler(number, handler, SA_RESTART)
                          : pass_on("signal", number, handler);
}

sighandler_t bsd_signal(int number, sighandler_t handler) {
    return is_recording() ? set_handler(number, handler, SA_RESTART)
                          : pass_on("signal", number, handler);
}

sighandler_t sysv_signal(int number, sighandler_t handler) {
    return is_recording()
               ? set_handler(number, handler, static_cast<int>(SA_RESETHAND) | SA_NODEFER)
               : pass_on("__sysv_signal", number, handler);
}

// NOLINTNEXTLINE(bugprone-reserved-identifier,readability-identifier-naming)
sighandler_t __sysv_signal(int number, sighandler_t handler) {
    return sysv_signal(number, handler);
}

sighandler_t sigset(int number, sighandler_t handler) {
    if (!is_recording()) {
        return pass_on("sigset", number, handler);
    }
    sigset_t one;
    sigset_t blocked;
    sigemptyset(&one);
    if (handler == SIG_ERR || sigaddset(&one, number) != 0) {
        errno = EINVAL;
        return SIG_ERR;
    }
    constexpr std::intptr_t hold = 2; // SIG_HOLD
    const bool holds = reinterpret_cast<std::intptr_t>(handler) == hold;
    Action before{};
    if (holds) {
        if (sigaction(number, nullptr, &before) != 0) {
            return SIG_ERR;
        }
    } else {
        before.sa_handler = set_handler(number, handler, 0);
        if (before.sa_handler == SIG_ERR) {
            return SIG_ERR;
        }
    }
    pthread_sigmask(holds ? SIG_BLOCK : SIG_UNBLOCK, &one, &blocked);
    return sigismember(&blocked, number) != 0 ? reinterpret_cast<sighandler_t>(hold)
                                              : before.sa_handler;
}

} // extern "C"

} // namespace warren::locality::hooks
