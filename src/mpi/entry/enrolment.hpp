// Enrolment: how a rank finds its job.
//
// mpiexec hands each process the node segment, a lifeline and the number of its first rank
// (docs/ARCHITECTURE.md, "Life of a rank"). The ranks of one process share one mapping of the
// segment and one lifeline, which stay until the last of them has left. A program that was started
// alone makes a segment of its own. Thread rule: any thread; the process's part is under a mutex.
#pragma once

#include <memory>

#include "base/error.hpp"
#include "mpi/job/bootstrap.hpp"
#include "mpi/job/segment.hpp"
#include "mpi/transport/fabric/network.hpp"

namespace warren::mpi {

struct RankState;

struct Enrolment {
    node::Segment segment;
    std::unique_ptr<node::Bootstrap> bootstrap;
    transport::fabric::Network* network = nullptr; // null: the job has one node
};

// Enrols the calling thread's rank. An error says what is wrong with the environment.
Error enrol(const RankState& rank_state, Enrolment& made);

// A rank that has enrolled will not come back. By its thread.
void leave_job(const RankState& rank_state);

} // namespace warren::mpi
