// The loads of a job's ranks, read from outside the job (`warren ranks`, mpiexec).
//
// The scheduler counts what fibres ran. The system counts for processes and threads, and includes
// the time that they poll. Thread rule: any process that can map the segment; values may be a tenth
// of a second old.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "mpi/job/segment.hpp"

namespace warren::launch {

struct RankSample {
    std::int64_t worker = -1; // -1: it has none
    std::int64_t core = -1;   // processor that it ran on last; -1: unknown
    const char* state = "";   // a word
    double ran_s = 0;
    std::uint64_t messages = 0; // sent; of fibres only
    std::uint64_t bytes = 0;
    std::uint32_t moves = 0;
    std::string call; // that it waits in, empty: none
};

struct WorkerSample {
    int processor = -1;
    double busy_s = 0;
    std::uint64_t switches = 0;
    bool stands_in = false;
};

struct LoadSample {
    bool fibres = false;
    double time_s = 0; // since the beginning of the workers; of others, on the monotonic clock
    std::vector<RankSample> ranks;
    std::vector<WorkerSample> workers;
    // How often a balancer looked; the imbalance of the workers before the first time, and since
    // then on average, by time.
    std::uint32_t balancings = 0;
    double first_imbalance = 0;
    double later_imbalance = 0;
    // Pages that have followed ranks to other NUMA nodes, and pages that could not.
    std::uint64_t pages_moved = 0;
    std::uint64_t pages_stayed = 0;

    double rank_imbalance() const;
    double worker_imbalance() const; // spare ones count with nobody
};

// `tasks`: what the system calls each rank's process or thread; of fibres it may be empty.
LoadSample sample_loads(const node::Segment& segment, const std::vector<pid_t>& tasks);

// A table with a line per rank; load is the share of the time since `before` (null: of all the
// time) that it ran. `columns`: 0, or what fits a line.
std::string load_table(const LoadSample& now, const LoadSample* before, std::size_t columns);
// One object, which includes what each rank sent to whom. `spawned`: the objects of the worlds that
// the job has spawned.
std::string load_json(const node::Segment& segment, const LoadSample& now,
                      const std::vector<std::string>& spawned);
// For the end of a job of fibres: some lines, each with its end.
std::string load_summary(const LoadSample& now);

} // namespace warren::launch
