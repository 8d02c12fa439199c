// The jobs that run on this node, found from outside by /proc: their mpiexecs, segments and ranks,
// and the worlds that their ranks have spawned.
//
// Thread rule: any thread; what was found may have ended meanwhile.
#pragma once

#include <string>
#include <sys/types.h>
#include <vector>

#include "mpi/job/segment.hpp"

namespace warren::launch {

// The system knows every mpiexec by this name.
inline constexpr const char* mpiexec_name = "mpiexec";

// An mpiexec whose job the user may look into.
struct RunningJob {
    pid_t mpiexec;
    pid_t spawner; // the mpiexec of the job whose ranks have spawned it; 0: it was started
};

// In the order of their numbers.
std::vector<RunningJob> running_jobs();

// This mpiexec, if its job runs, and those of all worlds that come from it, each behind its
// spawner.
std::vector<pid_t> with_spawned(const std::vector<RunningJob>& jobs, pid_t mpiexec);

// The node segment that a process has open, as a descriptor of this one; -1: none.
int open_segment_of(pid_t process);

// The system's task number of each rank: its process, or the thread that has its name. 0: the rank
// has not started or has ended.
std::vector<pid_t> tasks_of_ranks(const node::Segment& segment);

// The first line of a file, without its end; empty: there is none.
std::string first_line(const std::string& path);

} // namespace warren::launch
