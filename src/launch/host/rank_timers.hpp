// Timers of ranks that share a process. Of alarm and setitimer's real time each rank has its own,
// which the kernel's timer of the process isn't; the signals of these and of other timers come to
// the rank that has set them.
//
// Thread rule: any thread.
#pragma once

#include <csignal>
#include <cstdint>
#include <span>

#include "warren/image.h"

namespace warren::launch {

// Once, before there are other threads; whether ranks are fibres.
void prepare_timers(std::uint32_t ranks, bool fibres);
// The thread that brings signals of timers to ranks. Before there are ranks, since it is none's,
// and alarm() in a handler makes no thread; the caller has signals blocked. Returns an error
// number.
int start_router();
// Whether an alarm or a timer of a rank runs.
bool expects_timers();
// The rank has ended: its timers signal nobody any more.
void end_timers(std::uint32_t rank);
bool has_ended(std::uint32_t rank);

// Replacements for the C library's functions.
std::span<const warren_image_binding> timer_bindings();

} // namespace warren::launch
