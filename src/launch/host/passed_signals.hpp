// Signals that one thread of the process passes on to another: the kernel has given them to the
// wrong one, or a call of that thread has to end.
//
// Thread rule: any thread, also in handlers of signals.
#pragma once

#include <csignal>
#include <cstdint>
#include <sys/types.h>

namespace warren::launch {

enum class Passed : std::uint8_t {
    none,
    to_rank,   // it is for the thread's rank
    to_worker, // of the fibre whose handler is to run
    to_wake,   // only interrupts a call of the thread
    to_fibre,  // as to_worker, from this process: the sender's number is that of the fibre's rank
    to_look    // one of its fibre's is among the fibre's own (fibre_signals.hpp)
};

// False, and errno: the thread has ended, or too many signals are queued (EAGAIN).
bool pass_on(pid_t thread, Passed why, const siginfo_t& information);
// Why a signal has been passed on. It is as it was then.
Passed take_passed(siginfo_t& information);

// The kernel's number of the calling thread.
pid_t own_thread();

} // namespace warren::launch
