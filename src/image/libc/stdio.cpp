// Functions that use the standard streams without naming them, those that open and close streams,
// and those that concern all streams: the image's own. The C library's would wait for a stream in
// which another image reads.
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <cwchar>
#include <stdio_ext.h>
#include <unistd.h>

#include "image/libc/functions.hpp"
#include "image/libc/own_path.hpp"
#include "image/libc/state.hpp"

namespace warren::image::libc {

namespace {

std::FILE* output() {
    return LibcState::current().output();
}

// The standard input, about to be read.
std::FILE* input() {
    std::FILE* stream = LibcState::current().input();
    before_reading(stream);
    return stream;
}

std::FILE* keep(std::FILE* stream) {
    if (stream != nullptr) {
        LibcState& state = LibcState::current();
        const std::lock_guard guard(state.streams_lock);
        state.streams.push_back(stream);
    }
    return stream;
}

void forget(std::FILE* stream) {
    LibcState& state = LibcState::current();
    const std::lock_guard guard(state.streams_lock);
    std::erase(state.streams, stream);
    state.memory_streams.erase(stream);
}

std::FILE* keep_memory_stream(std::FILE* stream) {
    if (stream != nullptr) {
        LibcState& state = LibcState::current();
        const std::lock_guard guard(state.streams_lock);
        state.streams.push_back(stream);
        state.memory_streams.insert(stream);
    }
    return stream;
}

} // namespace

int printf(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int count = std::vfprintf(output(), format, arguments);
    va_end(arguments);
    return count;
}

int printf_chk(int, const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int count = std::vfprintf(output(), format, arguments);
    va_end(arguments);
    return count;
}

int vprintf(const char* format, va_list arguments) {
    return std::vfprintf(output(), format, arguments);
}

int vprintf_chk(int, const char* format, va_list arguments) {
    return std::vfprintf(output(), format, arguments);
}

int wprintf(const wchar_t* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int count = std::vfwprintf(output(), format, arguments);
    va_end(arguments);
    return count;
}

int wprintf_chk(int, const wchar_t* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int count = std::vfwprintf(output(), format, arguments);
    va_end(arguments);
    return count;
}

int vwprintf(const wchar_t* format, va_list arguments) {
    return std::vfwprintf(output(), format, arguments);
}

int vwprintf_chk(int, const wchar_t* format, va_list arguments) {
    return std::vfwprintf(output(), format, arguments);
}

int puts(const char* text) {
    std::FILE* stream = output();
    flockfile(stream); // the line and its end together
    const int outcome = std::fputs(text, stream) < 0 ? EOF : putc_unlocked('\n', stream);
    funlockfile(stream);
    return outcome;
}

int putchar(int character) {
    return std::fputc(character, output());
}

std::wint_t putwchar(wchar_t character) {
    return std::fputwc(character, output());
}

void perror(const char* text) {
    const int error = errno;
    std::fprintf(LibcState::current().error(), "%s%s%s\n", text != nullptr ? text : "",
                 text != nullptr && *text != 0 ? ": " : "", std::strerror(error));
}

int getchar() {
    return std::fgetc(input());
}

std::wint_t getwchar() {
    return std::fgetwc(input());
}

// Without the line's end, however long the line is.
char* gets(char* text) {
    std::FILE* stream = input();
    flockfile(stream);
    std::size_t bytes = 0;
    int character = getc_unlocked(stream);
    const bool ended = character == EOF;
    for (; character != EOF && character != '\n'; character = getc_unlocked(stream)) {
        text[bytes++] = static_cast<char>(character);
    }
    const bool failed = ferror_unlocked(stream) != 0;
    funlockfile(stream);
    if (ended || failed) {
        return nullptr;
    }
    text[bytes] = 0;
    return text;
}

char* gets_chk(char* text, std::size_t) {
    return libc::gets(text);
}

int scanf(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int count = std::vfscanf(input(), format, arguments);
    va_end(arguments);
    return count;
}

int vscanf(const char* format, va_list arguments) {
    return std::vfscanf(input(), format, arguments);
}

int wscanf(const wchar_t* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int count = std::vfwscanf(input(), format, arguments);
    va_end(arguments);
    return count;
}

int vwscanf(const wchar_t* format, va_list arguments) {
    return std::vfwscanf(input(), format, arguments);
}

std::FILE* keep_stream(std::FILE* stream) {
    return keep(stream);
}

std::FILE* fdopen(int descriptor, const char* mode) {
    return keep(::fdopen(descriptor, mode));
}

std::FILE* tmpfile() {
    return keep(std::tmpfile());
}

// The C library closes the stream's file before it opens the other.
std::FILE* freopen(const char* path, const char* mode, std::FILE* stream) {
    const int descriptor = stream != nullptr ? fileno(stream) : -1;
    if (descriptor >= 0) {
        before_closing(descriptor);
    }
    if (path == nullptr && descriptor >= 0) { // the C library looks into /proc/self
        char same[48];
        std::snprintf(same, sizeof same, "/proc/thread-self/fd/%d", descriptor);
        return std::freopen(same, mode, stream);
    }
    return std::freopen(OwnPath(path).get(), mode, stream);
}

std::FILE* fmemopen(void* memory, std::size_t bytes, const char* mode) {
    return keep(::fmemopen(memory, bytes, mode));
}

std::FILE* open_memstream(char** text, std::size_t* bytes) {
    return keep_memory_stream(::open_memstream(text, bytes));
}

std::FILE* open_wmemstream(wchar_t** text, std::size_t* count) {
    return keep_memory_stream(::open_wmemstream(text, count));
}

std::FILE* fopencookie(void* cookie, const char* mode, cookie_io_functions_t functions) {
    return keep(::fopencookie(cookie, mode, functions));
}

// The C library's waits for the stream with the list of all streams in its hand.
int fclose(std::FILE* stream) {
    if (LibcState::current().is_standard(stream)) {
        return LibcState::close_standard(stream);
    }
    forget(stream);
    before_closing(fileno(stream));
    flockfile(stream);
    return std::fclose(stream);
}

int fflush(std::FILE* stream) {
    return stream != nullptr ? std::fflush(stream)
                             : LibcState::current().flush_streams(WhichStreams::all);
}

int fflush_unlocked(std::FILE* stream) {
    return stream != nullptr ? ::fflush_unlocked(stream) : libc::fflush(nullptr);
}

int flush_all() {
    return libc::fflush(nullptr);
}

void flushlbf() {
    LibcState::current().flush_streams(WhichStreams::line_buffered);
}

int fcloseall() {
    return LibcState::current().unbuffer_streams();
}

// ---- Reading

// Before the C library asks the system for what an unbuffered or line-buffered stream is to read,
// it writes the standard output, if that is line-buffered: but the process's.
void before_reading(std::FILE* stream) {
    const bool has_more = stream->_IO_read_ptr < stream->_IO_read_end;
    if (has_more || (fwide(stream, 0) > 0 && __fbufsize(stream) > 1)) {
        return;
    }
    const std::size_t buffered = __fbufsize(stream); // 0: the C library has yet to choose
    const bool at_once =
        buffered == 1 || __flbf(stream) != 0 || (buffered == 0 && isatty(fileno(stream)) == 1);
    std::FILE* shown = at_once ? LibcState::current().output() : nullptr;
    if (shown != nullptr && shown != stream && __flbf(shown) != 0) {
        flockfile(shown);
        if (__fpending(shown) > 0) {
            ::fflush_unlocked(shown);
        }
        funlockfile(shown);
    }
}

int fscanf(std::FILE* stream, const char* format, ...) {
    before_reading(stream);
    va_list arguments;
    va_start(arguments, format);
    const int count = std::vfscanf(stream, format, arguments);
    va_end(arguments);
    return count;
}

int fwscanf(std::FILE* stream, const wchar_t* format, ...) {
    before_reading(stream);
    va_list arguments;
    va_start(arguments, format);
    const int count = std::vfwscanf(stream, format, arguments);
    va_end(arguments);
    return count;
}

char* fgets_chk(char* text, std::size_t room, int bytes, std::FILE* stream) {
    if (bytes >= 0 && static_cast<std::size_t>(bytes) > room) {
        libc::chk_fail();
    }
    return Reader<::fgets>::call(text, bytes, stream);
}

wchar_t* fgetws_chk(wchar_t* text, std::size_t room, int count, std::FILE* stream) {
    if (count >= 0 && static_cast<std::size_t>(count) > room) {
        libc::chk_fail();
    }
    return Reader<::fgetws>::call(text, count, stream);
}

std::size_t fread_chk(void* data, std::size_t room, std::size_t bytes, std::size_t count,
                      std::FILE* stream) {
    std::size_t all = 0;
    if (__builtin_mul_overflow(bytes, count, &all) || all > room) {
        libc::chk_fail();
    }
    return Reader<::fread>::call(data, bytes, count, stream);
}

} // namespace warren::image::libc
