#include "launch/mpiexec/job_state.hpp"

#include <unistd.h>

#include "base/futex.hpp"

namespace warren::launch {

JobState::JobState(const CommandLine& its_line, Agent* its_agent, SpawnedBy& its_spawner)
    : line(its_line),
      agent(its_agent),
      spawned_by(its_spawner),
      started_ns(monotonic_ns()),
      name(std::to_string(getpid()) + "." + std::to_string(started_ns)) {
    if (agent != nullptr) {
        output.send_to(agent->link);
    }
}

JobState::~JobState() {
    const auto end = [](int descriptor) {
        if (descriptor >= 0) {
            close(descriptor);
        }
    };
    for (const JobRank& rank : ranks) {
        end(rank.manager);
    }
    for (const JobProcess& process : processes) {
        end(process.lifeline);
        end(process.reports);
    }
}

void JobState::report_unfinished(const std::vector<UnfinishedWrite>& writes) {
    for (const UnfinishedWrite& write : writes) {
        report.say(describe(write, "rank " + std::to_string(world_rank(write.rank))));
    }
}

void JobState::finish_writes(std::span<const std::uint32_t> here) {
    report_unfinished(launch::finish_writes(segment, here, [this] {
        if (users == JobUsers::own) {
            users = users_of_job(group, name);
        }
        return users;
    }));
}

void JobState::finish_writes() {
    report_unfinished(launch::finish_writes(segment, [this] { return users; }));
}

} // namespace warren::launch
