// The log: whose name a message bears, and which are logged, is the image's. The C library is given
// both before each message, under a lock.
#include <cstdarg>
#include <mutex>
#include <syslog.h>

#include "image/libc/functions.hpp"
#include "image/libc/state.hpp"

namespace warren::image::libc {

namespace {

std::mutex& log_lock() {
    static std::mutex& only = *new std::mutex;
    return only;
}

void log(int priority, const char* format, va_list arguments) {
    const LibcState& state = LibcState::current();
    const std::lock_guard guard(log_lock());
    const char* name = state.log.name;
    ::openlog(name != nullptr ? name : LibcState::current().program_name(), state.log.options,
              state.log.facility);
    ::setlogmask(state.log.mask);
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
