// Ends of a process that its recording would not survive: executing another program, and leaving
// without the functions of exit. Signals are in signals.cpp. dlclose is followed here, too, because
// an unloaded library would have no name in the end.

#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <sys/syscall.h>
#include <unistd.h>

#include "analyser/hooks/hooks.hpp"

namespace warren::locality::hooks {

namespace {

int quick_status = 0;

void at_quick_exit_last() {
    char how[24];
    std::snprintf(how, sizeof how, "exit %d", quick_status & 0xff);
    end_process(how);
}

// Executes by a function of the C library, which returns only if it fails.
template <typename Function, typename... Arguments>
int execute(Function function, Arguments... arguments) {
    execute_begins();
    const int result = function(arguments...);
    const int error = errno;
    execute_failed();
    errno = error;
    return result;
}

} // namespace

void take_quick_exits() {
    at_quick_exit(at_quick_exit_last);
}

extern "C" {

int execve(const char* path, char* const* arguments, char* const* environment) {
    using Function = int (*)(const char*, char* const*, char* const*);
    static const auto next = reinterpret_cast<Function>(behind("execve"));
    return execute(next, path, arguments, environment);
}

int execv(const char* path, char* const* arguments) {
    return execve(path, arguments, environ);
}

int execvpe(const char* file, char* const* arguments, char* const* environment) {
    using Function = int (*)(const char*, char* const*, char* const*);
    static const auto next = reinterpret_cast<Function>(behind("execvpe"));
    return execute(next, file, arguments, environment);
}

int execvp(const char* file, char* const* arguments) {
    return execvpe(file, arguments, environ);
}

int fexecve(int file, char* const* arguments, char* const* environment) {
    using Function = int (*)(int, char* const*, char* const*);
    static const auto next = reinterpret_cast<Function>(behind("fexecve"));
    return execute(next, file, arguments, environment);
}

int execveat(int folder, const char* path, char* const* arguments, char* const* environment,
             int flags) {
    using Function = int (*)(int, const char*, char* const*, char* const*, int);
    static const auto next = reinterpret_cast<Function>(behind("execveat"));
    return execute(next, folder, path, arguments, environment, flags);
}

// Collects the arguments, with the null at their end, in `words`. Later arguments are in `rest`.
// NOLINTBEGIN(bugprone-macro-parentheses): it declares them
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
// NOLINTEND(bugprone-macro-parentheses)

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

void _exit(int status) {
    char how[24];
    std::snprintf(how, sizeof how, "exit %d", status & 0xff);
    end_process(how);
    while (true) {
        syscall(SYS_exit_group, status);
    }
}

void _Exit(int status) {
    _exit(status);
}

// The functions of at_quick_exit run first. The C library then leaves by its own _exit.
void quick_exit(int status) {
    using Function = void (*)(int);
    static const auto next = reinterpret_cast<Function>(behind("quick_exit"));
    quick_status = status;
    next(status);
    __builtin_unreachable();
}

int dlclose(void* handle) {
    using Function = int (*)(void*);
    static const auto next = reinterpret_cast<Function>(behind("dlclose"));
    const bool noted = is_recording();
    if (noted) {
        const Inside inside;
        if (inside && is_own_process()) {
            note_modules(); // what it has loaded since the last time
        }
    }
    const int result = next(handle);
    if (noted) {
        const Inside inside;
        if (inside && is_own_process()) {
            note_modules();
        }
    }
    return result;
}

// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

} // extern "C"

} // namespace warren::locality::hooks
