#include "launch/host/crash.hpp"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/futex.hpp"
#include "base/process_lock.hpp"
#include "fibre/api.hpp"
#include "launch/host/blocked_signals.hpp"
#include "launch/host/ranks.hpp"

namespace warren::launch {

namespace {

constexpr int crash_signals[] = {SIGSEGV, SIGBUS,  SIGFPE, SIGILL,
                                 SIGABRT, SIGTRAP, SIGSYS, SIGPIPE};
constexpr std::size_t crash_signal_count = std::size(crash_signals);

// Room for the largest state of vector registers that a kernel saves, and a handler that prints.
constexpr std::size_t signal_stack_bytes = 256 * 1024;

// What each rank has set for each of these signals. Writers hold the lock, with signals blocked; a
// handler that reads while another thread of its rank writes is a mistake of the program's.
struct Actions {
    std::uint32_t ranks = 0;
    std::unique_ptr<struct sigaction[]> of_ranks;
    std::unique_ptr<Stack[]> stacks;
    ProcessLock lock;

    struct sigaction& of(std::uint32_t rank, std::size_t index) const {
        return of_ranks[rank * crash_signal_count + index];
    }
};

Actions& actions() {
    static Actions& only = *new Actions; // outlives everything
    return only;
}

std::size_t index_of(int number) {
    std::size_t index = 0;
    while (index < crash_signal_count && crash_signals[index] != number) {
        ++index;
    }
    return index;
}

bool is_handler(const struct sigaction& action) {
    return (action.sa_flags & SA_SIGINFO) != 0 ||
           (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN);
}

bool is_ignored(const struct sigaction& action) {
    return (action.sa_flags & SA_SIGINFO) == 0 && action.sa_handler == SIG_IGN;
}

void take_default(int number) {
    struct sigaction action {};
    action.sa_handler = SIG_DFL;
    sigaction(number, &action, nullptr);
}

// Runs a program's own handler, with the signals blocked that it has asked for.
void run_handler(const struct sigaction& action, int number, siginfo_t* information,
                 void* context) {
    sigset_t blocked = action.sa_mask;
    if ((action.sa_flags & SA_NODEFER) == 0) {
        sigaddset(&blocked, number);
    }
    sigset_t former;
    pthread_sigmask(SIG_BLOCK, &blocked, &former);
    if ((action.sa_flags & SA_NODEFER) != 0) {
        sigset_t own;
        sigemptyset(&own);
        sigaddset(&own, number);
        pthread_sigmask(SIG_UNBLOCK, &own, nullptr);
    }
    warren_fibre_run_handler(&action, number, information, context);
    pthread_sigmask(SIG_SETMASK, &former, nullptr);
}

// Whether the calling rank's thread has run out of stack: by the address, or, when a function has
// more on it at a time than the guard is large, by where the stack pointer was.
bool is_overflow(std::uint32_t rank, const void* address, const void* context) {
    const Stack& stack = actions().stacks[rank];
    if (address >= stack.guard && address < stack.begin) {
        return true;
    }
    const auto* state = static_cast<const ucontext_t*>(context);
    const auto* pointer = reinterpret_cast<const std::byte*>(state->uc_mcontext.gregs[REG_RSP]);
    return pthread_equal(stack.owner, pthread_self()) != 0 && pointer < stack.begin;
}

void crashed(int number, siginfo_t* information, void* context) {
    if (warren_fibre_put_off(number, information, context)) {
        return;
    }
    const bool is_sent = information->si_code <= 0; // by kill, raise or the like
    const bool is_of_others =
        is_sent && information->si_pid != 0 && information->si_pid != getpid();
    const std::uint32_t rank = is_of_others ? no_rank : rank_of_thread();
    if (rank != no_rank) {
        struct sigaction& own = actions().of(rank, index_of(number));
        if (is_handler(own)) {
            const struct sigaction action = own;
            if ((action.sa_flags & static_cast<int>(SA_RESETHAND)) != 0) {
                own = {};
            }
            run_handler(action, number, information, context);
            return;
        }
        if (is_ignored(own) && is_sent) {
            return;
        }
        report_crash(rank, number,
                     (number == SIGSEGV || number == SIGBUS) && !is_sent &&
                         is_overflow(rank, information->si_addr, context));
    }
    take_default(number);
    if (is_sent || number == SIGTRAP || number == SIGSYS) {
        // Again, for the default action. Of other instructions the processor raises it again.
        syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), number);
    }
}

// sigaction of programs.
int set_action(int number, const struct sigaction* action, struct sigaction* former) {
    const std::size_t index = index_of(number);
    const std::uint32_t rank = rank_of_thread();
    if (index == crash_signal_count || rank == no_rank) {
        return warren_fibre_set_action(number, action, former);
    }
    // (What the program has given may be no memory, and its handler of that jump away from here.)
    struct sigaction wanted {};
    if (action != nullptr) {
        wanted = *action;
    }
    struct sigaction before {};
    {
        Actions& all = actions();
        const BlockedSignals blocked;
        const std::lock_guard guard(all.lock);
        struct sigaction& own = all.of(rank, index);
        before = own;
        if (action != nullptr) {
            own = wanted;
        }
    }
    if (former != nullptr) {
        *former = before;
    }
    return 0;
}

// --- The C library's other ways of setting a handler: what each asks of sigaction is its own.

using Handler = void (*)(int);

// Signals, as bits, whose handlers end calls that wait where they are set by signal() from now on.
std::atomic<std::uint64_t> interrupting{0};

