// The ends of a process that its recording would not survive: what executes another program, what
// leaves without the functions of exit, and signals that nobody handles.

#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <sys/syscall.h>
#include <unistd.h>

#include "locality/hooks/hooks.hpp"

namespace warren::locality::hooks {

namespace {

using Action = struct sigaction;

// Those that end a process which does not handle them, and leave it the time.
constexpr int deadly[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGILL,  SIGTRAP, SIGABRT, SIGBUS, SIGFPE,
                          SIGUSR1, SIGSEGV, SIGUSR2, SIGALRM, SIGTERM, SIGXCPU, SIGSYS};

bool is_deadly(int number) {
    for (const int one : deadly) {
        if (one == number) {
            return true;
        }
    }
    return false;
}

int real_sigaction(int number, const Action* action, Action* before) {
    using Function = int (*)(int, const Action*, Action*);
    static Function next = nullptr;
    if (next == nullptr) {
        next = reinterpret_cast<Function>(behind("sigaction"));
    }
    return next(number, action, before);
}

void end_by(int number) {
    char how[80];
    const char* const name = sigdescr_np(number);
    std::snprintf(how, sizeof how, "signal %d (%s)", number, name != nullptr ? name : "unknown");
    end_process(how);
    Action action{};
    action.sa_handler = SIG_DFL;
    real_sigaction(number, &action, nullptr);
    // Here, or when it is no longer blocked: when the handler returns.
    syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), number);
}

void on_signal(int number, siginfo_t* about, void*) {
    if (mine.inside == 0) {
        end_by(number);
    } else if (about->si_code > 0 && about->si_code != SI_KERNEL) { // a fault of the recorder's own
        Action action{};
        action.sa_handler = SIG_DFL;
        real_sigaction(number, &action, nullptr);
    } else {
        mine.signal = number; // when the recorder is done
    }
}

Action own_action() {
    Action action{};
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    return action;
}

bool is_own(const Action& action) {
    return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == on_signal;
}

} // namespace

void Inside::leave() {
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    mine.inside = 0;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (mine.signal != 0) [[unlikely]] {
        const int number = mine.signal;
        mine.signal = 0;
        end_by(number);
    }
}

void take_signals() {
    for (const int number : deadly) {
        Action before{};
        if (real_sigaction(number, nullptr, &before) == 0 && before.sa_handler == SIG_DFL &&
            (before.sa_flags & SA_SIGINFO) == 0) {
            const Action action = own_action();
            real_sigaction(number, &action, nullptr);
        }
    }
}

extern "C" {

// The program sees its own handlers only, and the system's where this library's are.
int sigaction(int number, const Action* action, Action* before) {
    if (!is_recording() || !is_deadly(number)) {
        return real_sigaction(number, action, before);
    }
    const bool is_default =
        action != nullptr && (action->sa_flags & SA_SIGINFO) == 0 && action->sa_handler == SIG_DFL;
    const Action own = own_action();
    const int result = real_sigaction(number, is_default ? &own : action, before);
    if (result == 0 && before != nullptr && is_own(*before)) {
        *before = Action{};
        before->sa_handler = SIG_DFL;
    }
    return result;
}

sighandler_t signal(int number, sighandler_t handler) {
    Action action{};
    Action before{};
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    return sigaction(number, &action, &before) == 0 ? before.sa_handler : SIG_ERR;
}

int execve(const char* path, char* const* arguments, char* const* environment) {
    using Function = int (*)(const char*, char* const*, char* const*);
    static const auto next = reinterpret_cast<Function>(behind("execve"));
    execute_begins();
    const int result = next(path, arguments, environment);
    const int error = errno;
    execute_failed();
    errno = error;
    return result;
}

int execv(const char* path, char* const* arguments) {
    return execve(path, arguments, environ);
}

int execvpe(const char* file, char* const* arguments, char* const* environment) {
    using Function = int (*)(const char*, char* const*, char* const*);
    static const auto next = reinterpret_cast<Function>(behind("execvpe"));
    execute_begins();
    const int result = next(file, arguments, environment);
    const int error = errno;
    execute_failed();
    errno = error;
    return result;
}

int execvp(const char* file, char* const* arguments) {
    return execvpe(file, arguments, environ);
}

int fexecve(int file, char* const* arguments, char* const* environment) {
    using Function = int (*)(int, char* const*, char* const*);
    static const auto next = reinterpret_cast<Function>(behind("fexecve"));
    execute_begins();
    const int result = next(file, arguments, environment);
    const int error = errno;
    execute_failed();
    errno = error;
    return result;
}

// The arguments, up to and with the null, in `words`; what is behind them is in `rest`.
#define WARREN_WORDS(words, first, rest)                                                           \
    va_list rest;                                                                                  \
    va_start(rest, first);                                                                         \
    std::size_t number = 1;                                                                        \
    for (const char* word = first; word != nullptr; word = va_arg(rest, const char*)) {            \
        ++number;                                                                                  \
    }                                                                                              \
    va_end(rest);                                                                                  \
    va_start(rest, first);                                                                         \
    auto** const words = static_cast<char**>(__builtin_alloca(number * sizeof(char*)));            \
    words[0] = const_cast<char*>(first);                                                           \
    for (std::size_t index = 1; index < number; ++index) {                                         \
        words[index] = va_arg(rest, char*);                                                        \
    }

int execl(const char* path, const char* first, ...) {
    WARREN_WORDS(words, first, rest)
    va_end(rest);
    return execve(path, words, environ);
}

int execlp(const char* file, const char* first, ...) {
    WARREN_WORDS(words, first, rest)
    va_end(rest);
    return execvpe(file, words, environ);
}

int execle(const char* path, const char* first, ...) {
    WARREN_WORDS(words, first, rest)
    char* const* const environment = va_arg(rest, char* const*);
    va_end(rest);
    return execve(path, words, environment);
}

// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)

[[noreturn]] void _exit(int status) {
    char how[24];
    std::snprintf(how, sizeof how, "exit %d", status & 0xff);
    end_process(how);
    while (true) {
        syscall(SYS_exit_group, status);
    }
}

[[noreturn]] void _Exit(int status) {
    _exit(status);
}

// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

} // extern "C"

} // namespace warren::locality::hooks
