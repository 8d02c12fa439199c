// OtherLibraries: finds ranks that have another MPI library in memory and have not called MPI_Init
// of Warren's. Each of them would be alone in a world of its own, silently: so it is where a script
// sets LD_LIBRARY_PATH before it starts the program.
//
// mpiexec looks a few times, at growing distances, at the first ranks of each program on this node.
// Thread rule: mpiexec's only thread.
#pragma once

#include <cstdint>
#include <string>
#include <sys/types.h>

#include "launch/mpiexec/job_plan.hpp"
#include "launch/mpiexec/job_state.hpp"

namespace warren::launch {

class OtherLibraries {
  public:
    // When the next look is due; 0: never.
    std::uint64_t look_ns() const { return look_ns_; }
    void begin(std::uint64_t now_ns);
    // Reports what it finds, and looks no more then.
    void look(JobState& job, const JobPlan& plan, std::uint64_t now_ns);

  private:
    std::uint64_t look_ns_ = 0;
    std::uint64_t pause_ns_ = 0;
};

// The file of an MPI library in the memory of a process or of its descendants that is not Warren's;
// empty: none. `own_folder` is mpiexec's.
std::string other_library_of(pid_t pid, const std::string& own_folder);

} // namespace warren::launch
