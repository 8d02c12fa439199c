// The answer to "why does my program hang?": what every rank of a job waits for.
//
// It is read from the node segment, where a rank that waits for long has written its reason, and
// from /proc; the ranks are not disturbed. Ranks that do the same share a line.
// Thread rule: any process that can map the segment; the fields are read as they come.
#pragma once

#include <cstdint>
#include <string>
#include <sys/types.h>
#include <vector>

#include "mpi/job/segment.hpp"

namespace warren::launch {

// A rank as the reporter sees it from outside.
struct ObservedRank {
    pid_t pid = 0;      // 0: unknown
    pid_t thread = 0;   // 0: the rank is all of its process, or not known
    bool ended = false; // the process has been waited for, or the thread's program
};

// One line per group of ranks, each with its end.
std::string report_states(const node::Segment& segment, const std::vector<ObservedRank>& ranks,
                          std::uint64_t now_ns);

// Likewise of a job of which nothing is known but the segment.
std::string report_states_from_outside(const node::Segment& segment);

// Describes what a rank does, without the time: "waits in MPI_Recv for a message from rank 1 with
// tag 5 on MPI_COMM_WORLD (posted 1, unexpected 0)".
std::string describe(const node::RankSlot& slot);

} // namespace warren::launch
