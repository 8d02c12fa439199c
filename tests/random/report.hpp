// Where every thread of the program is in its random program, and how it ends when something is
// wrong: with the seed, the step, the operation, the communicator and what was expected. What is
// wrong ends the whole job: what follows a mistake says nothing.
#pragma once

#include <mpi.h>

#include <string>

namespace programs {

// One per thread, on its stack; a signal's handler reads it, so it holds no more than plain arrays.
struct Position {
    unsigned long seed = 0;
    int thread = 0;
    int threads = 1;
    int step = 0;
    int rank = 0;
    char operation[160] = "";
    char communicator[240] = "";

    void at(const std::string& what, const std::string& where = "");
};

extern thread_local Position* position; // of the calling thread

// Prints the position and the text, and aborts the job.
[[noreturn]] void fail(const char* format, ...) __attribute__((format(printf, 1, 2)));

void call_failed(int code, const char* call);

// Calls the MPI procedure and fails with its message if it does.
#define MUST(call)                                                                                 \
    do {                                                                                           \
        if (const int must_code = (call); must_code != MPI_SUCCESS) {                              \
            programs::call_failed(must_code, #call);                                               \
        }                                                                                          \
    } while (false)

// Makes crashes, and SIGALRM after the given number of seconds (0: never), say where they happened.
void report_signals(unsigned seconds);

} // namespace programs
