// Functions that end a program with a message: the C library's would end the process.
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "image/libc/functions.hpp"
#include "image/libc/state.hpp"

namespace warren::image::inside {

namespace {

void begin_line() {
    std::fprintf(LibcState::current().error(), "%s: ", LibcState::current().program_name());
}

// The formatted text if any, the error's text if asked for, the line's end.
void say(const char* format, va_list arguments, int error) {
    std::FILE* stream = LibcState::current().error();
    begin_line();
    if (format != nullptr) {
        std::vfprintf(stream, format, arguments);
    }
    if (error != 0) {
        std::fprintf(stream, "%s%s", format != nullptr ? ": " : "", std::strerror(error));
    }
    std::fputc('\n', stream);
}

} // namespace

void assertion_failed(const char* expression, const char* file, unsigned line,
                      const char* function) {
    std::fprintf(LibcState::current().error(), "%s: %s:%u: %s: Assertion `%s' failed.\n",
                 LibcState::current().program_name(), file, line,
                 function != nullptr ? function : "?", expression);
    inside::abort();
}

void stack_smashed() {
    std::fputs("*** stack smashing detected ***: terminated\n", LibcState::current().error());
    inside::abort();
}

void overflow_detected() {
    std::fputs("*** buffer overflow detected ***: terminated\n", LibcState::current().error());
    inside::abort();
}

void fail_with_error(int status, const char* format, ...) {
    const int error = errno;
    va_list arguments;
    va_start(arguments, format);
    say(format, arguments, error);
    va_end(arguments);
    inside::exit(status);
}

void fail_without_error(int status, const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    say(format, arguments, 0);
    va_end(arguments);
    inside::exit(status);
}

void warn_with_error(const char* format, ...) {
    const int error = errno;
    va_list arguments;
    va_start(arguments, format);
    say(format, arguments, error);
    va_end(arguments);
}

void warn_without_error(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    say(format, arguments, 0);
    va_end(arguments);
}

void report_error(int status, int error, const char* format, ...) {
    std::fflush(LibcState::current().output());
    va_list arguments;
    va_start(arguments, format);
    say(format, arguments, error);
    va_end(arguments);
    if (status != 0) {
        inside::exit(status);
    }
}

} // namespace warren::image::inside
