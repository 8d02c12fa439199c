// Finds the jobs that run on this node, for the commands that look into them. Thread rule: any
// thread; a job that was found may have ended meanwhile.
#pragma once

#include <string>
#include <vector>

#include "mpi/job/segment.hpp"

namespace warren::tools {

// Maps the segment of a job. `pid` is its mpiexec's or a rank's; if it is empty, the only job that
// runs and was not spawned by another is taken. If there is none or several, prints why to the
// standard error and returns false; `command` is the subcommand that the message names ("state").
bool attach_job(const std::string& pid, const char* command, node::Segment& segment);

// Likewise, and behind it the worlds that its ranks have spawned, and theirs.
bool attach_worlds(const std::string& pid, const char* command, std::vector<node::Segment>& worlds);

} // namespace warren::tools
