#include "launch/host/crash.hpp"

#include <csignal>
#include <cstddef>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "launch/host/ranks.hpp"

namespace warren::launch {

namespace {

constexpr int crash_signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};

// Room for the largest state of vector registers that a kernel saves, and a handler.
constexpr std::size_t signal_stack_bytes = 64 * 1024;

void take_default(int number) {
    struct sigaction action {};
    action.sa_handler = SIG_DFL;
    sigaction(number, &action, nullptr);
}

void crashed(int number, siginfo_t* information, void*) {
    const bool by_somebody_else =
        information->si_code <= 0 && information->si_pid != 0 && information->si_pid != getpid();
    const std::uint32_t rank = by_somebody_else ? no_rank : rank_of_thread();
    if (rank != no_rank) {
        report_crash(rank, number);
    }
    take_default(number);
    if (information->si_code <= 0) {
        // Somebody has sent it: again, for the default action. What the processor raises it will
        // raise again, where it did.
        syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), number);
    }
}

} // namespace

void watch_for_crashes() {
    for (const int number : crash_signals) {
        struct sigaction former {};
        sigaction(number, nullptr, &former);
        if ((former.sa_flags & SA_SIGINFO) == 0 && former.sa_handler == SIG_IGN) {
            continue; // as mpiexec was started
        }
        struct sigaction action {};
        action.sa_sigaction = crashed;
        action.sa_flags = SA_SIGINFO | SA_ONSTACK;
        sigfillset(&action.sa_mask);
        sigaction(number, &action, nullptr);
    }
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

void die_by(int signal) {
    const std::uint32_t rank = rank_of_thread();
    if (rank != no_rank) {
        report_crash(rank, signal);
    }
    take_default(signal);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal);
    pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
    syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), signal);
    _exit(128 + signal);
}

} // namespace warren::launch
