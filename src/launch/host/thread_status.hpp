// Reads what the kernel tells of the signals of a thread of this process.
// Thread rule: any thread, also in handlers of signals.
#pragma once

#include <cstdint>
#include <sys/types.h>

namespace warren::launch {

// The signals, bit n - 1 for signal n, that a line of the thread's status in /proc has;
// `otherwise`, if it can't be read.
std::uint64_t signals_of_thread(pid_t thread, const char* title, std::uint64_t otherwise);

} // namespace warren::launch
