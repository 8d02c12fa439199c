// What Warren says of the memories of one of the machines in machines.py, asked on it: values with
// their origin, orders and best targets from every processor, and files of measured values.
//     machine_attributes MACHINE
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "topology/values_file.hpp"
#include "warren/memory.h"
#include "warren/topology.h"

namespace {

using Tiers = std::vector<std::set<unsigned>>;

class Node {
  public:
    Node() {
        EXPECT_EQ(warren_topology_open("native", &topology_, &report_), WARREN_TOPOLOGY_SUCCESS)
            << report_.problem;
        EXPECT_EQ(warren_mem_open(topology_, &memory_), WARREN_MEM_SUCCESS);
    }
    ~Node() {
        warren_mem_close(memory_);
        warren_topology_close(topology_);
    }
    Node(const Node&) = delete;
    Node& operator=(const Node&) = delete;

    const warren_topology* topology() const { return topology_; }
    warren_memory* memory() const { return memory_; }
    std::string problem() const { return report_.problem; }

    // Equal targets together, the best first.
    Tiers order(const std::string& criteria) const {
        warren_mem_criteria* parsed = nullptr;
        EXPECT_EQ(warren_mem_criteria_parse(criteria.c_str(), &parsed), WARREN_MEM_SUCCESS)
            << warren_mem_error();
        unsigned nodes[64];
        unsigned tiers[64];
        std::size_t count = 0;
        EXPECT_EQ(warren_mem_get_ordering(memory_, parsed, 64, nodes, tiers, &count),
                  WARREN_MEM_SUCCESS)
            << criteria << ": " << warren_mem_error();
        Tiers order;
        for (std::size_t place = 0; place < count; ++place) {
            order.resize(tiers[place] + 1);
            order.back().insert(nodes[place]);
        }
        warren_mem_criteria_free(parsed);
        return order;
    }

    std::uint64_t value(int attribute, unsigned cpu, unsigned node, int* origin = nullptr) const {
        std::uint64_t value = 0;
        EXPECT_EQ(warren_mem_get_value(memory_, attribute, ("cpus:" + std::to_string(cpu)).c_str(),
                                       node, &value, origin),
                  WARREN_MEM_SUCCESS)
            << warren_mem_error();
        return value;
    }

