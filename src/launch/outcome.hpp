// Outcome: what the end of a rank's process means for the job.
//
// A rank that has not called MPI_Finalize may be waited for by others, so its end ends the job; a
// program that never calls MPI at all may end as it likes.
// Thread rule: plain functions.
#pragma once

#include <cstdint>
#include <string>
#include <sys/types.h>

#include "node/segment.hpp"

namespace warren::launch {

struct EndedRank {
    std::uint32_t rank = 0;
    pid_t pid = 0;
    int wait_status = 0; // as of waitpid
    node::RankState state = node::RankState::not_started;
    std::string program;
    bool others_initialised = false; // another rank is between MPI_Init and MPI_Finalize
    int forwarded_signal = 0;        // that mpiexec has passed on to all ranks
};

enum class Verdict : std::uint8_t {
    fine,
    failed,  // the job's exit code is decided, but the other ranks can go on
    ends_job // the other ranks may wait for this one for ever
};

struct Outcome {
    Verdict verdict = Verdict::fine;
    int exit_code = 0;
    std::string message; // one line without its end; empty when fine
};

Outcome judge(const EndedRank& ended);

// The end that a rank has recorded in the segment: MPI_Abort, a fatal error.
Outcome recorded_end(const node::SegmentHeader& header, const std::string& program);

// "SIGSEGV (Segmentation fault)"
std::string signal_name(int number);

} // namespace warren::launch
