// The jobs that run on this node, as another process finds them.
// Thread rule: any thread; what is found may have ended meanwhile.
#pragma once

#include <string>
#include <vector>

#include "mpi/job/segment.hpp"

namespace warren::tools {

// The first line of a file, without what ends it; empty: there is none.
std::string first_line(const std::string& path);

// Maps the segment of a job. `pid` is its mpiexec's or a rank's; empty: of the only job there is.
// False, and it is said on the standard error why, when there is none or there are several;
// `command` is what to give the number to ("state").
bool attach_job(std::string pid, const char* command, node::Segment& segment);

// The system's number of what each rank runs in: its process, or the thread that has its name; 0:
// it has not started, or has ended.
std::vector<pid_t> tasks_of_ranks(const node::Segment& segment);

} // namespace warren::tools
