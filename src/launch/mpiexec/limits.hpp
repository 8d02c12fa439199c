// Limits of this process: memory and processor time that its control groups leave, and descriptors
// for a job of many ranks. Thread rule: any thread; reads files of the system only.
#pragma once

#include <cstdint>
#include <string>
#include <sys/resource.h>
#include <vector>

#include "base/error.hpp"

namespace warren::launch {

// Fails when `bytes` more cannot fit the memory limit of one of this process's control groups:
// asked before memory is taken, because the kernel's answer to too much is to end a process of its
// choice.
Error check_free_memory(std::uint64_t bytes);

// The tightest memory limit: "the memory limit of 4096 kB (/sys/fs/cgroup/…)"; empty: none.
std::string describe_memory_limit();

// Processors' worth of time that the control groups grant, rounded up; 0: no limit.
std::uint32_t processor_quota();

// The limit of the system, the user or a control group that leaves the fewest processes and
// threads.
struct TaskLimit {
    std::uint64_t room = UINT64_MAX; // how many more there can be
    std::string text; // "… (sysctl kernel.pid_max) is 32768, of which 400 are in use"
};

// The text is empty when there is no limit. Files of the system are looked for below `root`.
TaskLimit tightest_task_limit(const std::string& root = "");

// Fails when `tasks` more processes or threads can't be beside those that there are.
Error check_free_tasks(std::uint64_t tasks, const std::string& root = "");

// A limit of the system for all ranks together: either for their processes, or for the one process
// that they share. shared_limits() puts the lowest first.
struct SharedLimit {
    std::uint64_t count = 0;
    std::string what;   // "inotify instances"
    std::string remedy; // "sysctl fs.inotify.max_user_instances"
};
std::vector<SharedLimit> shared_limits(bool together, const std::string& root = "");
// "…: 128 inotify instances (sysctl …; not one for each), …"
std::string describe_limits(std::vector<SharedLimit> limits, std::uint32_t ranks);

// Ranks that mpiexec can start with this limit of descriptors.
std::uint64_t ranks_within(std::uint64_t descriptors);

// Descriptors that mpiexec needs for a job of so many programs, whose ranks it starts one by one or
// `together`.
std::uint64_t descriptors_for(std::uint64_t ranks, bool together, std::uint64_t programs);

// How many ranks of a host of fibres share a pair of pipes: 1, unless the hard limit of descriptors
// is too low for that. Then the pipes take half of it, and programs have the rest.
std::uint32_t fibres_per_stream(std::uint32_t ranks);

// Raises the soft limit of descriptors to `needed`. `former` gets the limits to restore in ranks
// and `raised` whether they differ. Fails when the hard limit is lower.
Error raise_descriptor_limit(std::uint64_t needed, rlimit& former, bool& raised);

} // namespace warren::launch
