// Job: all ranks of one mpiexec, from their start to the end of the last process.
//
//     plan       look up programs, choose bindings (job_plan.hpp)
//     start      make the node segment, start the guardian and the processes (job_start.hpp)
//     watch      one loop: output, ends of ranks, signals, time limits (job_watch.hpp)
//     clean up   kill what is left of the process group, hand on the last output
//
// The job's report holds its messages and its exit code (report.hpp).
// Thread rule: mpiexec's only thread.
#pragma once

#include "launch/mpiexec/job_plan.hpp"
#include "launch/mpiexec/job_start.hpp"
#include "launch/mpiexec/job_state.hpp"
#include "launch/mpiexec/job_topology.hpp"
#include "launch/mpiexec/job_watch.hpp"
#include "launch/mpiexec/profile_page.hpp"

namespace warren::launch {

class Job {
  public:
    // `agent`: of this node, in a job of several; null: this node is all.
    Job(const CommandLine& line, SpawnedBy& spawned_by, Agent* agent = nullptr)
        : state_(line, agent, spawned_by) {}

    // Runs the job; the exit code of mpiexec.
    int run();

  private:
    void clean_up();
    bool open_profile();
    void show_profile();
    void say_lines(const std::string& text);

    JobState state_;
    JobPlan plan_;
    JobTopology topology_{state_};
    JobWatch watch_{state_, plan_, topology_};
    JobStart start_{state_, plan_, topology_, watch_.former_signals()};
    ProfilePage profile_page_;
};

} // namespace warren::launch
