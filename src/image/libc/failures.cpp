// Functions that end a program with a message: the C library's would end the process.
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <netdb.h>

#include "image/libc/functions.hpp"
#include "image/libc/state.hpp"

namespace warren::image::libc {

namespace {

std::FILE* errors() {
    return LibcState::current().error();
}

// The formatted text if any, the error's text if asked for, the line's end, as err and warn say it.
void say(const char* format, va_list arguments, int error) {
    std::FILE* stream = errors();
    std::fprintf(stream, "%s: ", LibcState::current().program_name());
    if (format != nullptr) {
        std::vfprintf(stream, format, arguments);
    }
    if (error != 0) {
        std::fprintf(stream, "%s%s", format != nullptr ? ": " : "", std::strerror(error));
    }
    std::fputc('\n', stream);
}

// The common part of error() and error_at_line().
void report(int status, int error, const char* format, va_list arguments) {
    LibcState& state = LibcState::current();
    std::FILE* stream = state.error();
    std::vfprintf(stream, format, arguments);
    ++state.value<unsigned>(Variable::error_message_count);
    if (error != 0) {
        std::fprintf(stream, ": %s", std::strerror(error));
    }
    std::fputc('\n', stream);
    std::fflush(stream);
    if (status != 0) {
        libc::exit(status);
    }
}

// The program's own function says its name, or we do.
void begin_report(const char* after_name) {
    LibcState& state = LibcState::current();
    std::fflush(state.output());
    const auto own = state.value<void (*)()>(Variable::error_print_progname);
    if (own != nullptr) {
        own();
    } else {
        std::fprintf(state.error(), "%s:%s", state.program_path(), after_name);
    }
}

} // namespace

void assert_perror_fail(int error, const char* file, unsigned line, const char* function) {
    std::fprintf(errors(), "%s: %s:%u: %s%sUnexpected error: %s.\n",
                 LibcState::current().program_name(), file, line,
                 function != nullptr ? function : "", function != nullptr ? ": " : "",
                 std::strerror(error));
    libc::abort();
}

void old_assert(const char* expression, const char* file, int line) {
    libc::assert_fail(expression, file, static_cast<unsigned>(line), nullptr);
}

void assert_fail(const char* expression, const char* file, unsigned line, const char* function) {
    std::fprintf(errors(), "%s: %s:%u: %s%sAssertion `%s' failed.\n",
                 LibcState::current().program_name(), file, line,
                 function != nullptr ? function : "", function != nullptr ? ": " : "", expression);
    libc::abort();
}

void stack_chk_fail() {
    std::fputs("*** stack smashing detected ***: terminated\n", errors());
    libc::abort();
}

void chk_fail() {
    std::fputs("*** buffer overflow detected ***: terminated\n", errors());
    libc::abort();
}

void err(int status, const char* format, ...) {
    const int error = errno;
    va_list arguments;
    va_start(arguments, format);
    say(format, arguments, error);
    va_end(arguments);
    libc::exit(status);
}

void errx(int status, const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    say(format, arguments, 0);
    va_end(arguments);
    libc::exit(status);
}

void warn(const char* format, ...) {
    const int error = errno;
    va_list arguments;
    va_start(arguments, format);
    say(format, arguments, error);
    va_end(arguments);
}

void warnx(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    say(format, arguments, 0);
    va_end(arguments);
}

void vwarn(const char* format, va_list arguments) {
    say(format, arguments, errno);
}

void vwarnx(const char* format, va_list arguments) {
    say(format, arguments, 0);
}

void verr(int status, const char* format, va_list arguments) {
    say(format, arguments, errno);
    libc::exit(status);
}

void verrx(int status, const char* format, va_list arguments) {
    say(format, arguments, 0);
    libc::exit(status);
}

void error(int status, int error, const char* format, ...) {
    begin_report(" ");
    va_list arguments;
    va_start(arguments, format);
    report(status, error, format, arguments);
    va_end(arguments);
}

void error_at_line(int status, int error, const char* file, unsigned line, const char* format,
                   ...) {
    LibcState& state = LibcState::current();
    if (state.value<int>(Variable::error_one_per_line) != 0) {
        ErrorPlace& last = state.last_error;
        const char* name = file != nullptr ? file : "";
        if (last.line == line && last.known && last.file == name) {
            return;
        }
        last = {name, line, true};
    }
    begin_report("");
    if (file != nullptr) {
        std::fprintf(state.error(), "%s:%u: ", file, line);
    } else {
        std::fputc(' ', state.error());
    }
    va_list arguments;
    va_start(arguments, format);
    report(status, error, format, arguments);
    va_end(arguments);
}

void herror(const char* text) {
    std::fprintf(errors(), "%s%s%s\n", text != nullptr ? text : "",
                 text != nullptr && *text != 0 ? ": " : "", hstrerror(h_errno));
}

void psignal(int signal, const char* text) {
    const char* name = sigdescr_np(signal);
    const char* begin = text != nullptr ? text : "";
    const char* colon = *begin != 0 ? ": " : "";
    if (name != nullptr) {
        std::fprintf(errors(), "%s%s%s\n", begin, colon, name);
    } else {
        std::fprintf(errors(), "%s%sUnknown signal %d\n", begin, colon, signal);
    }
}

} // namespace warren::image::libc
