// Blocked and pending signals of ranks that are fibres, and waits for signals: the kernel's are a
// worker's, which runs other ranks too.
//
// The kernel delivers what a rank has blocked, and hold_back keeps it until the rank unblocks it or
// waits for it. A rank that waits gets signals in its own fibre. Thread rule: any thread, signal
// handlers included.
#pragma once

#include <csignal>
#include <cstdint>
#include <span>

#include "warren/image.h"

namespace warren::launch {

// Once, before there are other threads. `deliver` acts on a signal in the calling thread's rank;
// `watch` has the dispatcher get a signal of which no rank has changed the action.
struct SignalFunctions {
    void (*deliver)(std::uint32_t rank, siginfo_t& information);
    void (*watch)(int number);
};
void prepare_fibre_signals(std::uint32_t ranks, const SignalFunctions& functions);

// Keeps a signal that has come for the rank, if that has it blocked or waits. False: act on it now.
bool hold_back(std::uint32_t rank, const siginfo_t& information);
// The rank ignores the signal now: it is no longer pending.
void discard_signal(std::uint32_t rank, int number);
// Whether the rank waits for signals and would get this one.
bool waits_for_signal(std::uint32_t rank, int number);

// Whether the rank has the signal blocked.
bool blocks_signal(std::uint32_t rank, int number);

// Those of the calling fibre.
sigset_t signals_blocked_by_caller();

// Replacements for the C library's functions.
std::span<const warren_image_binding> fibre_signal_bindings();

} // namespace warren::launch
