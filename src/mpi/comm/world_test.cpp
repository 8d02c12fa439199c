#include "mpi/comm/world.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace warren::comm {
namespace {

TEST(World, reaches_ranks_of_one_node_by_their_slot) {
    for (const std::uint32_t size : {1U, 2U, 3U, 64U, 1000U}) {
        const World world = World::on_one_node(size / 2, size);
        EXPECT_EQ(world.rank(), size / 2);
        ASSERT_EQ(world.size(), size);
        EXPECT_EQ(world.process(), Process{size / 2});
        for (std::uint32_t rank = 0; rank < size; ++rank) {
            const Process process = process_of(0, rank);
            const AddressVector::Location location = world.location(process);
            ASSERT_EQ(location.node, 0u);
            ASSERT_EQ(World::endpoint_of(process), location.slot);
        }
    }
}

TEST(World, knows_where_its_processes_are_and_which_are_others) {
    std::vector<NodeAddress> nodes(3);
    const World world(
        7, 5,
        AddressVector(nodes.data(), AddressVector::slot_bits_for(4), AddressVector::filled(3, 4)));
    EXPECT_EQ(world.size(), 12u);
    EXPECT_EQ(world.process(), process_of(7, 5));
    EXPECT_EQ(world.location(world.process()).node, 1u);
    EXPECT_EQ(world.location(world.process()).slot, 1u);
    EXPECT_EQ(world.location(process_of(7, 11)).node, 2u);
    EXPECT_TRUE(world.contains(process_of(7, 11)));
    EXPECT_FALSE(world.contains(process_of(7, 12)));
    EXPECT_FALSE(world.contains(process_of(0, 5)));
}

} // namespace
} // namespace warren::comm
