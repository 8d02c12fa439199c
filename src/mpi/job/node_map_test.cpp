#include "mpi/job/node_map.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace warren::node {

namespace {

void expect_inverse(const NodeMap& map, const std::vector<std::uint32_t>& counts,
                    std::uint32_t world_size) {
    std::vector<std::uint32_t> seen(counts.size(), 0);
    for (std::uint32_t rank = 0; rank < world_size; ++rank) {
        const std::uint32_t node = map.node_of(rank);
        ASSERT_LT(node, counts.size());
        EXPECT_EQ(map.slot_of(rank), seen[node]++) << rank;
        EXPECT_EQ(map.world_rank_at(node, map.slot_of(rank)), rank);
    }
    EXPECT_EQ(seen, counts);
}

TEST(NodeMap, RanksFillNodesOfDifferentSizes) {
    const std::vector<std::uint32_t> first{0, 4, 5, 11};
    const NodePlace place = {.node = 0, .nodes = 3, .world_size = 11, .dealt = 0, .secret = 1};
    expect_inverse(NodeMap(place, first.data()), {4, 1, 6}, 11);
}

TEST(NodeMap, RanksAreDealtOut) {
    const NodePlace place = {.node = 0, .nodes = 3, .world_size = 8, .dealt = 1, .secret = 1};
    expect_inverse(NodeMap(place, nullptr), {3, 3, 2}, 8);
}

TEST(NodeMap, ANodeAloneHasTheWorld) {
    Segment segment;
    ASSERT_FALSE(Segment::create({.ranks = 5, .cores = 1}, segment));
    expect_inverse(NodeMap::of(segment), {5}, 5);
    EXPECT_EQ(segment.at(node_place)->world_size, 5U);
    EXPECT_EQ(segment.header().directory[first_ranks].offset, 0U);
}

} // namespace

} // namespace warren::node
