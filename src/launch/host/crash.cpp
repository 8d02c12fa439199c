#include "launch/host/crash.hpp"

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <iterator>
#include <memory>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "launch/host/actions.hpp"
#include "launch/host/dispatch.hpp"
#include "launch/host/fibre_signals.hpp"
#include "launch/host/passed_signals.hpp"
#include "launch/host/ranks.hpp"

namespace warren::launch {

namespace {

constexpr int crash_signals[] = {SIGSEGV, SIGBUS,  SIGFPE, SIGILL,
                                 SIGABRT, SIGTRAP, SIGSYS, SIGPIPE};

// Room for the largest state of vector registers that a kernel saves, and a handler that prints.
constexpr std::size_t signal_stack_bytes = 256 * 1024;

// Stacks for signal handlers, by rank; each is for the first thread of the rank's process only.
std::unique_ptr<Stack[]>& stacks() {
    static auto& only = *new std::unique_ptr<Stack[]>; // outlives everything
    return only;
}

// Whether the calling rank's thread has run out of stack: by the address, or, when a function has
// more on it at a time than the guard is large, by where the stack pointer was.
bool is_overflow(std::uint32_t rank, const void* address, const void* context) {
    const Stack& stack = stacks()[rank];
    if (address >= stack.guard && address < stack.begin) {
        return true;
    }
    const auto* state = static_cast<const ucontext_t*>(context);
    const auto* pointer = reinterpret_cast<const std::byte*>(state->uc_mcontext.gregs[REG_RSP]);
    return pthread_equal(stack.owner, pthread_self()) != 0 && pointer < stack.begin;
}

// A rank's child has sent it to the rank (signals_to_parent.hpp).
bool is_passed_on(const siginfo_t& information) {
    siginfo_t copy = information;
    return take_passed(copy) != Passed::none;
}

void crashed(int number, siginfo_t* information, void* context) {
    if (is_passed_on(*information)) {
        dispatch(number, information, context);
        return;
    }
    const bool is_sent = information->si_code <= 0; // by kill, raise or the like
    const bool is_of_others =
        is_sent && information->si_pid != 0 && information->si_pid != getpid();
    const std::uint32_t rank = is_of_others ? no_rank : rank_of_thread();
    if (rank != no_rank) {
        // A program blocks no others that the processor raises.
        if ((number == SIGPIPE || number == SIGABRT) && hold_back(rank, *information)) {
            return;
        }
        struct sigaction& own = actions().of(rank, number);
        if (is_handler(own)) {
            run_handler(own, number, information, context);
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

} // namespace

bool is_crash_signal(int number) {
    return std::find(std::begin(crash_signals), std::end(crash_signals), number) !=
           std::end(crash_signals);
}

bool is_crash_handler(const struct sigaction& action) {
    return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == crashed;
}

void watch_for_crash(int number, bool ignored) {
    struct sigaction action {};
    if (ignored) {
        action.sa_handler = SIG_IGN;
    } else {
        action.sa_sigaction = crashed;
        // Only the signal itself is blocked, as while a program's own handler runs.
        action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    }
    sigaction(number, &action, nullptr);
}

void watch_for_crashes(std::uint32_t ranks) {
    stacks() = std::make_unique<Stack[]>(ranks);
    for (const int number : crash_signals) {
        struct sigaction former {};
        sigaction(number, nullptr, &former);
        watch_for_crash(number, false);
        if (is_ignored(former)) { // as mpiexec was started
            for (std::uint32_t rank = 0; rank < ranks; ++rank) {
                actions().of(rank, number).sa_handler = SIG_IGN;
            }
        }
    }
}

void note_stack(std::uint32_t rank, const Stack& stack) {
    stacks()[rank] = stack;
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
        struct sigaction& own = actions().of(rank, number);
        if (is_handler(own)) { // abort, which runs it and goes on
            siginfo_t information{};
            information.si_signo = number;
            information.si_code = SI_TKILL;
            information.si_pid = getpid();
            ucontext_t context{};
            run_handler(own, number, &information, &context); // which may leave by a jump
            own = {};
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
