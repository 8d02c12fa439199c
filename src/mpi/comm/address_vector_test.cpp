#include "mpi/comm/address_vector.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "mpi.h"

namespace warren::comm {
namespace {

TEST(AddressVector, knows_locations_of_ranks_and_ranks_of_locations) {
    for (std::uint32_t nodes : {1U, 2U, 3U, 17U, 64U}) {
        for (std::uint32_t per_node : {1U, 2U, 5U, 16U}) {
            std::vector<NodeAddress> entries(nodes);
            const std::uint32_t bits = AddressVector::slot_bits_for(per_node);
            const AddressVector filled(entries.data(), bits,
                                       AddressVector::filled(nodes, per_node));
            const AddressVector dealt(entries.data(), bits, AddressVector::dealt(nodes, per_node));
            EXPECT_TRUE(filled.locations().regular());
            EXPECT_TRUE(dealt.locations().regular());
            ASSERT_EQ(filled.ranks(), nodes * per_node);
            ASSERT_EQ(dealt.ranks(), nodes * per_node);
            for (std::uint32_t rank = 0; rank < filled.ranks(); ++rank) {
                const AddressVector::Location one = filled.location(rank);
                ASSERT_EQ(one.node, rank / per_node);
                ASSERT_EQ(one.slot, rank % per_node);
                ASSERT_EQ(filled.rank_at(one), static_cast<int>(rank));
                const AddressVector::Location other = dealt.location(rank);
                ASSERT_EQ(other.node, rank % nodes);
                ASSERT_EQ(other.slot, rank / nodes);
                ASSERT_EQ(dealt.rank_at(other), static_cast<int>(rank));
            }
            EXPECT_EQ(filled.rank_at({nodes, 0}), MPI_UNDEFINED);
        }
    }
}

TEST(AddressVector, serves_ranks_that_are_anywhere) {
    constexpr std::uint32_t nodes = 50;
    constexpr std::uint32_t bits = 3;
    std::vector<std::uint32_t> locations;
    for (std::uint32_t node = 0; node < nodes; ++node) {
        for (std::uint32_t slot = 0; slot < 1 + node % 7; ++slot) {
            locations.push_back(node << bits | slot);
        }
    }
    std::shuffle(locations.begin(), locations.end(), std::mt19937(3));
    std::vector<NodeAddress> entries(nodes);
    AddressVector vector(entries.data(), bits, RankMap::of(locations));
    vector.address(7).words[0] = 99;
    for (std::uint32_t rank = 0; rank < locations.size(); ++rank) {
        const AddressVector::Location location = vector.location(rank);
        ASSERT_EQ(location.node << bits | location.slot, locations[rank]);
        ASSERT_EQ(vector.address(location.node).words[0], location.node == 7 ? 99U : 0U);
        ASSERT_EQ(vector.rank_at(location), static_cast<int>(rank));
    }
    EXPECT_EQ(vector.rank_at({0, 1}), MPI_UNDEFINED);
}

} // namespace
} // namespace warren::comm