  private:
    warren_topology* topology_ = nullptr;
    warren_memory* memory_ = nullptr;
    warren_topology_report report_{};
};

// What is expected of a machine from a processor: criteria and the order of the local memories.
struct Machine {
    unsigned processors;
    std::function<std::map<std::string, Tiers>(unsigned cpu)> local_orders;
    std::function<std::pair<unsigned, unsigned>(unsigned cpu, unsigned node)> firmware; // ns, MB/s
};

std::map<std::string, Machine> machines() {
    std::map<std::string, Machine> made;
    // The paper's four inequalities, first: HBM 0-3, DDR 4 and 5, NVDIMM 6 and 7, network 8.
    made["fig1-2020"] = {8,
                         [](unsigned cpu) {
                             const unsigned hbm = cpu / 2;
                             const unsigned ddr = 4 + cpu / 4;
                             const unsigned nvdimm = 6 + cpu / 4;
                             return std::map<std::string, Tiers>{
                                 {"bandwidth", {{hbm}, {ddr}, {nvdimm}, {8}}},
                                 {"latency", {{ddr, hbm}, {nvdimm}, {8}}},
                                 {"locality", {{hbm}, {ddr, nvdimm}, {8}}},
                                 // HBM and the memory on the network have nearly the same here.
                                 {"capacity~60%", {{nvdimm, ddr}, {hbm, 8}}},
                                 {"latency,capacity", {{ddr}, {hbm}, {nvdimm}, {8}}},
                                 {"latency,bandwidth", {{hbm}, {ddr}, {nvdimm}, {8}}},
                                 {"latency~0%", {{ddr}, {hbm}, {nvdimm}, {8}}}};
                         },
                         [](unsigned, unsigned node) {
                             return node < 4   ? std::pair(120U, 200000U)
                                    : node < 6 ? std::pair(100U, 90000U)
                                    : node < 8 ? std::pair(350U, 12000U)
                                               : std::pair(2500U, 5000U);
                         }};
    made["knl-snc4-flat"] = {
        8,
        [](unsigned cpu) {
            const unsigned ddr = cpu / 2;
            const unsigned hbm = 4 + cpu / 2;
            return std::map<std::string, Tiers>{{"bandwidth", {{hbm}, {ddr}}},
                                                {"latency", {{ddr, hbm}}},
                                                {"capacity", {{ddr}, {hbm}}},
                                                {"latency,capacity", {{ddr}, {hbm}}},
                                                {"latency,bandwidth", {{hbm}, {ddr}}}};
        },
        [](unsigned, unsigned node) {
            return node < 4 ? std::pair(130U, 22500U) : std::pair(155U, 87500U);
        }};
    made["xeon-nvdimm"] = {4,
                           [](unsigned cpu) {
                               const unsigned ddr = cpu / 2;
                               const unsigned nvdimm = 2 + cpu / 2;
                               return std::map<std::string, Tiers>{
                                   {"bandwidth", {{ddr}, {nvdimm}}},
                                   {"read_bandwidth", {{ddr}, {nvdimm}}},
                                   {"write_bandwidth", {{ddr}, {nvdimm}}},
                                   {"latency", {{ddr}, {nvdimm}}},
                                   {"read_latency", {{ddr}, {nvdimm}}},
                                   // Writes end in the memory's buffers.
                                   {"write_latency", {{ddr, nvdimm}}},
                                   {"write_latency~0%", {{nvdimm}, {ddr}}},
                                   {"write_latency,capacity", {{nvdimm}, {ddr}}},
                                   {"write_latency,read_latency", {{ddr}, {nvdimm}}},
                                   {"locality", {{ddr, nvdimm}}},
                                   {"capacity", {{nvdimm}, {ddr}}}};
                           },
                           [](unsigned, unsigned node) {
                               // What is said of both is the mean of reads and writes.
                               return node < 2 ? std::pair(285U, 70000U) : std::pair(550U, 6000U);
                           }};
    made["xeon-2lm"] = {4,
                        [](unsigned cpu) {
                            return std::map<std::string, Tiers>{{"bandwidth", {{cpu / 2}}},
                                                                {"latency", {{cpu / 2}}}};
                        },
                        [](unsigned, unsigned) { return std::pair(300U, 60000U); }};
    made["epyc-nps2-16"] = {16,
                            [](unsigned cpu) {
                                return std::map<std::string, Tiers>{{"bandwidth", {{cpu / 4}}},
                                                                    {"latency", {{cpu / 4}}}};
                            },
                            [](unsigned, unsigned) { return std::pair(90U, 40000U); }};
    return made;
}

std::string name;

const Machine& machine() {
    static const std::map<std::string, Machine> all = machines();
    return all.at(name);
}

std::string from(unsigned cpu) {
    return " from=cpus:" + std::to_string(cpu);
}

TEST(Attributes, LocalMemoriesAreOrderedFromEveryProcessor) {
    const Node node;
    EXPECT_EQ(node.problem(), "");
    for (unsigned cpu = 0; cpu < machine().processors; ++cpu) {
        for (const auto& [criteria, expected] : machine().local_orders(cpu)) {
            EXPECT_EQ(node.order(criteria + from(cpu) + " targets=local"), expected)
                << criteria << from(cpu);
        }
    }
}

TEST(Attributes, CapacitiesAreAsInThePaper) {
    if (name != "fig1-2020") {
        GTEST_SKIP() << "fig1-2020 only";
    }
    const Node node;
    for (unsigned cpu = 0; cpu < machine().processors; ++cpu) {
        const auto capacity = [&](unsigned memory) {
            return node.value(WARREN_MEM_CAPACITY, cpu, memory);
        };
        EXPECT_GT(capacity(6 + cpu / 4), capacity(4 + cpu / 4));
        EXPECT_GT(capacity(4 + cpu / 4), capacity(cpu / 2));
    }
}

TEST(Attributes, LocalMemoriesComeFirstAndAllFollow) {
    const Node node;
    std::size_t count = 0;
    ASSERT_EQ(warren_mem_get_targets(node.memory(), 0, nullptr, &count), WARREN_MEM_SUCCESS);
    for (unsigned cpu = 0; cpu < machine().processors; ++cpu) {
        for (const auto& [criteria, expected] : machine().local_orders(cpu)) {
            const Tiers all = node.order(criteria + from(cpu));
            std::size_t seen = 0;
            for (std::size_t tier = 0; tier < all.size(); ++tier) {
                seen += all[tier].size();
                if (tier < expected.size()) {
                    EXPECT_EQ(all[tier], expected[tier]) << criteria << from(cpu);
                }
            }
            EXPECT_EQ(seen, count);
        }
    }
}

TEST(Attributes, RemoteMemoriesOfTwoDistancesAreApart) {
    if (name != "epyc-nps2-16") {
        GTEST_SKIP() << "epyc-nps2-16 only";
    }
    const Node node;
    for (unsigned cpu = 0; cpu < machine().processors; ++cpu) {
        const unsigned own = cpu / 4;
        const unsigned other = own < 2 ? 2 : 0;
        EXPECT_EQ(node.order("latency" + from(cpu)),
                  (Tiers{{own}, {own ^ 1U}, {other, other + 1}}));
    }
}

TEST(Attributes, ValuesHaveTheirOrigin) {
    const Node node;
    for (unsigned cpu = 0; cpu < machine().processors; ++cpu) {
        std::set<unsigned> local;
        const std::map<std::string, Tiers> orders = machine().local_orders(cpu);
        for (const std::set<unsigned>& tier : orders.at("latency")) {
            local.insert(tier.begin(), tier.end());
        }
        std::size_t count = 0;
        unsigned nodes[64];
        ASSERT_EQ(warren_mem_get_targets(node.memory(), 64, nodes, &count), WARREN_MEM_SUCCESS);
        for (std::size_t target = 0; target < count; ++target) {
            int latency_origin = 0;
            int bandwidth_origin = 0;
            const std::uint64_t latency =
                node.value(WARREN_MEM_LATENCY, cpu, nodes[target], &latency_origin);
            const std::uint64_t bandwidth =
                node.value(WARREN_MEM_BANDWIDTH, cpu, nodes[target], &bandwidth_origin);
            EXPECT_GT(latency, 0U);
            EXPECT_GT(bandwidth, 0U);
            if (!local.contains(nodes[target])) {
                EXPECT_EQ(latency_origin, WARREN_ORIGIN_GUESSED);
                continue;
            }
            const auto [expected_latency, expected_bandwidth] =
                machine().firmware(cpu, nodes[target]);
            EXPECT_EQ(latency_origin, WARREN_ORIGIN_FIRMWARE);
            EXPECT_EQ(bandwidth_origin, WARREN_ORIGIN_FIRMWARE);
            EXPECT_EQ(latency, expected_latency);
            EXPECT_EQ(bandwidth, expected_bandwidth);
        }
    }
}

// Asked the other way round: of every memory, from where it is reached best, and how well.
TEST(Attributes, InitiatorsOfEveryMemoryAreToldTheBestFirst) {
    const Node node;
    std::map<unsigned, std::set<unsigned>> near; // processors that a memory is local to
    for (unsigned cpu = 0; cpu < machine().processors; ++cpu) {
        const Tiers tiers = machine().local_orders(cpu).at("latency");
        for (const std::set<unsigned>& tier : tiers) {
            for (const unsigned memory : tier) {
                near[memory].insert(cpu);
            }
        }
    }
    std::size_t count = 0;
    unsigned nodes[64];
    ASSERT_EQ(warren_mem_get_targets(node.memory(), 64, nodes, &count), WARREN_MEM_SUCCESS);
    ASSERT_EQ(near.size(), count);
    for (std::size_t target = 0; target < count; ++target) {
        for (const int attribute : {WARREN_MEM_LATENCY, WARREN_MEM_BANDWIDTH}) {
            const std::string what = std::string(warren_mem_attribute_name(attribute)) + " of " +
                                     std::to_string(nodes[target]);
            std::set<unsigned> best;
            std::set<unsigned> all;
            std::uint64_t first = 0;
            std::uint64_t before = 0;
            std::uint64_t value = 0;
            int origin = 0;
            unsigned char mask[8];
            for (std::size_t index = 0;
                 warren_mem_get_initiator(node.memory(), attribute, nodes[target], index, mask,
                                          sizeof mask, &value, &origin) == WARREN_MEM_SUCCESS;
                 ++index, before = value) {
                first = index == 0 ? value : first;
                if (index != 0 && attribute == WARREN_MEM_LATENCY) {
                    EXPECT_GE(value, before) << what;
                } else if (index != 0) {
                    EXPECT_LE(value, before) << what;
                }
                for (unsigned cpu = 0; cpu < 8 * sizeof mask; ++cpu) {
                    if ((mask[cpu / 8] >> cpu % 8 & 1) == 0) {
                        continue;
                    }
                    EXPECT_TRUE(all.insert(cpu).second)
                        << what << ": processor " << cpu << " twice";
                    int its_origin = 0;
                    EXPECT_EQ(node.value(attribute, cpu, nodes[target], &its_origin), value)
                        << what << " from " << cpu;
                    EXPECT_EQ(its_origin, origin);
                    if (value == first) {
                        best.insert(cpu);
                        EXPECT_EQ(origin, WARREN_ORIGIN_FIRMWARE) << what;
                    }
                }
            }
            EXPECT_EQ(all.size(), machine().processors) << what;
            EXPECT_EQ(best, near[nodes[target]]) << what;
        }
    }
}

// Of every page of a block the kernel is asked where it is.
TEST(Attributes, BestTargetsOfEveryProcessorGetItsPages) {
    const Node node;
    for (unsigned cpu = 0; cpu < machine().processors; ++cpu) {
        for (const auto& [text, expected] : machine().local_orders(cpu)) {
            warren_mem_criteria* criteria = nullptr;
            ASSERT_EQ(warren_mem_criteria_parse((text + from(cpu)).c_str(), &criteria),
                      WARREN_MEM_SUCCESS);
            unsigned best = ~0U;
            EXPECT_EQ(warren_mem_get_best_target(node.memory(), criteria, &best),
                      WARREN_MEM_SUCCESS);
            EXPECT_TRUE(expected.front().contains(best)) << text << from(cpu) << ": " << best;
            constexpr std::size_t bytes = 100'000;
            void* block = warren_mem_alloc(bytes, criteria);
            ASSERT_NE(block, nullptr) << warren_mem_error();
            int nodes[bytes / 4096 + 2];
            std::size_t count = 0;
            ASSERT_EQ(warren_mem_where(block, bytes, std::size(nodes), nodes, &count),
                      WARREN_MEM_SUCCESS);
            EXPECT_GE(count, bytes / 4096);
            for (std::size_t page = 0; page < count; ++page) {
                EXPECT_EQ(nodes[page], static_cast<int>(best)) << text << from(cpu);
            }
            warren_mem_free(block);
            warren_mem_criteria_free(criteria);
        }
    }
}

// Blocks by criteria fill the best memory, then the second, and go on to the third.
TEST(Attributes, BlocksSpillInTheOrderOfTheCriteria) {
    const Node node;
    const std::string text = "bandwidth" + from(machine().processors - 1);
    std::vector<unsigned> order;
    for (const std::set<unsigned>& tier : node.order(text)) {
        if (tier.size() != 1) {
            break; // equals are taken in any order
        }
        order.push_back(*tier.begin());
    }
    if (order.size() < 2) {
        GTEST_SKIP() << "only equal memories";
    }
    order.resize(std::min<std::size_t>(order.size(), 3));
    warren_mem_criteria* criteria = nullptr;
    ASSERT_EQ(warren_mem_criteria_parse(text.c_str(), &criteria), WARREN_MEM_SUCCESS);
    std::vector<std::size_t> free;
    for (const unsigned target : order) {
        free.push_back(node.value(WARREN_MEM_AVAILABLE, 0, target) / 4096);
    }
    constexpr std::size_t bytes = 4 << 20;
    std::vector<std::size_t> pages(order.size());
    std::vector<void*> blocks;
    std::vector<int> nodes(bytes / 4096 + 1);
    while (pages.back() < 2 * bytes / 4096 && !HasFailure()) {
        blocks.push_back(warren_mem_alloc(bytes, criteria));
        std::size_t count = 0;
        ASSERT_NE(blocks.back(), nullptr) << warren_mem_error();
        ASSERT_EQ(warren_mem_where(blocks.back(), bytes, nodes.size(), nodes.data(), &count),
                  WARREN_MEM_SUCCESS);
        for (std::size_t page = 0; page < count; ++page) {
            const auto place = static_cast<std::size_t>(
                std::find(order.begin(), order.end(), static_cast<unsigned>(nodes[page])) -
                order.begin());
            ASSERT_LT(place, order.size()) << "a page on node " << nodes[page];
            ++pages[place];
            for (std::size_t before = 0; before < place; ++before) {
                EXPECT_GE(pages[before] * 10, free[before] * 7)
                    << "a page on node " << order[place] << " before " << order[before]
                    << " was full";
            }
        }
    }
    for (void* block : blocks) {
        warren_mem_free(block);
    }
    warren_mem_criteria_free(criteria);
}

struct Criteria {
    explicit Criteria(const std::string& text) {
        EXPECT_EQ(warren_mem_criteria_parse(text.c_str(), &own), WARREN_MEM_SUCCESS)
            << warren_mem_error();
    }
    ~Criteria() { warren_mem_criteria_free(own); }
    Criteria(const Criteria&) = delete;
    Criteria& operator=(const Criteria&) = delete;