std::uint64_t bit_of(int number) {
    return number > 0 && number <= 64 ? std::uint64_t{1} << (number - 1) : 0;
}

Handler set_simply(int number, Handler handler, int flags, bool blocks_itself) {
    struct sigaction action {};
    action.sa_handler = handler;
    action.sa_flags = flags;
    if (handler == SIG_ERR || (blocks_itself && sigaddset(&action.sa_mask, number) != 0)) {
        errno = EINVAL;
        return SIG_ERR;
    }
    struct sigaction former {};
    return set_action(number, &action, &former) == 0 ? former.sa_handler : SIG_ERR;
}

// signal of programs.
Handler set_handler(int number, Handler handler) {
    const bool interrupts = (interrupting.load(std::memory_order_relaxed) & bit_of(number)) != 0;
    return set_simply(number, handler, interrupts ? 0 : SA_RESTART, true);
}

// The one that programs get as signal which ask for no more than the standards have.
Handler set_handler_once(int number, Handler handler) {
    return set_simply(number, handler, static_cast<int>(SA_RESETHAND) | SA_NODEFER | SA_INTERRUPT,
                      false);
}

int set_interrupting(int number, int interrupts) {
    struct sigaction action {};
    if (set_action(number, nullptr, &action) != 0) {
        return -1;
    }
    if (interrupts != 0) {
        interrupting.fetch_or(bit_of(number), std::memory_order_relaxed);
        action.sa_flags &= ~SA_RESTART;
    } else {
        interrupting.fetch_and(~bit_of(number), std::memory_order_relaxed);
        action.sa_flags |= SA_RESTART;
    }
    return set_action(number, &action, nullptr);
}

// sigset of programs.
Handler set_or_hold(int number, Handler handler) {
    sigset_t only;
    sigset_t former_mask;
    sigemptyset(&only);
    if (handler == SIG_ERR || sigaddset(&only, number) != 0) {
        errno = EINVAL;
        return SIG_ERR;
    }
    struct sigaction former {};
    if (handler == SIG_HOLD) {
        if (set_action(number, nullptr, &former) != 0) {
            return SIG_ERR;
        }
        pthread_sigmask(SIG_BLOCK, &only, &former_mask);
    } else {
        former.sa_handler = set_simply(number, handler, 0, false);
        if (former.sa_handler == SIG_ERR) {
            return SIG_ERR;
        }
        pthread_sigmask(SIG_UNBLOCK, &only, &former_mask);
    }
    return sigismember(&former_mask, number) == 1 ? SIG_HOLD : former.sa_handler;
}

int ignore(int number) {
    return set_simply(number, SIG_IGN, 0, false) == SIG_ERR ? -1 : 0;
}

} // namespace

void watch_for_crashes(std::uint32_t ranks) {
    Actions& all = actions();
    all.ranks = ranks;
    all.stacks = std::make_unique<Stack[]>(ranks);
    all.of_ranks = std::make_unique<struct sigaction[]>(ranks * crash_signal_count);
    for (std::size_t index = 0; index < crash_signal_count; ++index) {
        struct sigaction action {};
        struct sigaction former {};
        action.sa_sigaction = crashed;
        // Only the signal itself is blocked, as while a program's own handler runs.
        action.sa_flags = SA_SIGINFO | SA_ONSTACK;
        sigaction(crash_signals[index], &action, &former);
        if (is_ignored(former)) { // as mpiexec was started
            for (std::uint32_t rank = 0; rank < ranks; ++rank) {
                all.of(rank, index).sa_handler = SIG_IGN;
            }
        }
    }
}

std::span<const warren_image_binding> crash_bindings() {
    static const warren_image_binding bindings[] = {
        {"sigaction", reinterpret_cast<void*>(&set_action)},
        {"__sigaction", reinterpret_cast<void*>(&set_action)},
        {"signal", reinterpret_cast<void*>(&set_handler)},
        {"bsd_signal", reinterpret_cast<void*>(&set_handler)},
        {"ssignal", reinterpret_cast<void*>(&set_handler)},
        {"sysv_signal", reinterpret_cast<void*>(&set_handler_once)},
        {"__sysv_signal", reinterpret_cast<void*>(&set_handler_once)},
        {"siginterrupt", reinterpret_cast<void*>(&set_interrupting)},
        {"sigset", reinterpret_cast<void*>(&set_or_hold)},
        {"sigignore", reinterpret_cast<void*>(&ignore)},
    };
    return bindings;
}

void note_stack(std::uint32_t rank, const Stack& stack) {
    actions().stacks[rank] = stack;
}

void make_signal_stack() {
    stack_t stack{};
    stack.ss_size = signal_stack_bytes;
    stack.ss_sp = mmap(nullptr, signal_stack_bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stack.ss_sp != MAP_FAILED) {
        sigaltstack(&stack, nullptr);
    }
}

void die_by(int number) {
    const std::uint32_t rank = rank_of_thread();
    if (rank != no_rank) {
        struct sigaction& own = actions().of(rank, index_of(number));
        if (is_handler(own)) { // abort, which runs it and goes on
            const struct sigaction action = own;
            own = {};
            siginfo_t information{};
            information.si_signo = number;
            information.si_code = SI_TKILL;
            information.si_pid = getpid();
            ucontext_t context{};
            pthread_sigmask(SIG_BLOCK, nullptr, &context.uc_sigmask);
            run_handler(action, number, &information, &context);
        }
        report_crash(rank, number);
    }
    take_default(number);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, number);
    pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
    syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), number);
    _exit(128 + number);
}

} // namespace warren::launch
