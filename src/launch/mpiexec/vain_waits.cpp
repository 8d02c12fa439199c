#include "launch/mpiexec/vain_waits.hpp"

#include <algorithm>
#include <cstring>

#include "launch/mpiexec/tuning.hpp"

namespace warren::launch {

namespace {

constexpr auto relaxed = std::memory_order_relaxed;

bool waits_long(const node::RankSlot& slot, std::uint64_t now_ns) {
    // Pairs with the rank's release store: the reason is there when the time is.
    const std::uint64_t since = slot.activity.since_ns.load(std::memory_order_acquire);
    return slot.state.load(relaxed) == node::RankStage::initialised && since != 0 &&
           since + vain_wait_ns <= now_ns;
}

// The number in the world of the only peer that the rank waits for; -1: not known.
std::int64_t peer_of(const node::Activity& activity) {
    constexpr const char* world = "MPI_COMM_WORLD";
    if (activity.requests.load(relaxed) > 1) {
        return -1;
    }
    const bool in_world =
        activity.peer_in_world.load(relaxed) != 0 ||
        std::strncmp(activity.communicator_name, world, sizeof activity.communicator_name) == 0;
    return in_world ? activity.peer.load(relaxed) : -1;
}

} // namespace

std::vector<std::uint32_t> vain_waits(const node::Segment& segment, const std::vector<bool>& ended,
                                      const std::vector<std::uint32_t>& failed,
                                      std::uint64_t now_ns) {
    std::vector<std::uint32_t> waiting;
    std::vector<std::uint32_t> for_failed;
    bool all_wait = true;
    for (std::uint32_t rank = 0; rank < segment.ranks(); ++rank) {
        if (ended[rank]) {
            continue;
        }
        const node::RankSlot& slot = segment.slot(rank);
        if (!waits_long(slot, now_ns)) {
            all_wait = false;
            continue;
        }
        waiting.push_back(rank);
        if (std::find(failed.begin(), failed.end(), peer_of(slot.activity)) != failed.end()) {
            for_failed.push_back(rank);
        }
    }
    if (!for_failed.empty() || !all_wait) {
        return for_failed;
    }
    return waiting;
}

} // namespace warren::launch
