// JobStart: makes what a job consists of, by its plan: the node segment, the guardian, the
// environment of its processes, then the processes, each with its streams and a lifeline.
//
// Processes are executed, or forked from the first one of their program (forked_start.hpp); ranks
// that are threads or fibres have one host process (job_start_host.cpp). A failure is in the
// report; those that run then are the caller's to end. Thread rule: mpiexec's only thread.
#pragma once

#include <csignal>
#include <cstdint>
#include <memory>
#include <string>
#include <sys/resource.h>
#include <vector>

#include "launch/mpiexec/forked_start.hpp"
#include "launch/mpiexec/host_plan.hpp"
#include "launch/mpiexec/job_plan.hpp"
#include "launch/mpiexec/job_state.hpp"
#include "launch/mpiexec/job_topology.hpp"
#include "launch/mpiexec/spawn.hpp"

namespace warren::launch {

class JobStart {
  public:
    // `signals`: those that are blocked in ranks.
    JobStart(JobState& job, JobPlan& plan, JobTopology& topology, const sigset_t& signals)
        : job_(job), plan_(plan), topology_(topology), former_signals_(signals) {}
    ~JobStart();
    JobStart(const JobStart&) = delete;
    JobStart& operator=(const JobStart&) = delete;

    // All that processes need. False: there are none.
    bool prepare();
    // False: not all processes have been started.
    bool start_processes();

  private:
    // A program whose further processes are forked from its first.
    struct ForkedProgram {
        ForkedStart forked_start;
        Environment of_first;
    };

    bool open_descriptors();
    bool open_book();
    int number_for_ranks(int descriptor, int command) const;
    bool has_resources();
    bool make_segment();
    bool make_environments();
    void plan_forked_start(const RankEnvironment& environment, ResolvedProgram& program);
    void divide_ranks();

    bool start_program(std::uint32_t number, Spawner& spawner);
    bool start_process(std::uint32_t number, SpawnRequest request, Spawner& spawner);
    bool start_forked(std::uint32_t number, const SpawnRequest& request);
    bool take_forked(ForkedStart& forked_start, std::size_t limit);
    bool finish_forked();
    void process_runs(std::uint32_t number, pid_t pid);
    bool open_streams(std::uint32_t number, int& output, int& errors);
    void not_started(const SpawnFailure& failure);

    bool start_host(Spawner& spawner);
    int write_host_plan(HostPlan& plan, std::vector<int>& inherited);
    void describe_programs(HostPlan& plan);
    bool connect_rank(std::uint32_t rank, HostPlan& plan, std::vector<int>& inherited,
                      std::string& what);
    void describe_host(HostPlan& plan);
    void plan_balancing(HostPlan& plan);

    JobState& job_;
    JobPlan& plan_;
    JobTopology& topology_;
    const sigset_t& former_signals_;
    std::vector<std::unique_ptr<ForkedProgram>>
        forked_programs_; // by program; null: all are executed
    Environment host_environment_;
    int null_input_ = -1;
    // The numbers of a rank's descriptors. They are taken in mpiexec.
    int segment_number_ = -1;
    int lifeline_number_ = -1;
    int book_number_ = -1; // in a job of several nodes
    rlimit former_descriptors_ = {};
    bool descriptors_raised_ = false;
};

} // namespace warren::launch
