// Whether a process that a rank has seen alive has ended.
//
// A process's number is not enough: a later process may have the same one. Nor is an access to its
// memory, which fails as soon as its first thread has ended, though others run. So this room reads
// /proc: a process with a running thread hasn't ended, and one that began after the rank had seen
// the process alive is another one. Thread rule: any thread.
#pragma once

#include <cstdint>

namespace warren::transport {

// The present time by the clock of processes' start times.
std::uint64_t process_clock_ns();

// `seen_ns`: when, by that clock, the process was certainly alive. Where the system doesn't show
// processes, one has ended when nobody has its number any more.
bool has_ended(int process, std::uint64_t seen_ns);

} // namespace warren::transport
