// Signals of ranks that share a process: each has its own actions, as a process has. What a rank
// sends itself comes to its handler; what comes from outside the process comes to the handlers of
// all ranks that are threads. A fibre is no target for the kernel: such a signal comes to the
// handler of the rank that runs just then.
//
// Signals that a rank's own code raises are crash.hpp's. Thread rule: any thread.
#pragma once

#include <cstdint>
#include <span>

#include "warren/image.h"

namespace warren::launch {

// Once, before there are other threads; whether ranks are fibres.
void prepare_signals(std::uint32_t ranks, bool fibres);
// The calling thread is the rank's first.
void note_thread(std::uint32_t rank);

// Replacements for the C library's functions that set actions, send signals and set timers.
std::span<const warren_image_binding> signal_bindings();

} // namespace warren::launch
