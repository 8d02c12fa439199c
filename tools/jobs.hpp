// Finds the jobs that run on this node, from another process. Thread rule: any thread; a job that
// was found may have ended meanwhile.
#pragma once

#include <string>
#include <vector>

#include "mpi/job/segment.hpp"

namespace warren::tools {

// The first line of a file, without its end; empty: there is none.
std::string first_line(const std::string& path);

// Maps the segment of a job. `pid` is its mpiexec's or a rank's; if it is empty, the only running
// job is taken. If there is none or several, prints why to the standard error and returns false;
// `command` is the subcommand that the message names ("state").
bool attach_job(std::string pid, const char* command, node::Segment& segment);

// The system's task number of each rank: its process, or the thread that has its name. 0: the rank
// has not started or has ended.
std::vector<pid_t> tasks_of_ranks(const node::Segment& segment);

} // namespace warren::tools
