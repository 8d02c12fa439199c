#include "mpi/job/endpoints.hpp"

#include <algorithm>

namespace warren::node {

Endpoints::Endpoints(const Segment& segment)
    : place_(*segment.at(node_place)), map_(NodeMap::of(segment)), here_(segment.ranks()) {}

std::uint32_t Endpoints::of(std::uint32_t world_rank) const {
    if (place_.nodes == 1) {
        return world_rank;
    }
    if (map_.node_of(world_rank) == place_.node) {
        return map_.slot_of(world_rank);
    }
    // Behind the node's ranks come those of others, which are before this one in the world.
    std::uint32_t own_before;
    if (place_.dealt != 0) {
        own_before =
            world_rank > place_.node ? (world_rank - place_.node - 1) / place_.nodes + 1 : 0;
    } else {
        own_before = world_rank < map_.world_rank_at(place_.node, 0) ? 0 : here_;
    }
    return here_ + world_rank - own_before;
}

std::uint32_t Endpoints::world_rank(std::uint32_t endpoint) const {
    if (place_.nodes == 1) {
        return endpoint;
    }
    if (endpoint < here_) {
        return map_.world_rank_at(place_.node, endpoint);
    }
    const std::uint32_t other = endpoint - here_;
    if (place_.dealt == 0) {
        return other < map_.world_rank_at(place_.node, 0) ? other : other + here_;
    }
    // Each round of the nodes has one rank less without this one's.
    const std::uint32_t turn = other % (place_.nodes - 1);
    return other / (place_.nodes - 1) * place_.nodes + turn + (turn < place_.node ? 0 : 1);
}

} // namespace warren::node
