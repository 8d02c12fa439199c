#include "launch/mpiexec/state_report.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

#include "base/futex.hpp"
#include "launch/mpiexec/outcome.hpp"
#include "launch/mpiexec/running_jobs.hpp"
#include "mpi.h"
#include "mpi/calls.hpp"
#include "mpi/job/node_map.hpp"

namespace warren::launch {

namespace {

// The word for the state of a process or a thread, from /proc.
std::string system_state(pid_t pid, pid_t thread) {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%d/task/%d/stat", static_cast<int>(pid),
                  static_cast<int>(thread > 0 ? thread : pid));
    char text[512];
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return "gone";
    }
    const ssize_t got = read(file, text, sizeof text - 1);
    close(file);
    text[got > 0 ? got : 0] = '\0';
    // The program's name may contain anything; the state follows its last parenthesis.
    const char* after_name = std::strrchr(text, ')');
    switch (after_name != nullptr && after_name[1] == ' ' ? after_name[2] : '\0') {
    case 'R':
        return "running";
    case 'S':
        return "sleeping";
    case 'D':
        return "in uninterruptible sleep";
    case 'T':
        return "stopped by a signal";
    case 't':
        return "stopped by a debugger";
    case 'Z':
        return "ended";
    default:
        return "in an unknown state";
    }
}

std::string seconds(double value) {
    char text[32];
    std::snprintf(text, sizeof text, value < 10 ? "%.1f" : "%.0f", value);
    return text;
}

// Ranks with the same description.
struct Line {
    std::string description;
    std::vector<std::uint32_t> ranks;
    double shortest_s = 0; // of the waits
    double longest_s = 0;
};

} // namespace

std::string describe(const node::RankSlot& slot) {
    constexpr auto relaxed = std::memory_order_relaxed;
    switch (slot.state.load(relaxed)) {
    case node::RankStage::not_started:
        return "not initialised";
    case node::RankStage::finalised:
        return "finalised";
    case node::RankStage::aborting:
    case node::RankStage::doomed:
        return "aborting";
    case node::RankStage::initialised:
        break;
    }
    const node::Activity& activity = slot.activity;
    // Pairs with the rank's release store: the reason is there when the time is.
    if (activity.since_ns.load(std::memory_order_acquire) == 0) {
        return "computing, or in a short MPI call";
    }
    std::string text = std::string("waits in ") + mpi::call_name(activity.call.load(relaxed));
    const std::int32_t peer = activity.peer.load(relaxed);
    if (peer >= 0) {
        text += ", peer " + std::to_string(peer);
        if (activity.peer_in_world.load(relaxed) != 0) {
            text += " of the world";
        }
    } else if (peer == MPI_ANY_SOURCE) {
        text += ", any source";
    }
    const std::int32_t tag = activity.tag.load(relaxed);
    if (peer == MPI_PROC_NULL) {
        // A collective call: no peer in particular, no tag.
    } else if (tag >= 0) {
        text += ", tag " + std::to_string(tag);
    } else if (tag == MPI_ANY_TAG) {
        text += ", any tag";
    }
    char name[sizeof activity.communicator_name + 1] = {};
    std::memcpy(name, activity.communicator_name, sizeof activity.communicator_name);
    text += ", communicator " +
            (name[0] != '\0' ? name : "number " + std::to_string(activity.context.load(relaxed)));
    const std::uint32_t requests = activity.requests.load(relaxed);
    if (requests > 1) {
        text += ", " + std::to_string(requests) + " requests";
    }
    text += "; queues: " + std::to_string(activity.posted.load(relaxed)) + " posted, " +
            std::to_string(activity.unexpected.load(relaxed)) + " unexpected, " +
            std::to_string(activity.pending_sends.load(relaxed)) + " sends pending";
    return text;
}

std::string report_states(const node::Segment& segment, const std::vector<ObservedRank>& ranks,
                          std::uint64_t now_ns) {
    const node::NodeMap map = node::NodeMap::of(segment);
    const std::uint32_t node = segment.at(node::node_place)->node;
    std::vector<Line> lines;
    for (std::uint32_t rank = 0; rank < ranks.size(); ++rank) {
        const node::RankSlot& slot = segment.slot(rank);
        const std::int32_t inside = slot.pid.load(std::memory_order_relaxed);
        const pid_t pid = inside > 0 ? inside : ranks[rank].pid;
        std::string description = describe(slot);
        double waited_s = 0;
        if (ranks[rank].ended) {
            description = "ended";
        } else {
            description += ranks[rank].thread > 0 ? "; thread " : "; process ";
            description += pid > 0 ? system_state(pid, ranks[rank].thread) : "unknown";
            const std::uint64_t since = slot.activity.since_ns.load(std::memory_order_relaxed);
            if (since != 0 && since < now_ns) {
                waited_s = static_cast<double>(now_ns - since) * 1e-9;
            }
        }
        auto same = std::find_if(lines.begin(), lines.end(), [&](const Line& line) {
            return line.description == description && (line.longest_s > 0) == (waited_s > 0);
        });
        if (same == lines.end()) {
            lines.push_back({description, {rank}, waited_s, waited_s});
        } else {
            same->ranks.push_back(rank);
            same->shortest_s = std::min(same->shortest_s, waited_s);
            same->longest_s = std::max(same->longest_s, waited_s);
        }
    }
    std::string text;
    for (const Line& line : lines) {
        text += line.ranks.size() == 1 ? "  rank " : "  ranks ";
        std::vector<std::uint32_t> world_ranks;
        for (const std::uint32_t rank : line.ranks) {
            world_ranks.push_back(map.world_rank_at(node, rank));
        }
        text += describe_ranks(world_ranks);
        if (line.ranks.size() == 1) {
            const std::uint32_t rank = line.ranks[0];
            const std::int32_t inside = segment.slot(rank).pid.load(std::memory_order_relaxed);
            const pid_t pid = inside > 0 ? inside : ranks[rank].pid;
            text += pid > 0 ? " (pid " + std::to_string(pid) + ")" : "";
        }
        text += ": " + line.description;
        if (line.longest_s > 0) {
            const std::string shortest = seconds(line.shortest_s);
            const std::string longest = seconds(line.longest_s);
            text += "; for " + shortest + (shortest != longest ? " to " + longest : "") + " s";
        }
        text += "\n";
    }
    return text;
}

std::string report_states_from_outside(const node::Segment& segment) {
    std::vector<ObservedRank> ranks(segment.ranks());
    const std::vector<pid_t> tasks = tasks_of_ranks(segment);
    for (std::uint32_t rank = 0; rank < ranks.size(); ++rank) {
        const pid_t process = segment.slot(rank).pid.load(std::memory_order_relaxed);
        ranks[rank].thread = tasks[rank] != process ? tasks[rank] : 0;
    }
    return report_states(segment, ranks, monotonic_ns());
}

} // namespace warren::launch
