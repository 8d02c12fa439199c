// Crashes: a signal that ends a process ends all ranks of this one, and mpiexec gets to know which
// rank is the cause. The process then ends as it would have without that, with a core dump where
// those are wanted.
//
// A program's own handler for such a signal takes the place of ours, for all ranks. Thread rule:
// watch_for_crashes once, before there are threads; the others any thread.
#pragma once

namespace warren::launch {

void watch_for_crashes();

// Gives the calling thread a stack for signal handlers, on which the overflow of its own can be
// told.
void make_signal_stack();

// Ends the process by a signal, in the name of the calling thread's rank.
[[noreturn]] void die_by(int signal);

} // namespace warren::launch
