#include "launch/host/crash.hpp"

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <memory>
#include <mutex>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "launch/host/ranks.hpp"

namespace warren::launch {

namespace {

constexpr int crash_signals[] = {SIGSEGV, SIGBUS,  SIGFPE, SIGILL,
                                 SIGABRT, SIGTRAP, SIGSYS, SIGPIPE};
constexpr std::size_t crash_signal_count = std::size(crash_signals);

// Room for the largest state of vector registers that a kernel saves, and a handler that prints.
constexpr std::size_t signal_stack_bytes = 256 * 1024;

// The action that each rank has set for each of these signals. Writers hold the lock. A handler
// that reads while its rank writes is the program's mistake, as in a process.
struct Actions {
    std::uint32_t ranks = 0;
    std::unique_ptr<struct sigaction[]> of_ranks;
    std::unique_ptr<Stack[]> stacks;
    std::mutex lock;

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
    if ((action.sa_flags & SA_SIGINFO) != 0) {
        action.sa_sigaction(number, information, context);
    } else {
        action.sa_handler(number);
    }
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
        return sigaction(number, action, former);
    }
    Actions& all = actions();
    const std::lock_guard guard(all.lock);
    struct sigaction& own = all.of(rank, index);
    const struct sigaction before = own;
    if (action != nullptr) {
        own = *action;
    }
    if (former != nullptr) {
        *former = before;
    }
    return 0;
}

using Handler = void (*)(int);

// signal of programs.
Handler set_handler(int number, Handler handler) {
    if (index_of(number) == crash_signal_count) {
        return signal(number, handler);
    }
    struct sigaction action {};
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    struct sigaction former {};
    return set_action(number, &action, &former) == 0 ? former.sa_handler : SIG_ERR;
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
