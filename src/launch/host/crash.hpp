// Crashes: a signal that a rank's own code raises (a wrong address, abort, …) ends all ranks of the
// process, and mpiexec gets to know which rank is the cause. The process then ends as it would have
// without that, with a core dump where those are wanted.
//
// The ranks' own handlers (actions.hpp) come first: many languages' libraries have one that prints
// where the program was.
// Thread rule: watch_for_crashes once, before there are threads; the others any thread.
#pragma once

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <pthread.h>

namespace warren::launch {

// After Actions::prepare.
void watch_for_crashes(std::uint32_t ranks);

// Whether it is a signal that a rank's own code raises.
bool is_crash_signal(int number);
// Whether the action is what watches for crashes.
bool is_crash_handler(const struct sigaction& action);
// Takes the signal from now on, or has the process ignore it.
void watch_for_crash(int number, bool ignored);

// A rank's stack, with what lies below it to stop it; by its own thread.
struct Stack {
    const std::byte* guard;
    const std::byte* begin;
    pthread_t owner;
};
void note_stack(std::uint32_t rank, const Stack& stack);

// Gives the calling thread a stack for signal handlers, on which the overflow of its own can be
// told.
void make_signal_stack();

// Ends the process by a signal, in the name of the calling thread's rank.
[[noreturn]] void die_by(int signal);

} // namespace warren::launch
