// Signals of ranks that share a process: each has its own actions, as a process has. What a rank
// sends itself comes to its handler, and so do signals of its timers, children and descriptors;
// what comes from outside the process comes to the handlers of all ranks that are threads. A fibre
// is no target for the kernel: such a signal comes to those that wait for it (fibre_signals.hpp),
// or else to the handler of one.
//
// Signals that a rank's own code raises are crash.hpp's. Thread rule: any thread.
#pragma once

#include <csignal>
#include <cstdint>
#include <span>

#include "warren/image.h"

namespace warren::launch {

// Once, before there are other threads; whether ranks are fibres.
void prepare_signals(std::uint32_t ranks, bool fibres);
// The calling thread is the rank's first, whose program begins with these signals blocked.
void note_thread(std::uint32_t rank, const sigset_t& blocked);

// system() of ranks: the first function returns the signals for which the command has the default.
struct CommandSignals {
    sigset_t (*begin)();
    void (*end)();
    // Starts a command, while no rank changes an action: it inherits what the process ignores.
    // False: that is not what the rank ignores, so the command has to be a fork that says it
    // itself.
    bool (*start)(int (*function)(void*), void* argument, int& error);
};
const CommandSignals& command_signals();

// The rank's program has ended: its timers are no more, nor a fibre's handlers.
void end_signals_of_fibre(std::uint32_t rank);
void end_signals_of_thread(std::uint32_t rank);

// Replacements for the C library's functions that set actions.
std::span<const warren_image_binding> signal_bindings();

} // namespace warren::launch
