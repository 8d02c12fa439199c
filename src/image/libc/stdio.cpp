// Functions that use the standard streams without naming them, and those that open streams: the
// image's streams, and the end of a program flushes what is open.
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <cwchar>

#include "image/libc/functions.hpp"
#include "image/libc/state.hpp"

namespace warren::image::inside {

namespace {

std::FILE* output() {
    return LibcState::current().output();
}

std::FILE* input() {
    return LibcState::current().input();
}

std::FILE* keep(std::FILE* stream) {
    if (stream != nullptr) {
        LibcState& state = LibcState::current();
        const std::lock_guard guard(state.streams_lock);
        state.streams.insert(stream);
    }
    return stream;
}

void forget(std::FILE* stream) {
    LibcState& state = LibcState::current();
    const std::lock_guard guard(state.streams_lock);
    state.streams.erase(stream);
}

} // namespace

int print(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int count = std::vfprintf(output(), format, arguments);
    va_end(arguments);
    return count;
}

int print_checked(int, const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int count = std::vfprintf(output(), format, arguments);
    va_end(arguments);
    return count;
}

int print_list(const char* format, va_list arguments) {
    return std::vfprintf(output(), format, arguments);
}

int print_list_checked(int, const char* format, va_list arguments) {
    return std::vfprintf(output(), format, arguments);
}

int print_wide(const wchar_t* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int count = std::vfwprintf(output(), format, arguments);
    va_end(arguments);
    return count;
}

int put_line(const char* text) {
    std::FILE* stream = output();
    flockfile(stream); // the line and its end together
    const int outcome = std::fputs(text, stream) < 0 ? EOF : putc_unlocked('\n', stream);
    funlockfile(stream);
    return outcome;
}

int put_character(int character) {
    return std::fputc(character, output());
}

int put_wide_character(wchar_t character) {
    return static_cast<int>(std::fputwc(character, output()));
}

void print_error(const char* text) {
    const int error = errno;
    std::fprintf(LibcState::current().error(), "%s%s%s\n", text != nullptr ? text : "",
                 text != nullptr && *text != 0 ? ": " : "", std::strerror(error));
}

int get_character() {
    return std::fgetc(input());
}

int scan(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int count = std::vfscanf(input(), format, arguments);
    va_end(arguments);
    return count;
}

int scan_list(const char* format, va_list arguments) {
    return std::vfscanf(input(), format, arguments);
}

std::FILE* open_stream(const char* path, const char* mode) {
    return keep(std::fopen(path, mode));
}

std::FILE* open_descriptor(int descriptor, const char* mode) {
    return keep(fdopen(descriptor, mode));
}

std::FILE* open_temporary() {
    return keep(std::tmpfile());
}

int close_stream(std::FILE* stream) {
    if (LibcState::current().is_standard(stream)) {
        return LibcState::close_standard(stream);
    }
    forget(stream);
    return std::fclose(stream);
}

// The C library's would take the buffers of all images' streams.
int close_all_streams() {
    LibcState::current().flush_streams();
    return 0;
}

} // namespace warren::image::inside
