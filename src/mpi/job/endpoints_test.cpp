#include "mpi/job/endpoints.hpp"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

namespace warren::node {
namespace {

// The segment of one node of a job; `first` as the region first_ranks.
Segment segment_of(std::uint32_t node, const std::vector<std::uint32_t>& first, bool dealt) {
    const auto nodes = static_cast<std::uint32_t>(first.size() - 1);
    const std::uint32_t world = first.back();
    const std::uint32_t here =
        dealt ? world / nodes + (node < world % nodes ? 1 : 0) : first[node + 1] - first[node];
    Segment segment;
    Error error = Segment::create({.ranks = here, .cores = 1, .nodes = nodes}, segment);
    EXPECT_FALSE(error);
    NodePlace& place = *segment.at(node_place);
    place.node = node;
    place.nodes = nodes;
    place.world_size = world;
    place.dealt = dealt ? 1 : 0;
    if (nodes > 1) {
        std::copy(first.begin(), first.end(), segment.at(first_ranks));
    }
    return segment;
}

void check(const std::vector<std::uint32_t>& first, bool dealt) {
    for (std::uint32_t node = 0; node + 1 < first.size(); ++node) {
        const Segment segment = segment_of(node, first, dealt);
        const Endpoints endpoints(segment);
        std::uint32_t last_other = 0;
        for (std::uint32_t rank = 0; rank < first.back(); ++rank) {
            const std::uint32_t endpoint = endpoints.of(rank);
            ASSERT_EQ(endpoints.world_rank(endpoint), rank) << "node " << node;
            ASSERT_LT(endpoint, first.back());
            if (endpoints.map().node_of(rank) == node) {
                ASSERT_EQ(endpoint, endpoints.map().slot_of(rank));
            } else {
                ASSERT_GE(endpoint, segment.ranks());
                ASSERT_GE(endpoint, last_other) << "others are in the order of the world";
                last_other = endpoint + 1;
            }
        }
    }
}

TEST(Endpoints, number_the_nodes_own_ranks_first_and_are_invertible) {
    check({0, 5}, false);
    check({0, 2, 4}, false);
    check({0, 1, 7, 9, 12}, false);
    check({0, 4, 8}, true);        // 8 ranks of 2 nodes
    check({0, 3, 5, 7, 10}, true); // 10 ranks of 4 nodes: the last round is not full
    check({0, 1, 2, 3}, true);
}

} // namespace
} // namespace warren::node
