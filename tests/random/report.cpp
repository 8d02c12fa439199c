#include "report.hpp"

#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <unistd.h>

namespace programs {

thread_local Position* position = nullptr;

void Position::at(const std::string& what, const std::string& where) {
    std::snprintf(operation, sizeof operation, "%s", what.c_str());
    std::snprintf(communicator, sizeof communicator, "%s", where.c_str());
}

namespace {

int describe(char* text, std::size_t room) {
    if (position == nullptr) {
        return std::snprintf(text, room, "outside of random programs");
    }
    const Position& p = *position;
    return std::snprintf(text, room, "seed %lu, thread %d of %d, step %d, world rank %d: %s%s%s",
                         p.seed, p.thread, p.threads, p.step, p.rank, p.operation,
                         p.communicator[0] != 0 ? " on " : "", p.communicator);
}

void on_signal(int number) {
    char text[700];
    char where[600];
    describe(where, sizeof where);
    const int length =
        std::snprintf(text, sizeof text, "random programs: signal %d at %s\n", number, where);
    if (write(STDERR_FILENO, text, static_cast<std::size_t>(length)) < 0) {
        // nothing is left to do
    }
    std::signal(number, SIG_DFL);
    raise(number);
}

} // namespace

void fail(const char* format, ...) {
    char where[600];
    char what[1200];
    describe(where, sizeof where);
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    std::fprintf(stderr, "random programs: %s: %s\n", where, what);
    if (position != nullptr) {
        std::fprintf(stderr, "again: --seed %lu --programs 1 --steps %d --threads %d\n",
                     position->seed, position->step + 1, position->threads);
    }
    std::fflush(stderr);
    MPI_Abort(MPI_COMM_WORLD, 1);
    _exit(1);
}

void call_failed(int code, const char* call) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(code, text, &length);
    fail("%s: %s", call, text);
}

void report_signals(unsigned seconds) {
    for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGALRM, SIGTERM}) {
        std::signal(number, on_signal);
    }
    alarm(seconds);
}

} // namespace programs
