// Endpoints: how the ranks of a node number all ranks of the world.
//
// The node's own ranks come first, by their slots, then the others in the order of the world. So
// what ranks of a node do in shared memory goes by slots, as in a job of one node, and one
// comparison tells a rank of another node. Rank maps and the message room use endpoints. Each node
// numbers differently: what leaves the node names ranks of the world. In a job of one node the
// endpoint of a rank is its rank in the world. Thread rule: a value.
#pragma once

#include <cstdint>

#include "mpi/job/node_map.hpp"
#include "mpi/job/segment.hpp"

namespace warren::node {

class Endpoints {
  public:
    // The node is the one that the segment belongs to.
    explicit Endpoints(const Segment& segment);

    // 0 ≤ world_rank, endpoint < world_size().
    std::uint32_t of(std::uint32_t world_rank) const;
    std::uint32_t world_rank(std::uint32_t endpoint) const;

    std::uint32_t world_size() const { return place_.world_size; }
    // Endpoints below it are the node's slots.
    std::uint32_t ranks_here() const { return here_; }
    bool is_one_node() const { return place_.nodes == 1; }
    const NodeMap& map() const { return map_; }

  private:
    const NodePlace place_;
    const NodeMap map_;
    const std::uint32_t here_;
};

} // namespace warren::node
