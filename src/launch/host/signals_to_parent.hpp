// Signals that children of fork send to the process, by which they mean their rank: the kernel
// would give them to any rank, and keeps one of each standard signal for all. They go to the router
// (rank_timers.hpp), which brings them to the rank.
//
// Thread rule: prepare_signals_to_parent before there are other threads; the next in a child of
// fork, or of such a child, also in signal handlers; the others in the router.
#pragma once

#include <csignal>
#include <cstdint>
#include <sys/types.h>

namespace warren::launch {

void prepare_signals_to_parent();

// kill() or sigqueue(): the rank has the signal when this returns. -1, and errno.
int send_to_parent(std::uint32_t rank, const siginfo_t& information);

// Whether it is such a signal: for this rank, with this number and code.
bool take_from_child(siginfo_t& information, std::uint32_t& rank);
// The rank has a signal of this process.
void note_brought(pid_t sender);

} // namespace warren::launch
