// JobState: what there is of a job while it is started and watched: its memory, its processes and
// ranks, and what mpiexec waits for.
//
// A process of the job has one or several ranks; a host process has all of them. Invariants
//  1. Every process of the job is in the guardian's process group or carries WARREN_JOB.
//  2. The near ends of all pipes and lifelines are open in mpiexec only.
//  3. Nothing is named in a file system.
// Thread rule: mpiexec's only thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <sys/types.h>
#include <unordered_map>
#include <vector>

#include "launch/mpiexec/agent.hpp"
#include "launch/mpiexec/command_line.hpp"
#include "launch/mpiexec/events.hpp"
#include "launch/mpiexec/guardian.hpp"
#include "launch/mpiexec/process_manager.hpp"
#include "launch/mpiexec/rank_output.hpp"
#include "launch/mpiexec/report.hpp"
#include "launch/mpiexec/spawned_by.hpp"
#include "launch/mpiexec/terminal_input.hpp"
#include "launch/mpiexec/unfinished_writes.hpp"
#include "mpi/job/segment.hpp"

namespace warren::launch {

struct JobRank {
    std::uint32_t program = 0;
    std::uint32_t process = 0;
    std::uint32_t streams = 0;
    pid_t thread = 0; // of a host process; 0: not known
    int manager = -1; // socket to another MPI library's process management
    bool ended = false;
};

// Its ranks follow each other.
struct JobProcess {
    pid_t pid = -1;
    int lifeline = -1;
    std::uint32_t first_rank = 0;
    std::uint32_t ranks = 0;
    bool ended = false;
    int reports = -1;               // of a host process (host_plan.hpp)
    std::int64_t crashed_rank = -1; // who is about to end it by a signal, if known
    bool overflowed = false;        // …because its stack is full
};

struct JobState {
    JobState(const CommandLine& its_line, Agent* its_agent, SpawnedBy& its_spawner);
    ~JobState();
    JobState(const JobState&) = delete;
    JobState& operator=(const JobState&) = delete;

    bool has_host() const { return line.rank_kind != RankKind::process; }
    bool has_fibres() const { return line.rank_kind == RankKind::fibre; }

    std::uint32_t world_size() const { return agent ? agent->plan.world_size : line.ranks(); }
    // Ranks of this node are numbered from 0 here; what the user sees is their rank in the world.
    std::uint32_t world_rank(std::uint32_t rank) const {
        return agent ? agent->plan.world_rank(rank) : rank;
    }
    std::vector<std::uint32_t> world_ranks(std::vector<std::uint32_t> here) const {
        std::transform(here.begin(), here.end(), here.begin(),
                       [this](std::uint32_t rank) { return world_rank(rank); });
        return here;
    }

    // Finishes and reports what these ranks of this node, which have ended, have left half written.
    void finish_writes(std::span<const std::uint32_t> here);
    void finish_writes(); // of all
    void report_unfinished(const std::vector<UnfinishedWrite>& writes);

    const CommandLine& line;
    Agent* const agent; // null: the job is on this node alone
    SpawnedBy& spawned_by;
    std::uint64_t started_ns;
    std::string name; // WARREN_JOB
    node::Segment segment;
    int book = -1; // of the other nodes (mpi/job/book.hpp), JobStart's; -1: there are none
    Guardian guardian;
    pid_t group = 0; // the guardian's number, also after its end
    std::vector<JobRank> ranks;
    std::vector<JobProcess> processes;
    std::unordered_map<pid_t, std::uint32_t> process_of;
    std::uint32_t alive = 0;        // processes
    JobUsers users = JobUsers::own; // of those that have ended
    bool has_other_library = false; // ranks have, and the user knows
    ProcessManager manager;         // of another MPI library's ranks
    Events events;
    RankOutput output;
    TerminalInput input;
    Report report{output, line.verbose, agent != nullptr ? &agent->link : nullptr, &spawned_by};
};

} // namespace warren::launch
