// Timers of real time (alarm, setitimer) of ranks that share a process: each has its own, which the
// kernel's timer of the process isn't.
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
// The rank's timer signals this thread, or one that waits for SIGALRM instead; a fibre's signals
// the process.
void note_timer_thread(std::uint32_t rank, pid_t thread);
// The fibre of whose timer a signal tells; no_rank: of none. In signal handlers.
std::uint32_t owner_of_timer(const siginfo_t& information);
// The rank's timer runs no more.
void end_timer(std::uint32_t rank);

// Replacements for the C library's functions; the second for waits of ranks that are threads.
std::span<const warren_image_binding> timer_bindings();
std::span<const warren_image_binding> timer_wait_bindings();

} // namespace warren::launch
