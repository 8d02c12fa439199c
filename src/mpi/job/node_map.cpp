#include "mpi/job/node_map.hpp"

#include <algorithm>

namespace warren::node {

NodeMap NodeMap::of(const Segment& segment) {
    const NodePlace& place = *segment.at(node_place);
    return {place, place.nodes > 1 ? segment.at(first_ranks) : nullptr};
}

std::uint32_t NodeMap::node_of(std::uint32_t world_rank) const {
    if (nodes_ == 1) {
        return 0;
    }
    if (dealt_) {
        return world_rank % nodes_;
    }
    const std::uint32_t* const after = std::upper_bound(first_, first_ + nodes_, world_rank);
    return static_cast<std::uint32_t>(after - first_ - 1);
}

std::uint32_t NodeMap::slot_of(std::uint32_t world_rank) const {
    return nodes_ == 1 ? world_rank
           : dealt_    ? world_rank / nodes_
                       : world_rank - first_[node_of(world_rank)];
}

std::uint32_t NodeMap::world_rank_at(std::uint32_t node, std::uint32_t slot) const {
    return nodes_ == 1 ? slot : dealt_ ? slot * nodes_ + node : first_[node] + slot;
}

} // namespace warren::node
