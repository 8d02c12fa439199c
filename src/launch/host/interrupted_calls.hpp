// System calls that a signal's handler has interrupted. The kernel restarts them or not by the
// process's action, and the process has one for all ranks (signals.hpp): it asks for restarts. A
// rank that wants none (no SA_RESTART) has its call ended here.
//
// Thread rule: in a signal handler, about the thread that it has interrupted.
#pragma once

#include <cstdint>

namespace warren::launch {

// A call that would restart when the handler returns fails with EINTR instead. `context` is the
// handler's third argument. Calls that can't wait, and those that the kernel has ended, stay as
// they are.
void end_interrupted_call(void* context);
// How often the calling thread has called that: whether a handler has ended a wait of several
// calls.
std::uint32_t interruptions_of_thread();

} // namespace warren::launch
