// The part of the watch that says what the ranks do, on demand and at the time limit.
#include <cstdio>
#include <string>
#include <unistd.h>

#include "base/futex.hpp"
#include "launch/mpiexec/job_watch.hpp"
#include "launch/mpiexec/running_jobs.hpp"
#include "launch/mpiexec/state_report.hpp"

namespace warren::launch {

namespace {

std::string in_seconds(std::uint64_t ns) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f s", static_cast<double>(ns) * 1e-9);
    return text;
}

std::string counted_ranks(std::size_t count) {
    return count == 1 ? "rank" : std::to_string(count) + " ranks";
}

} // namespace

void JobWatch::print_states() {
    std::vector<ObservedRank> observed;
    for (const JobRank& rank : job_.ranks) {
        observed.push_back(
            {.pid = job_.processes[rank.process].pid, .thread = rank.thread, .ended = rank.ended});
    }
    const std::uint64_t now = monotonic_ns();
    const std::string node =
        job_.agent == nullptr ? "" : " on node " + job_.agent->plan.names[job_.agent->plan.node];
    job_.report.say("state of the " + counted_ranks(job_.ranks.size()) + node + " after " +
                    in_seconds(now - job_.started_ns));
    job_.output.say(report_states(job_.segment, observed, now));
    if (spawned_.running() > 0) {
        print_states_of_spawned();
    }
}

void JobWatch::print_states_of_spawned() {
    for (const pid_t mpiexec : with_spawned(running_jobs(), getpid())) {
        const int descriptor = mpiexec != getpid() ? open_segment_of(mpiexec) : -1;
        if (descriptor < 0) {
            continue;
        }
        node::Segment world;
        if (Error error = node::Segment::attach(descriptor, world)) {
            error.drop(); // it has ended
            continue;
        }
        job_.report.say("state of the " + counted_ranks(world.ranks()) +
                        " of the spawned world of mpiexec " + std::to_string(mpiexec));
        job_.output.say(report_states_from_outside(world));
    }
}

} // namespace warren::launch
