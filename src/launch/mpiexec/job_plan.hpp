// JobPlan: what is decided about a job before anything of it is made: its programs, which
// processors ranks or workers get, and what their host process is to do. Thread rule: mpiexec's
// only thread.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "launch/mpiexec/agent.hpp"
#include "launch/mpiexec/binding.hpp"
#include "launch/mpiexec/command_line.hpp"
#include "launch/mpiexec/program.hpp"
#include "launch/mpiexec/report.hpp"

namespace warren::launch {

struct JobPlan {
    const Agent* agent = nullptr; // of this node, in a job of several
    std::deque<ResolvedProgram> programs;
    std::vector<bool> own_allocators;   // of programs of threads or fibres: whether they have them
    std::string host_path;              // of ranks that are threads or fibres
    std::uint32_t ranks_per_stream = 1; // of a host process
    BindingPlan bindings;
    std::uint32_t processors = 1;
    std::uint32_t own_processors = 1; // those of them that no other node has, on the average
    std::uint32_t others = 0;         // ranks of the job that has spawned this one
    std::vector<int> workers;         // of fibres: the processor of each
    std::vector<int> worker_nodes;    // and its NUMA node; empty: pages don't follow fibres

    std::uint64_t descriptors(const CommandLine& line) const; // that mpiexec needs
};

// False when the job can't be; the report has the reason.
bool make_plan(const CommandLine& line, Report& report, JobPlan& plan);

// Variables for the thread run-times of a program's ranks (thread_defaults.hpp): what the user has
// not set, in mpiexec's environment or by its options.
std::vector<EnvironmentSetting> plan_threads(const CommandLine& line,
                                             const ResolvedProgram& program, Report& report,
                                             const JobPlan& plan);

// Distance between fibres' workers, by what their processors share: 1 for the same core, and 1 more
// for each of L3 cache, NUMA node and socket that they don't share.
std::vector<std::uint32_t> distances_of(const std::vector<int>& workers);

} // namespace warren::launch
