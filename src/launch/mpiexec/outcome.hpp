// Outcome: what the end of a rank, or of several that are one process, means for the job.
//
// A rank that has not called MPI_Finalize may be waited for by others, so its end ends the job; a
// program that never calls MPI at all may end as it likes.
// Thread rule: plain functions.
#pragma once

#include <cstdint>
#include <string>
#include <sys/types.h>
#include <vector>

#include "mpi/job/segment.hpp"

namespace warren::launch {

// "0-3,8"
std::string describe_ranks(const std::vector<std::uint32_t>& ranks);

struct EndedRanks {
    std::vector<std::uint32_t> ranks; // that one end concerns, ascending
    pid_t pid = 0;
    int wait_status = 0;                                  // as of waitpid
    node::RankStage state = node::RankStage::not_started; // of all of them
    std::string program;
    bool others_initialised = false; // another rank is between MPI_Init and MPI_Finalize
    int forwarded_signal = 0;        // that mpiexec has passed on to all ranks
    bool overflowed = false;         // the signal came of a stack that was full
};

// Picks, among ranks that have ended together with their process, those whose end matters most,
// with their state. When a signal ended them: all. Otherwise: those that others may wait for, if
// there are any.
EndedRanks gravest(const std::vector<std::uint32_t>& ranks, const node::Segment& segment,
                   bool by_signal);

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

Outcome judge(const EndedRanks& ended);

// The end that a rank of the world has recorded in the segment: MPI_Abort, a fatal error.
Outcome recorded_end(const node::SegmentHeader& header, std::uint32_t rank,
                     const std::string& name);

// "SIGSEGV (Segmentation fault)"
std::string signal_name(int number);

} // namespace warren::launch
