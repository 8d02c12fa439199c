// Timers of ranks that share a process. Of alarm and setitimer's real time each rank has its own,
// which the kernel's timer of the process isn't; the signals of these and of other timers come to
// the rank that has set them.
//
// Thread rule: any thread.
#pragma once

#include <csignal>
#include <cstdint>
#include <span>
#include <sys/types.h>

#include "warren/image.h"

namespace warren::launch {

// Once, before there are other threads; whether ranks are fibres.
void prepare_timers(std::uint32_t ranks, bool fibres);
// The router, a thread that brings signals of timers, children and descriptors to ranks. Before
// there are ranks, since it is none's, and alarm() in a handler makes no thread; the caller has
// signals blocked. Returns an error number.
int start_router();
// Its kernel's number; 0: it hasn't begun. In signal handlers, and in children of fork.
pid_t router_of_signals();
// The router's signals: the C library's own for threads that it cancels, so that those of a program
// and from outside the process never come to the router.
inline constexpr int signal_of_router = __SIGRTMIN;
// Whether an alarm or a timer of a rank runs.
bool expects_timers();
// The rank has ended: its timers signal nobody any more.
void end_timers(std::uint32_t rank);
bool has_ended(std::uint32_t rank);

// Replacements for the C library's functions.
std::span<const warren_image_binding> timer_bindings();

} // namespace warren::launch
