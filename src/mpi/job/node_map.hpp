// NodeMap: which node of the job a rank of the world is on, and the place among its ranks.
//
// Filled: ranks fill node after node; a table in the segment has each node's first rank. Dealt:
// ranks go round the nodes in turn. In both, the slots of a node ascend with the ranks of the
// world, so that a node needs no entry per rank.
//
// Invariants
//  1. first[0] = 0, first ascends strictly (no node is without ranks), first[nodes] = world_size.
//  2. A dealt world has at least as many ranks as nodes.
// Thread rule: the launcher fills it before any rank attaches; constant then.
#pragma once

#include <cstdint>

#include "mpi/job/segment.hpp"

namespace warren::node {

// The node's place in the job. All zero but for the sizes in a job of one node.
struct NodePlace {
    std::uint32_t node;
    std::uint32_t nodes;
    std::uint32_t world_size;
    std::uint32_t dealt; // 1: dealt, 0: filled
    std::uint64_t secret;
};
inline constexpr RegionId<NodePlace> node_place{30};
// Nodes + 1 of them; the last is the world's size. A job of one node has none.
inline constexpr RegionId<std::uint32_t> first_ranks{31};

class NodeMap {
  public:
    // `first`: as the region first_ranks; null in a job of one node.
    NodeMap(const NodePlace& place, const std::uint32_t* first)
        : nodes_(place.nodes), dealt_(place.dealt != 0), first_(first) {}
    static NodeMap of(const Segment& segment);

    std::uint32_t node_of(std::uint32_t world_rank) const;
    std::uint32_t slot_of(std::uint32_t world_rank) const;
    std::uint32_t world_rank_at(std::uint32_t node, std::uint32_t slot) const;

  private:
    std::uint32_t nodes_;
    bool dealt_;
    const std::uint32_t* first_;
};

} // namespace warren::node
