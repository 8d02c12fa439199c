#include "launch/mpiexec/job_state.hpp"

#include <unistd.h>

#include "base/futex.hpp"
#include "launch/mpiexec/unfinished_writes.hpp"

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

void JobState::finish_writes(std::span<const std::uint32_t> here) {
    std::vector<std::uint32_t> own(here.begin(), here.end());
    for (const JobProcess& process : processes) {
        if (process.of_other_user) {
            std::erase_if(own, [&](std::uint32_t rank) {
                return rank >= process.first_rank && rank < process.first_rank + process.ranks;
            });
        }
    }
    for (const UnfinishedWrite& write : launch::finish_writes(segment, own)) {
        report.say("the last write of rank " + std::to_string(world_rank(write.rank)) +
                   (write.path.empty() ? "" : " to " + write.path) +
                   " may be there in part only: " + write.problem);
    }
}

} // namespace warren::launch
