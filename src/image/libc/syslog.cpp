// The log: whose name a message bears, and which are logged, is the image's. The C library is given
// both before each message, under a lock.
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <syslog.h>
#include <unistd.h>

#include "image/libc/functions.hpp"
#include "image/libc/state.hpp"

namespace warren::image::libc {

namespace {

std::mutex& log_lock() {
    static std::mutex& only = *new std::mutex;
    return only;
}

// The C library would write to the process's errors.
void show(const char* name, LibcState& state, const char* format, va_list arguments, int error) {
    char text[1024];
    va_list copy;
    va_copy(copy, arguments);
    errno = error;
    std::vsnprintf(text, sizeof text, format, copy);
    va_end(copy);
    char process[16] = "";
    if ((state.log.options & LOG_PID) != 0) {
        std::snprintf(process, sizeof process, "[%d]", static_cast<int>(getpid()));
    }
    const std::size_t bytes = std::strlen(text);
    dprintf(state.error_descriptor(), "%s%s: %s%s", name, process, text,
            bytes > 0 && text[bytes - 1] == '\n' ? "" : "\n");
}

void log(int priority, const char* format, va_list arguments) {
    LibcState& state = LibcState::current();
    const int error = errno; // a message may name it (%m)
    const char* name = state.log.name != nullptr ? state.log.name : state.program_name();
    if ((state.log.options & LOG_PERROR) != 0 &&
        (state.log.mask & LOG_MASK(LOG_PRI(priority))) != 0) {
        show(name, state, format, arguments, error);
    }
    const std::lock_guard guard(log_lock());
    ::openlog(name, state.log.options & ~LOG_PERROR, state.log.facility);
    ::setlogmask(state.log.mask);
    errno = error;
    ::vsyslog(priority, format, arguments);
}

} // namespace

void openlog(const char* name, int options, int facility) {
    LogSettings& log = LibcState::current().log;
    log = {name != nullptr ? name : log.name, options, facility, log.mask};
}

void closelog() {
    LogSettings& log = LibcState::current().log;
    log = {nullptr, 0, LOG_USER, log.mask};
}

int setlogmask(int mask) {
    LogSettings& log = LibcState::current().log;
    const int former = log.mask;
    log.mask = mask != 0 ? mask : former;
    return former;
}

void syslog(int priority, const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    log(priority, format, arguments);
    va_end(arguments);
}

void syslog_chk(int priority, int, const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    log(priority, format, arguments);
    va_end(arguments);
}

void vsyslog(int priority, const char* format, va_list arguments) {
    log(priority, format, arguments);
}

void vsyslog_chk(int priority, int, const char* format, va_list arguments) {
    log(priority, format, arguments);
}

} // namespace warren::image::libc
