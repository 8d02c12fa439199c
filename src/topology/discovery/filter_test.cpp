// Allowed objects and filters give the same as a topology that hwloc has restricted to processors,
// or has loaded without types.
#include <cstdint>
#include <gtest/gtest.h>
#include <hwloc.h>
#include <random>
#include <sched.h>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "warren/topology.h"

namespace warren::discovery {

namespace {

constexpr const char* descriptions[] = {
    "package:2 [numa] l3:2 l2:2 l1d:1 core:1 pu:2",
    "package:3 die:2 [numa(memory=1GB)][numa(memory=2GB)] l2:3 core:2 pu:2",
    "package:2 l3:1 l2:4 l1d:1 core:1 pu:1",
    "[numa] package:2 [numa] l3:3 core:5 pu:1",
};

using Filters = std::vector<std::pair<hwloc_obj_type_t, hwloc_type_filter_e>>;

hwloc_topology_t load(const char* description, const Filters& filters) {
    hwloc_topology_t topology = nullptr;
    EXPECT_EQ(hwloc_topology_init(&topology), 0);
    EXPECT_EQ(hwloc_topology_set_synthetic(topology, description), 0);
    hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_ALL);
    for (const auto& [type, filter] : filters) {
        EXPECT_EQ(hwloc_topology_set_type_filter(topology, type, filter), 0);
    }
    EXPECT_EQ(hwloc_topology_load(topology), 0);
    return topology;
}

warren_topology* open(const std::string& source) {
    warren_topology* topology = nullptr;
    warren_topology_report report;
    EXPECT_EQ(warren_topology_open(source.c_str(), &topology, &report), 0) << report.problem;
    return topology;
}

// An object as both sides can say it: type, OS index, processors that are left.
using Fact = std::tuple<std::string, unsigned, std::vector<unsigned>>;

Fact fact_of(hwloc_obj_t object) {
    std::vector<unsigned> cpus;
    for (int cpu = hwloc_bitmap_first(object->cpuset); cpu >= 0;
         cpu = hwloc_bitmap_next(object->cpuset, cpu)) {
        cpus.push_back(static_cast<unsigned>(cpu));
    }
    return {hwloc_obj_type_string(object->type), object->os_index, cpus};
}

Fact fact_of(const warren_topology* topology, const warren_filter& filter, warren_object object) {
    const warren_set set = warren_object_cpus(topology, object);
    std::vector<unsigned> cpus;
    for (std::uint32_t cpu = warren_set_next(set, 0); cpu != WARREN_NO_INDEX;
         cpu = warren_set_next(set, cpu + 1)) {
        if (warren_set_has(filter.cpus, cpu) != 0) {
            cpus.push_back(cpu);
        }
    }
    return {warren_object_type_name(warren_object_type(topology, object)),
            warren_object_os_index(topology, object), cpus};
}

// Object by object, from the root down.
void compare(hwloc_obj_t theirs, const warren_topology* topology, const warren_filter& filter,
             warren_object ours) {
    ASSERT_EQ(fact_of(theirs), fact_of(topology, filter, ours));
    EXPECT_EQ(warren_filter_shows(topology, &filter, ours), 1);
    const std::pair<int, hwloc_obj_t> kinds[] = {{WARREN_CHILD_TREE, theirs->first_child},
                                                 {WARREN_CHILD_MEMORY, theirs->memory_first_child}};
    for (const auto& [kind, first] : kinds) {
        hwloc_obj_t child = first;
        warren_object own = WARREN_NO_OBJECT;
        for (;;) {
            own = warren_filter_next_child(topology, &filter, ours, kind, own);
            ASSERT_EQ(own == WARREN_NO_OBJECT, child == nullptr);
            if (child == nullptr) {
                break;
            }
            EXPECT_EQ(warren_filter_parent(topology, &filter, own), ours);
            compare(child, topology, filter, own);
            if (testing::Test::HasFailure()) {
                return;
            }
            child = child->next_sibling;
        }
    }
}

TEST(Filter, shows_what_is_left_of_a_restricted_topology) {
    std::mt19937 random(5); // NOLINT: repeatable
    for (const char* description : descriptions) {
        for (int round = 0; round < 6; ++round) {
            SCOPED_TRACE(std::string(description) + " " + std::to_string(round));
            hwloc_topology_t theirs = load(description, {});
            hwloc_bitmap_t left = hwloc_bitmap_alloc();
            std::vector<std::uint64_t> words(2);
            const int cpus = hwloc_get_nbobjs_by_type(theirs, HWLOC_OBJ_PU);
            for (int count = 1 + round * 2; count > 0; --count) {
                const auto cpu = static_cast<unsigned>(random() % static_cast<unsigned>(cpus));
                hwloc_bitmap_set(left, cpu);
                words[cpu / 64] |= std::uint64_t{1} << cpu % 64;
            }
            // The remaining memory is that of the remaining processors' nodes.
            std::vector<std::uint64_t> nodes(1);
            ASSERT_EQ(hwloc_topology_restrict(theirs, left, HWLOC_RESTRICT_FLAG_REMOVE_CPULESS), 0);
            for (hwloc_obj_t node = nullptr; (node = hwloc_get_next_obj_by_type(
                                                  theirs, HWLOC_OBJ_NUMANODE, node)) != nullptr;) {
                nodes[0] |= std::uint64_t{1} << node->os_index;
            }
            warren_topology* ours = open(std::string("synthetic:") + description);
            const warren_set own_cpus{words.data(), 0, 2};
            const warren_set own_nodes{nodes.data(), 0, 1};
            ASSERT_EQ(warren_topology_restrict(ours, &own_cpus, &own_nodes), 0);
            warren_filter filter{};
            ASSERT_EQ(warren_filter_make(ours, WARREN_ALL_TYPES, 0, &filter), 0);
            // hwloc 2.12 drops the level of dies when it restricts and one is left of each package.
            if (hwloc_get_nbobjs_by_type(theirs, HWLOC_OBJ_DIE) == 0 &&
                warren_filter_count(ours, &filter, WARREN_OBJECT_DIE) ==
                    warren_filter_count(ours, &filter, WARREN_OBJECT_PACKAGE)) {
                ASSERT_EQ(warren_filter_make(ours, WARREN_ALL_TYPES & ~(1U << WARREN_OBJECT_DIE), 0,
                                             &filter),
                          0);
            }
            compare(hwloc_get_root_obj(theirs), ours, filter, 0);
            EXPECT_EQ(warren_filter_count(ours, &filter, WARREN_OBJECT_PU),
                      static_cast<unsigned>(hwloc_get_nbobjs_by_type(theirs, HWLOC_OBJ_PU)));
            EXPECT_EQ(warren_set_count(warren_topology_available_cpus(ours)),
                      static_cast<unsigned>(hwloc_bitmap_weight(left)));
            warren_topology_close(ours);
            hwloc_bitmap_free(left);
            hwloc_topology_destroy(theirs);
        }
    }
}

TEST(Filter, leaves_types_out) {
    const std::pair<hwloc_obj_type_t, int> types[] = {{HWLOC_OBJ_PACKAGE, WARREN_OBJECT_PACKAGE},
                                                      {HWLOC_OBJ_L2CACHE, WARREN_OBJECT_L2_CACHE},
                                                      {HWLOC_OBJ_CORE, WARREN_OBJECT_CORE},
                                                      {HWLOC_OBJ_DIE, WARREN_OBJECT_DIE}};
    for (const char* description : descriptions) {
        for (unsigned choice = 0; choice < 1U << std::size(types); ++choice) {
            SCOPED_TRACE(std::string(description) + " " + std::to_string(choice));
            Filters filters;
            std::uint32_t shown = WARREN_ALL_TYPES;
            for (std::size_t type = 0; type < std::size(types); ++type) {
                if ((choice >> type & 1) != 0) {
                    filters.emplace_back(types[type].first, HWLOC_TYPE_FILTER_KEEP_NONE);
                    shown &= ~(1U << types[type].second);
                }
            }
            hwloc_topology_t theirs = load(description, filters);
            if (hwloc_get_nbobjs_by_type(theirs, HWLOC_OBJ_GROUP) > 0) {
                hwloc_topology_destroy(
                    theirs); // it has put others in their place, to attach memory to
                continue;
            }
            warren_topology* ours = open(std::string("synthetic:") + description);
            warren_filter filter{};
            ASSERT_EQ(warren_filter_make(ours, shown, 0, &filter), 0);
            compare(hwloc_get_root_obj(theirs), ours, filter, 0);
            warren_topology_close(ours);
            hwloc_topology_destroy(theirs);
        }
    }
}

// hwloc may keep the other of two levels that say the same.
TEST(Filter, leaves_out_levels_without_structure) {
    const std::vector<hwloc_obj_type_t> types = {HWLOC_OBJ_PACKAGE, HWLOC_OBJ_DIE,
                                                 HWLOC_OBJ_L3CACHE, HWLOC_OBJ_L2CACHE,
                                                 HWLOC_OBJ_L1CACHE, HWLOC_OBJ_CORE};
    for (const char* description : descriptions) {
        SCOPED_TRACE(description);
        Filters filters;
        for (const hwloc_obj_type_t type : types) {
            filters.emplace_back(type, HWLOC_TYPE_FILTER_KEEP_STRUCTURE);
        }
        hwloc_topology_t theirs = load(description, filters);
        warren_topology* ours = open(std::string("synthetic:") + description);
        warren_filter filter{};
        ASSERT_EQ(warren_filter_make(ours, WARREN_ALL_TYPES, WARREN_ALL_TYPES, &filter), 0);
        std::multiset<unsigned> their_counts;
        for (int depth = 0; depth < hwloc_topology_get_depth(theirs); ++depth) {
            their_counts.insert(hwloc_get_nbobjs_by_depth(theirs, depth));
        }
        std::multiset<unsigned> our_counts;
        for (std::uint32_t depth = 0; depth < warren_topology_depth(ours); ++depth) {
            int type = 0;
            warren_object first = 0;
            std::uint32_t count = 0;
            ASSERT_EQ(warren_topology_level(ours, depth, &type, &first, &count), 0);
            if (warren_filter_shows(ours, &filter, first) != 0) {
                our_counts.insert(count);
            }
        }
        EXPECT_EQ(our_counts, their_counts);
        EXPECT_EQ(warren_filter_count(ours, &filter, WARREN_OBJECT_NUMA_NODE),
                  warren_topology_count(ours, WARREN_OBJECT_NUMA_NODE));
        warren_topology_close(ours);
        hwloc_topology_destroy(theirs);
    }
}

TEST(Available, is_what_the_thread_is_bound_to) {
    cpu_set_t before;
    ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
    int cpu = CPU_SETSIZE - 1;
    while (cpu > 0 && !CPU_ISSET(cpu, &before)) {
        --cpu;
    }
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    warren_topology* ours = open("native");
    sched_setaffinity(0, sizeof before, &before);
    const warren_set available = warren_topology_available_cpus(ours);
    EXPECT_EQ(warren_set_count(available), 1U);
    EXPECT_EQ(warren_set_has(available, static_cast<std::uint32_t>(cpu)), 1);
    EXPECT_GE(warren_set_count(warren_topology_available_nodes(ours)), 1U);
    warren_topology_close(ours);

    // Another machine's processors have nothing to do with this thread.
    ours = open("synthetic:core:300 pu:1");
    EXPECT_EQ(warren_set_count(warren_topology_available_cpus(ours)), 300U);
    warren_topology_close(ours);
}

TEST(Filter, refuses_wrong_arguments) {
    warren_topology* ours = open("synthetic:package:2 pu:2");
    warren_filter filter{};
    EXPECT_EQ(warren_filter_make(ours, WARREN_ALL_TYPES + 1, 0, &filter),
              WARREN_TOPOLOGY_ERR_ARGUMENT);
    EXPECT_EQ(warren_filter_make(ours, 0, 0, nullptr), WARREN_TOPOLOGY_ERR_ARGUMENT);
    ASSERT_EQ(warren_filter_make(ours, 0, 0, &filter), 0); // machine and processors
    EXPECT_EQ(warren_filter_count(ours, &filter, WARREN_OBJECT_PACKAGE), 0U);
    EXPECT_EQ(warren_filter_count(ours, &filter, WARREN_OBJECT_PU), 4U);
    EXPECT_EQ(warren_filter_count(ours, &filter, -1), 0U);
    EXPECT_EQ(warren_filter_next_child(ours, &filter, 99, 0, WARREN_NO_OBJECT), WARREN_NO_OBJECT);
    EXPECT_EQ(warren_filter_next_child(ours, &filter, 0, 7, WARREN_NO_OBJECT), WARREN_NO_OBJECT);
    EXPECT_EQ(warren_filter_next_child(ours, &filter, 1, 0, 0), WARREN_NO_OBJECT); // no child of it
    EXPECT_EQ(warren_filter_parent(ours, &filter, 99), WARREN_NO_OBJECT);
    EXPECT_EQ(warren_filter_shows(ours, nullptr, 0), 0);
    const warren_set bad{nullptr, 0, 3};
    EXPECT_EQ(warren_topology_restrict(ours, &bad, nullptr), WARREN_TOPOLOGY_ERR_ARGUMENT);
    filter.cpus = bad;
    EXPECT_EQ(warren_filter_shows(ours, &filter, 0), 0);
    warren_topology_close(ours);
}

} // namespace

} // namespace warren::discovery