    warren_mem_criteria* own = nullptr;
};

// The nodes that pages of a block are on, asked of the kernel.
std::set<int> nodes_of(const void* block, std::size_t bytes) {
    std::vector<int> nodes(bytes / 4096 + 2);
    std::size_t count = 0;
    EXPECT_EQ(warren_mem_where(block, bytes, nodes.size(), nodes.data(), &count),
              WARREN_MEM_SUCCESS);
    EXPECT_GE(count, bytes / 4096);
    return {nodes.begin(), nodes.begin() + static_cast<std::ptrdiff_t>(count)};
}

// What the best memory does not have is refused, with the reason, and nothing of it is kept.
TEST(Attributes, StrictBlocksAreRefusedWhenTheirMemoryIsFull) {
    const Node node;
    const std::string text = "latency~0%" + from(machine().processors - 1);
    const Criteria strict(text + " full=strict");
    unsigned best = ~0U;
    ASSERT_EQ(warren_mem_get_best_target(node.memory(), strict.own, &best), WARREN_MEM_SUCCESS);
    const std::uint64_t free = node.value(WARREN_MEM_AVAILABLE, 0, best);
    EXPECT_EQ(warren_mem_alloc(free + (64U << 20), strict.own), nullptr);
    EXPECT_NE(std::string(warren_mem_error()), "");
    constexpr std::size_t bytes = 3 << 20;
    std::vector<void*> blocks;
    while (void* block = warren_mem_alloc(bytes, strict.own)) {
        blocks.push_back(block);
        ASSERT_LE(blocks.size() * bytes, node.value(WARREN_MEM_CAPACITY, 0, best));
        EXPECT_EQ(nodes_of(block, bytes), (std::set<int>{static_cast<int>(best)}));
    }
    EXPECT_GE(blocks.size() * bytes * 10, free * 7);
    // Those that may go elsewhere do.
    const Criteria next(text);
    void* block = warren_mem_alloc(64U << 20, next.own);
    ASSERT_NE(block, nullptr) << warren_mem_error();
    EXPECT_NE(nodes_of(block, 64U << 20), (std::set<int>{static_cast<int>(best)}));
    warren_mem_free(block);
    for (void* each : blocks) {
        warren_mem_free(each);
    }
    EXPECT_GE(node.value(WARREN_MEM_AVAILABLE, 0, best) * 10, free * 8);
}

TEST(Attributes, BlocksMoveToWhereOtherCriteriaSay) {
    const Node node;
    const unsigned last = machine().processors - 1;
    for (const std::size_t bytes : {std::size_t{5000}, std::size_t{5} << 20}) {
        const Criteria here("latency~0%" + from(0) + " full=strict");
        const Criteria there("latency~0%" + from(last) + " full=strict");
        unsigned first = ~0U;
        unsigned second = ~0U;
        ASSERT_EQ(warren_mem_get_best_target(node.memory(), here.own, &first), WARREN_MEM_SUCCESS);
        ASSERT_EQ(warren_mem_get_best_target(node.memory(), there.own, &second),
                  WARREN_MEM_SUCCESS);
        ASSERT_NE(first, second);
        auto* block = static_cast<unsigned char*>(warren_mem_alloc(bytes, here.own));
        ASSERT_NE(block, nullptr) << warren_mem_error();
        for (std::size_t i = 0; i < bytes; ++i) {
            block[i] = static_cast<unsigned char>(i * 7);
        }
        EXPECT_EQ(nodes_of(block, bytes), (std::set<int>{static_cast<int>(first)}));
        block = static_cast<unsigned char*>(warren_mem_move(block, there.own));
        ASSERT_NE(block, nullptr) << warren_mem_error();
        EXPECT_EQ(nodes_of(block, bytes), (std::set<int>{static_cast<int>(second)}));
        for (std::size_t i = 0; i < bytes; ++i) {
            ASSERT_EQ(block[i], static_cast<unsigned char>(i * 7)) << i;
        }
        warren_mem_free(block);
    }
}

TEST(Attributes, ReadsAndWritesAreApart) {
    if (name != "xeon-nvdimm") {
        GTEST_SKIP() << "xeon-nvdimm only";
    }
    const Node node;
    for (unsigned cpu = 0; cpu < machine().processors; ++cpu) {
        const unsigned ddr = cpu / 2;
        const unsigned nvdimm = 2 + cpu / 2;
        const std::map<std::pair<int, unsigned>, std::uint64_t> expected = {
            {{WARREN_MEM_READ_LATENCY, ddr}, 285},
            {{WARREN_MEM_WRITE_LATENCY, ddr}, 285},
            {{WARREN_MEM_READ_BANDWIDTH, ddr}, 80000},
            {{WARREN_MEM_WRITE_BANDWIDTH, ddr}, 60000},
            {{WARREN_MEM_READ_LATENCY, nvdimm}, 860},
            {{WARREN_MEM_WRITE_LATENCY, nvdimm}, 240},
            {{WARREN_MEM_READ_BANDWIDTH, nvdimm}, 10000},
            {{WARREN_MEM_WRITE_BANDWIDTH, nvdimm}, 2000}};
        for (const auto& [what, value] : expected) {
            int origin = 0;
            EXPECT_EQ(node.value(what.first, cpu, what.second, &origin), value)
                << warren_mem_attribute_name(what.first) << " of " << what.second;
            EXPECT_EQ(origin, WARREN_ORIGIN_FIRMWARE);
        }
    }
}

TEST(Attributes, CachesOfMemoryAreKnown) {
    const Node node;
    const unsigned expected = name == "xeon-2lm" ? 2 : 0;
    ASSERT_EQ(warren_topology_count(node.topology(), WARREN_OBJECT_MEMORY_CACHE), expected);
    for (unsigned index = 0; index < expected; ++index) {
        warren_cache cache{};
        ASSERT_EQ(warren_object_cache(
                      node.topology(),
                      warren_topology_object(node.topology(), WARREN_OBJECT_MEMORY_CACHE, index),
                      &cache),
                  WARREN_TOPOLOGY_SUCCESS);
        EXPECT_EQ(cache.bytes, 64U << 20);
    }
}

TEST(Attributes, WhatIsAvailableIsPartOfTheCapacity) {
    const Node node;
    std::size_t count = 0;
    unsigned nodes[64];
    ASSERT_EQ(warren_mem_get_targets(node.memory(), 64, nodes, &count), WARREN_MEM_SUCCESS);
    for (std::size_t target = 0; target < count; ++target) {
        const std::uint64_t available = node.value(WARREN_MEM_AVAILABLE, 0, nodes[target]);
        EXPECT_GT(available, 0U);
        EXPECT_LE(available, node.value(WARREN_MEM_CAPACITY, 0, nodes[target]));
    }
    EXPECT_FALSE(node.order("available").empty()); // from here
}

class ValuesFile : public testing::Test {
  protected:
    ~ValuesFile() override { unsetenv("WARREN_MEMORY_VALUES"); }

