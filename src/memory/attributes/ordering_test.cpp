#include "memory/attributes/ordering.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <string>

namespace warren::memory {
namespace {

// Memories of the machine of figure 1 in Rubio Proaño 2020, as a core of the first cluster sees
// them: bandwidth (MB/s), latency (ns), capacity (GB), processors that it is local to.
struct Memory {
    const char* name;
    std::uint64_t bandwidth, latency, capacity, locality;
};
constexpr Memory figure1[] = {{"DDR", 90000, 100, 192, 4},
                              {"HBM", 200000, 120, 16, 2},
                              {"network", 5000, 2500, 64, 8},
                              {"NVDIMM", 12000, 350, 768, 4}};

struct Key {
    std::uint64_t Memory::*value;
    bool more_is_better;
    double tolerance;
};

// "HBM > DDR = NVDIMM > network"
std::string ordered(const std::vector<Key>& keys) {
    std::vector<Candidate> candidates;
    for (std::uint32_t node = 0; node < std::size(figure1); ++node) {
        candidates.push_back({node, Relation::local, 10});
    }
    std::vector<std::vector<std::uint64_t>> values;
    for (const Key& key : keys) {
        values.emplace_back();
        for (const Memory& memory : figure1) {
            values.back().push_back(memory.*key.value);
        }
    }
    std::vector<Column> columns;
    for (std::size_t key = 0; key < keys.size(); ++key) {
        columns.push_back({keys[key].more_is_better, keys[key].tolerance, values[key]});
    }
    std::string text;
    std::uint32_t tier = 0;
    for (const Placed& placed : order(candidates, columns)) {
        text += text.empty() ? "" : placed.tier == tier ? " = " : " > ";
        text += figure1[placed.candidate].name;
        tier = placed.tier;
    }
    return text;
}

constexpr Key by_bandwidth{&Memory::bandwidth, true, 0.25};
constexpr Key by_latency{&Memory::latency, false, 0.25};
constexpr Key by_capacity{&Memory::capacity, true, 0};
constexpr Key by_locality{&Memory::locality, false, 0};

TEST(Ordering, ThePapersFourInequalitiesHold) {
    EXPECT_EQ(ordered({by_bandwidth}), "HBM > DDR > NVDIMM > network");
    EXPECT_EQ(ordered({by_latency}), "DDR = HBM > NVDIMM > network");
    EXPECT_EQ(ordered({by_capacity}), "NVDIMM > DDR > network > HBM");
    EXPECT_EQ(ordered({by_locality}), "HBM > DDR = NVDIMM > network");
}

TEST(Ordering, AmongNearEqualsTheNextAttributeDecides) {
    EXPECT_EQ(ordered({by_latency, by_capacity}), "DDR > HBM > NVDIMM > network");
    EXPECT_EQ(ordered({by_latency, by_bandwidth}), "HBM > DDR > NVDIMM > network");
    EXPECT_EQ(ordered({by_locality, by_latency}), "HBM > DDR > NVDIMM > network");
    EXPECT_EQ(ordered({{&Memory::latency, false, 0}, by_bandwidth}),
              "DDR > HBM > NVDIMM > network");
    EXPECT_EQ(ordered({}), "DDR = HBM = network = NVDIMM");
}

TEST(Ordering, TheLimitOfTheToleranceIsWithinIt) {
    EXPECT_EQ(ordered({{&Memory::latency, false, 0.2}}), "DDR = HBM > NVDIMM > network");
    EXPECT_EQ(ordered({{&Memory::latency, false, 0.1999}}), "DDR > HBM > NVDIMM > network");
    const std::uint64_t bandwidths[] = {120, 100};
    const Column column{true, 0.2, bandwidths};
    EXPECT_TRUE(equals_leader(column, 120, 100));
    EXPECT_FALSE(equals_leader(column, 121, 100));
}

TEST(Ordering, ChainsOfNearEqualsBreakAtTheLeadersTolerance) {
    // Each is within a fifth of the next, the ends are not: 100 leads up to 120, 130 up to 156.
    const std::uint64_t latencies[] = {145, 100, 130, 115};
    std::vector<Candidate> candidates;
    for (std::uint32_t node = 0; node < 4; ++node) {
        candidates.push_back({node, Relation::local, 10});
    }
    const Column column{false, 0.2, latencies};
    const std::vector<Placed> placed = order(candidates, {&column, 1});
    std::map<std::uint64_t, std::uint32_t> tiers;
    for (const Placed& place : placed) {
        tiers[latencies[place.candidate]] = place.tier;
    }
    EXPECT_EQ(tiers,
              (std::map<std::uint64_t, std::uint32_t>{{100, 0}, {115, 0}, {130, 1}, {145, 1}}));
}

TEST(Ordering, LocalOnesComeFirstHoweverGoodTheOthersAre) {
    const Candidate candidates[] = {{0, Relation::device, 10},
                                    {1, Relation::remote, 10},
                                    {2, Relation::cpuless, 10},
                                    {3, Relation::local, 40}};
    const std::uint64_t bandwidths[] = {900, 800, 700, no_value};
    const Column column{true, 0.25, bandwidths};
    std::vector<std::uint32_t> nodes;
    for (const Placed& place : order(candidates, {&column, 1})) {
        EXPECT_EQ(place.tier, nodes.size()); // never equal
        nodes.push_back(candidates[place.candidate].node);
    }
    EXPECT_EQ(nodes, (std::vector<std::uint32_t>{3, 1, 2, 0}));
}

TEST(Ordering, WhatHasNoValueComesLast) {
    const Candidate candidates[] = {{0, Relation::local, 10}, {1, Relation::local, 10}};
    for (const bool more : {false, true}) {
        const std::uint64_t values[] = {no_value, 1};
        const Column column{more, 10, values};
        const std::vector<Placed> placed = order(candidates, {&column, 1});
        EXPECT_EQ(candidates[placed[0].candidate].node, 1U);
        EXPECT_EQ(placed[1].tier, 1U);
    }
}

// Whatever the values: the result is a strict weak order that does not depend on how the candidates
// are given, sorted by the leaders' values, with groups no wider than the tolerance.
TEST(Ordering, RandomSetsHaveOneOrder) {
    std::mt19937 random(3);
    for (int round = 0; round < 3000; ++round) {
        const std::size_t count = random() % 12;
        const std::size_t keys = random() % 4;
        std::vector<Candidate> candidates;
        std::vector<std::vector<std::uint64_t>> values(keys);
        for (std::uint32_t node = 0; node < count; ++node) {
            candidates.push_back({node, Relation(random() % 3), random() % 3});
            for (auto& column : values) {
                column.push_back(random() % 8 == 0 ? no_value : random() % 60);
            }
        }
        std::vector<Column> columns;
        for (const auto& column : values) {
            columns.push_back({random() % 2 == 0, 0.2 * static_cast<double>(random() % 3), column});
        }
        const std::vector<Placed> placed = order(candidates, columns);
        ASSERT_EQ(placed.size(), count);
        std::uint32_t tier = 0;
        std::vector<bool> seen(count);
        for (std::size_t place = 0; place < count; ++place) {
            ASSERT_FALSE(seen[placed[place].candidate]);
            seen[placed[place].candidate] = true;
            ASSERT_TRUE(placed[place].tier == tier ||
                        (place > 0 && placed[place].tier == tier + 1));
            tier = placed[place].tier;
        }
        for (std::size_t one = 0; one < count; ++one) {
            for (std::size_t other = one + 1; other < count; ++other) {
                const std::size_t first = placed[one].candidate;
                const std::size_t second = placed[other].candidate;
                ASSERT_LE(candidates[first].relation, candidates[second].relation);
                if (placed[one].tier != placed[other].tier) {
                    continue;
                }
                ASSERT_EQ(candidates[first].relation, candidates[second].relation);
                for (const Column& column : columns) {
                    const std::uint64_t a = column.values[first];
                    const std::uint64_t b = column.values[second];
                    const bool first_better = column.more_is_better ? a > b : a < b;
                    ASSERT_TRUE(equals_leader(column, first_better ? a : b, first_better ? b : a));
                }
            }
        }
        // Shuffles the set.
        std::vector<std::size_t> shuffle(count);
        for (std::size_t i = 0; i < count; ++i) {
            shuffle[i] = i;
        }
        std::shuffle(shuffle.begin(), shuffle.end(), random);
        std::vector<Candidate> moved;
        std::vector<std::vector<std::uint64_t>> moved_values(keys);
        for (const std::size_t i : shuffle) {
            moved.push_back(candidates[i]);
            for (std::size_t key = 0; key < keys; ++key) {
                moved_values[key].push_back(values[key][i]);
            }
        }
        std::vector<Column> moved_columns = columns;
        for (std::size_t key = 0; key < keys; ++key) {
            moved_columns[key].values = moved_values[key];
        }
        const std::vector<Placed> again = order(moved, moved_columns);
        for (std::size_t place = 0; place < count; ++place) {
            ASSERT_EQ(moved[again[place].candidate].node, candidates[placed[place].candidate].node);
            ASSERT_EQ(again[place].tier, placed[place].tier);
        }
    }
}

} // namespace
} // namespace warren::memory
