// The C++ layer over topology.h says what that says.
#include "warren/topology.hpp"

#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace warren {
namespace {

TEST(CppTopology, objects_are_those_of_the_c_functions) {
    const Topology node("synthetic:package:2 numa:2 core:2 pu:2");
    EXPECT_EQ(node.way(), WARREN_TOPOLOGY_SYNTHETIC);
    EXPECT_EQ(node.note(), "");
    EXPECT_EQ(node.count(WARREN_OBJECT_CORE), 8U);
    std::vector<warren_object> cores;
    for (const Object core : node.objects(WARREN_OBJECT_CORE)) {
        EXPECT_EQ(core.type(), WARREN_OBJECT_CORE);
        EXPECT_EQ(core.logical_index(), cores.size());
        EXPECT_EQ(core.children().size(), 2U);
        EXPECT_EQ(core.ancestor(WARREN_OBJECT_PACKAGE)->logical_index(), cores.size() / 4);
        EXPECT_EQ(core.nearest_memory()->os_index(), cores.size() / 2);
        EXPECT_EQ(*node.covering(core.cpus()), core);
        EXPECT_TRUE(core.is_below(node.machine()));
        cores.push_back(core.number());
    }
    for (std::uint32_t index = 0; index < 8; ++index) {
        EXPECT_EQ(cores[index], warren_topology_object(node.get(), WARREN_OBJECT_CORE, index));
    }
    auto at = node.objects(WARREN_OBJECT_CORE).begin(); // of a range that is gone
    auto before = at;
    before = at++;
    EXPECT_EQ((*before).number(), cores[0]);
    EXPECT_EQ((*at).number(), cores[1]);
    const auto pus = node.objects(WARREN_OBJECT_PU);
    EXPECT_EQ(pus[0].common_ancestor(pus[15])->number(), node.machine().number());
    EXPECT_EQ(pus[0].parent()->parent()->children(WARREN_CHILD_MEMORY).size(), 1U);
    EXPECT_STREQ(pus[3].type_name(), "PU");
    EXPECT_EQ(node.by_os_index(WARREN_OBJECT_PU, 5)->os_index(), 5U);
    EXPECT_EQ(node.nearest_memory_of_cpu(9)->os_index(), 2U);
    EXPECT_TRUE(node.value(WARREN_ATTRIBUTE_CAPACITY, 0, 1));
}

TEST(CppTopology, what_is_not_there_is_nothing) {
    const Topology node("synthetic:core:2 pu:1");
    EXPECT_FALSE(node.machine().parent());
    EXPECT_FALSE(node.by_os_index(WARREN_OBJECT_PU, 2));
    EXPECT_FALSE(node.machine().ancestor(WARREN_OBJECT_PACKAGE));
    EXPECT_TRUE(node.objects(WARREN_OBJECT_PCI_DEVICE).empty());
    EXPECT_FALSE(node.value(WARREN_ATTRIBUTE_CAPACITY, 0, 99));
    EXPECT_EQ(node.machine().name(), nullptr);
    try {
        const Topology none("nonsense");
        FAIL();
    } catch (const TopologyError& error) {
        EXPECT_EQ(error.code(), WARREN_TOPOLOGY_ERR_ARGUMENT);
        EXPECT_NE(std::string(error.what()).find("nonsense"), std::string::npos);
    }
}

TEST(CppTopology, sets_are_walked) {
    const Topology node("synthetic:package:2 core:3 pu:1");
    std::vector<std::uint32_t> seen;
    for (const std::uint32_t cpu : numbers(node.objects(WARREN_OBJECT_PACKAGE)[1].cpus())) {
        seen.push_back(cpu);
    }
    EXPECT_EQ(seen, (std::vector<std::uint32_t>{3, 4, 5}));
    Topology moved = Topology("synthetic:core:2 pu:1");
    EXPECT_EQ(moved.count(WARREN_OBJECT_PU), 2U);
}

} // namespace
} // namespace warren