    static void put(const warren::topology::ValuesFile& file) {
        std::ofstream("/run/values") << warren::topology::text_of(file);
        setenv("WARREN_MEMORY_VALUES", "/run/values", 1);
    }
};

// From processor 0 and those beside it, what was the worst of its memories becomes the best.
TEST_F(ValuesFile, OverridesTheFirmware) {
    const auto before = std::make_unique<Node>();
    const Tiers former = before->order("bandwidth,latency from=cpus:0 targets=local");
    const unsigned best = *former.front().begin();
    const unsigned worst = *former.back().begin();
    warren::topology::ValuesFile file;
    file.machine = warren::topology::identity_of(before->topology());
    warren_set cpus{};
    warren_topology_initiator(before->topology(),
                              warren_topology_initiator_of_cpu(before->topology(), 0), &cpus,
                              nullptr);
    const warren::topology::Bits bits(cpus.words, cpus.words + cpus.count);
    file.values.push_back({WARREN_ATTRIBUTE_BANDWIDTH, bits, best, 11});
    if (worst != best) {
        file.values.push_back({WARREN_ATTRIBUTE_BANDWIDTH, bits, worst, 1'000'000});
    }
    put(file);
    const Node after;
    EXPECT_EQ(after.problem(), "");
    int origin = 0;
    EXPECT_EQ(after.value(WARREN_MEM_BANDWIDTH, 0, best, &origin), 11U);
    EXPECT_EQ(origin, WARREN_ORIGIN_MEASURED);
    if (worst != best) {
        const Tiers now = after.order("bandwidth from=cpus:0 targets=local");
        EXPECT_EQ(now.front(), (std::set<unsigned>{worst}));
        EXPECT_EQ(now.back(), (std::set<unsigned>{best}));
    }
    // From elsewhere nothing has changed.
    const unsigned last = machine().processors - 1;
    EXPECT_EQ(after.order("bandwidth targets=local" + from(last)),
              machine().local_orders(last).at("bandwidth"));
}

TEST_F(ValuesFile, OfAnotherMachineIsRefused) {
    warren::topology::ValuesFile file;
    file.machine = warren::topology::identity_of(Node().topology());
    file.machine.model = "Another Processor";
    put(file);
    const Node node;
    EXPECT_NE(node.problem().find("Another Processor"), std::string::npos) << node.problem();
    EXPECT_EQ(node.order("bandwidth targets=local from=cpus:0"),
              machine().local_orders(0).at("bandwidth"));
}

} // namespace

int main(int argc, char** argv) {
    testing::InitGoogleTest(&argc, argv);
    if (argc != 2 || !machines().contains(argv[1])) {
        std::fprintf(stderr, "usage: machine_attributes MACHINE\n");
        return 2;
    }
    name = argv[1];
    return RUN_ALL_TESTS();
}
