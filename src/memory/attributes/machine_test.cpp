#include "memory/attributes/machine.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>
#include <string>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include "topology/values_file.hpp"

namespace warren::memory {
namespace {

// The machine of figure 1 in Rubio Proaño 2020. hwloc numbers the memories package by package: HBM
// 0, 1 and 4, 5 by cluster, DDR 2 and 6, NVDIMM 3 and 7, that on the network 8.
constexpr const char* figure1 = "synthetic:[numa(memory=64GB)] package:2 [numa(memory=192GB)] "
                                "[numa(memory=768GB)] group:2 [numa(memory=16GB)] core:2 pu:1";

class Opened {
  public:
    explicit Opened(const char* source) {
        warren_topology_report report{};
        EXPECT_EQ(warren_topology_open(source, &topology_, &report), WARREN_TOPOLOGY_SUCCESS)
            << report.problem;
        problem_ = report.problem;
        EXPECT_EQ(warren_mem_open(topology_, &memory_), WARREN_MEM_SUCCESS);
    }
    ~Opened() {
        warren_mem_close(memory_);
        warren_topology_close(topology_);
    }
    Opened(const Opened&) = delete;
    Opened& operator=(const Opened&) = delete;

    warren_memory* memory() const { return memory_; }
    const warren_topology* topology() const { return topology_; }
    const std::string& problem() const { return problem_; }

    // "0 > 4 = 5 > 8", or the error.
    std::string order(const char* criteria) const {
        warren_mem_criteria* parsed = nullptr;
        if (warren_mem_criteria_parse(criteria, &parsed) != WARREN_MEM_SUCCESS) {
            return warren_mem_error();
        }
        unsigned nodes[16];
        unsigned tiers[16];
        std::size_t count = 0;
        std::string text;
        if (warren_mem_get_ordering(memory_, parsed, 16, nodes, tiers, &count) !=
            WARREN_MEM_SUCCESS) {
            text = warren_mem_error();
        }
        for (std::size_t place = 0; place < count; ++place) {
            text += place == 0 ? "" : tiers[place] == tiers[place - 1] ? " = " : " > ";
            text += std::to_string(nodes[place]);
        }
        warren_mem_criteria_free(parsed);
        return text;
    }

  private:
    warren_topology* topology_ = nullptr;
    warren_memory* memory_ = nullptr;
    std::string problem_;
};

// A file of values with what that machine's firmware would report for local memory.
class Measured {
  public:
    Measured() {
        unsetenv("WARREN_MEMORY_VALUES");
        const Opened plain(figure1);
        topology::ValuesFile file;
        file.machine = topology::identity_of(plain.topology());
        for (const topology::MachineMemory& memory : file.machine.memories) {
            const bool hbm = memory.node % 4 < 2 && memory.node < 8;
            const bool ddr = memory.node % 4 == 2;
            const bool network = memory.node == 8;
            file.values.push_back({WARREN_ATTRIBUTE_LATENCY, memory.cpus, memory.node,
                                   hbm       ? 120U
                                   : ddr     ? 100U
                                   : network ? 2500U
                                             : 350U});
            file.values.push_back({WARREN_ATTRIBUTE_BANDWIDTH, memory.cpus, memory.node,
                                   hbm       ? 200000U
                                   : ddr     ? 90000U
                                   : network ? 5000U
                                             : 12000U});
        }
        const std::string text = topology::text_of(file);
        const int descriptor = mkstemp(path_);
        EXPECT_EQ(write(descriptor, text.data(), text.size()), static_cast<ssize_t>(text.size()));
        close(descriptor);
        setenv("WARREN_MEMORY_VALUES", path_, 1);
    }
    ~Measured() {
        unsetenv("WARREN_MEMORY_VALUES");
        unlink(path_);
    }
    Measured(const Measured&) = delete;
    Measured& operator=(const Measured&) = delete;

  private:
    char path_[40] = "/tmp/mpi-test-figure1.XXXXXX";
};

TEST(Machine, ThePapersFourInequalitiesHoldFromEveryProcessor) {
    const Measured measured;
    const Opened opened(figure1);
    ASSERT_EQ(opened.problem(), "");
    for (int cpu = 0; cpu < 8; ++cpu) {
        const std::string hbm = std::to_string(cpu < 4 ? cpu / 2 : cpu / 2 + 2);
        const std::string ddr = cpu < 4 ? "2" : "6";
        const std::string nvdimm = cpu < 4 ? "3" : "7";
        const std::string from = " targets=local from=cpus:" + std::to_string(cpu);
        const auto order = [&](const char* by) { return opened.order((by + from).c_str()); };
        EXPECT_EQ(order("bandwidth"), hbm + " > " + ddr + " > " + nvdimm + " > 8");
        EXPECT_EQ(order("latency"), hbm + " = " + ddr + " > " + nvdimm + " > 8");
        EXPECT_EQ(order("capacity"), nvdimm + " > " + ddr + " > 8 > " + hbm);
        EXPECT_EQ(order("locality"), hbm + " > " + ddr + " = " + nvdimm + " > 8");
        EXPECT_EQ(order("latency,capacity"), ddr + " > " + hbm + " > " + nvdimm + " > 8");
        EXPECT_EQ(order("latency~0%"), ddr + " > " + hbm + " > " + nvdimm + " > 8");
    }
}

TEST(Machine, RemoteMemoryFollowsTheLocalOne) {
    const Measured measured;
    const Opened opened(figure1);
    const std::string all = opened.order("bandwidth from=core:0");
    EXPECT_TRUE(all.starts_with("0 > 2 > 3 > 8 > ")) << all;
    EXPECT_EQ(all.size(), std::strlen("0 > 2 > 3 > 8 > 1 > 4 > 5 > 6 > 7")) << all;
    EXPECT_EQ(opened.order("capacity from=core:0 targets=remote").substr(0, 5), "7 > 6");
    EXPECT_NE(opened.order("capacity from=core:0 targets=cpuless").find("no memory"),
              std::string::npos);
}

TEST(Machine, SeveralProcessorsSeeTheWorst) {
    const Measured measured;
    const Opened opened(figure1);
    std::uint64_t one = 0;
    std::uint64_t package = 0;
    int origin = 0;
    ASSERT_EQ(warren_mem_get_value(opened.memory(), WARREN_MEM_LATENCY, "core:0", 0, &one, &origin),
              WARREN_MEM_SUCCESS);
    EXPECT_EQ(one, 120U);
    EXPECT_EQ(origin, WARREN_ORIGIN_MEASURED);
    ASSERT_EQ(warren_mem_get_value(opened.memory(), WARREN_MEM_LATENCY, "package:0", 0, &package,
                                   &origin),
              WARREN_MEM_SUCCESS);
    EXPECT_GT(package, one);
    EXPECT_EQ(origin, WARREN_ORIGIN_GUESSED);
}

TEST(Machine, InitiatorsComeBestFirst) {
    const Measured measured;
    const Opened opened(figure1);
    unsigned char mask[2];
    std::uint64_t value = 0;
    std::uint64_t former = 0;
    std::size_t index = 0;
    while (warren_mem_get_initiator(opened.memory(), WARREN_MEM_LATENCY, 4, index, mask, 2, &value,
                                    nullptr) == WARREN_MEM_SUCCESS) {
        if (index == 0) {
            EXPECT_EQ(mask[0], 0x30);
            EXPECT_EQ(value, 120U);
        }
        EXPECT_GE(value, former);
        former = value;
        ++index;
    }
    EXPECT_EQ(index, 4U);
    EXPECT_EQ(warren_mem_get_initiator(opened.memory(), WARREN_MEM_CAPACITY, 2, 0, mask, 2, &value,
                                       nullptr),
              WARREN_MEM_ERR_ARG);
}

// Initiators that see a memory alike come one after the other, whatever the mask's size.
TEST(Machine, MasksOfTheBestInitiatorsMakeUpTheProcessorsNearAMemory) {
    const Opened opened(figure1);
    for (const unsigned node : {0U, 1U, 2U, 4U}) {
        unsigned best = 0;
        std::uint64_t best_value = 0;
        std::uint64_t value = 0;
        unsigned char mask[8];
        std::size_t index = 0;
        for (; warren_mem_get_initiator(opened.memory(), WARREN_MEM_BANDWIDTH, node, index, mask,
                                        sizeof mask, &value, nullptr) == WARREN_MEM_SUCCESS;
             ++index) {
            best_value = index == 0 ? value : best_value;
            best |= value == best_value ? mask[0] | mask[1] * 256U : 0U;
            EXPECT_TRUE(std::all_of(mask + 2, mask + 8, [](unsigned char byte) {
                return byte == 0;
            })) << "bytes behind the processors are zeros";
            unsigned char cut[2] = {0xaa, 0xaa};
            EXPECT_EQ(warren_mem_get_initiator(opened.memory(), WARREN_MEM_BANDWIDTH, node, index,
                                               cut, 1, nullptr, nullptr),
                      WARREN_MEM_SUCCESS);
            EXPECT_EQ(cut[0], mask[0]);
            EXPECT_EQ(cut[1], 0xaa);
        }
        const warren_object object =
            warren_topology_by_os_index(opened.topology(), WARREN_OBJECT_NUMA_NODE, node);
        unsigned near = 0;
        const warren_set cpus = warren_object_cpus(opened.topology(), object);
        for (std::uint32_t cpu = 0; cpu < 16; ++cpu) {
            near |= warren_set_has(cpus, cpu) != 0 ? 1U << cpu : 0U;
        }
        EXPECT_EQ(best, near) << "memory " << node;
        EXPECT_EQ(warren_mem_get_initiator(opened.memory(), WARREN_MEM_BANDWIDTH, node, index,
                                           nullptr, 0, nullptr, nullptr),
                  WARREN_MEM_ERR_NO_VALUE);
        EXPECT_EQ(warren_mem_get_initiator(opened.memory(), WARREN_MEM_BANDWIDTH, node, 0, nullptr,
                                           0, &value, nullptr),
                  WARREN_MEM_SUCCESS);
        EXPECT_EQ(value, best_value);
        EXPECT_EQ(warren_mem_get_initiator(opened.memory(), WARREN_MEM_BANDWIDTH, node, 0, nullptr,
                                           8, nullptr, nullptr),
                  WARREN_MEM_ERR_ARG);
    }
}

TEST(Machine, RegisteredAttributesAreLikeOthers) {
    const Opened opened(figure1);
    int price = 0;
    int found = 0;
    ASSERT_EQ(warren_mem_register_attribute(opened.memory(), "price",
                                            WARREN_ATTRIBUTE_LOWER_IS_BETTER, &price),
              WARREN_MEM_SUCCESS);
    EXPECT_GE(price, int{WARREN_MEM_FIRST_OTHER_ATTRIBUTE});
    EXPECT_EQ(warren_mem_find_attribute(opened.memory(), "price", &found), WARREN_MEM_SUCCESS);
    EXPECT_EQ(found, price);
    EXPECT_EQ(warren_mem_register_attribute(opened.memory(), "price",
                                            WARREN_ATTRIBUTE_LOWER_IS_BETTER, &found),
              WARREN_MEM_ERR_ARG);
    EXPECT_EQ(warren_mem_register_attribute(opened.memory(), "latency",
                                            WARREN_ATTRIBUTE_LOWER_IS_BETTER, &found),
              WARREN_MEM_ERR_ARG);
    EXPECT_EQ(warren_mem_register_attribute(opened.memory(), "weight", 3, &found),
              WARREN_MEM_ERR_ARG);
    EXPECT_NE(opened.order("price from=core:0").find("known price"), std::string::npos);
    ASSERT_EQ(warren_mem_set_value(opened.memory(), price, nullptr, 3, 1), WARREN_MEM_SUCCESS);
    ASSERT_EQ(warren_mem_set_value(opened.memory(), price, nullptr, 2, 3), WARREN_MEM_SUCCESS);
    // Without a value last; among those, the nearer first.
    EXPECT_TRUE(opened.order("price from=core:0 targets=local").starts_with("3 > 2 > "));
    std::uint64_t value = 0;
    int origin = 0;
    EXPECT_EQ(warren_mem_get_value(opened.memory(), price, "core:0", 2, &value, &origin),
              WARREN_MEM_SUCCESS);
    EXPECT_EQ(value, 3U);
    EXPECT_EQ(origin, WARREN_MEM_ORIGIN_PROGRAM);
    EXPECT_EQ(warren_mem_set_value(opened.memory(), WARREN_MEM_LATENCY, nullptr, 4, 3),
              WARREN_MEM_ERR_ATTRIBUTE);
    EXPECT_EQ(warren_mem_set_value(opened.memory(), price + 1, nullptr, 4, 3),
              WARREN_MEM_ERR_ATTRIBUTE);
    EXPECT_EQ(warren_mem_set_value(opened.memory(), price, nullptr, 9, 3), WARREN_MEM_ERR_ARG);

    int seen = 0;
    ASSERT_EQ(warren_mem_register_attribute(
                  opened.memory(), "seen",
                  WARREN_ATTRIBUTE_HIGHER_IS_BETTER | WARREN_ATTRIBUTE_NEEDS_INITIATOR, &seen),
              WARREN_MEM_SUCCESS);
    ASSERT_EQ(warren_mem_set_value(opened.memory(), seen, "package:1", 6, 8), WARREN_MEM_SUCCESS);
    EXPECT_EQ(warren_mem_get_value(opened.memory(), seen, "core:7", 6, &value, &origin),
              WARREN_MEM_SUCCESS);
    EXPECT_EQ(warren_mem_get_value(opened.memory(), seen, "core:0", 6, &value, &origin),
              WARREN_MEM_ERR_NO_VALUE);
}

TEST(Machine, MistakesAreNamed) {
    const Opened opened(figure1);
    const std::pair<const char*, const char*> mistakes[] = {
        {"latency", "'here'"},
        {"latency from=core:8", "core:8: the machine has 8"},
        {"latency from=cpus:8", "no processor 8"},
        {"latency from=cpus:0,4000", "no processor 4000"},
        {"latency from=tree:0", "'tree'"},
        {"latency from=bridge:0", "has 0"},
        {"beauty from=core:0", "'beauty'"},
        {"available from=core:0", "known available"},
    };
    for (const auto& [criteria, part] : mistakes) {
        EXPECT_NE(opened.order(criteria).find(part), std::string::npos) << opened.order(criteria);
    }
    std::uint64_t value = 0;
    EXPECT_EQ(warren_mem_get_value(opened.memory(), 10, "core:0", 0, &value, nullptr),
              WARREN_MEM_ERR_ATTRIBUTE);
    EXPECT_EQ(warren_mem_get_value(opened.memory(), -1, "core:0", 0, &value, nullptr),
              WARREN_MEM_ERR_ATTRIBUTE);
    EXPECT_EQ(warren_mem_get_value(opened.memory(), 1000, "core:0", 0, &value, nullptr),
              WARREN_MEM_ERR_ATTRIBUTE);
    EXPECT_EQ(
        warren_mem_get_value(opened.memory(), WARREN_MEM_CAPACITY, nullptr, 9, &value, nullptr),
        WARREN_MEM_ERR_ARG);
    EXPECT_EQ(warren_mem_get_value(opened.memory(), 0, "core:0", 0, nullptr, nullptr),
              WARREN_MEM_ERR_ARG);
    EXPECT_EQ(warren_mem_open(nullptr, nullptr), WARREN_MEM_ERR_ARG);
    std::size_t count = 0;
    EXPECT_EQ(warren_mem_get_targets(opened.memory(), 1, nullptr, &count), WARREN_MEM_ERR_ARG);
}

TEST(Machine, InitiatorsMayBeNamedInSeveralWays) {
    const Opened opened(figure1);
    for (const char* from : {"core:7", "cpus:7", "pu:7", "cpu:7", "PU:7"}) {
        EXPECT_EQ(opened.order((std::string("capacity targets=local from=") + from).c_str()),
                  "7 > 6 > 8 > 5")
            << from;
    }
    EXPECT_EQ(opened.order("capacity targets=local from=socket:1"),
              opened.order("capacity targets=local from=package:1"));
}

TEST(Machine, ThisNodeIsTheDefault) {
    warren_mem_criteria* criteria = nullptr;
    ASSERT_EQ(warren_mem_criteria_parse("available", &criteria), WARREN_MEM_SUCCESS);
    unsigned node = 0;
    ASSERT_EQ(warren_mem_get_best_target(nullptr, criteria, &node), WARREN_MEM_SUCCESS)
        << warren_mem_error();
    std::uint64_t available = 0;
    std::uint64_t capacity = 0;
    int origin = 0;
    EXPECT_EQ(
        warren_mem_get_value(nullptr, WARREN_MEM_AVAILABLE, nullptr, node, &available, &origin),
        WARREN_MEM_SUCCESS)
        << warren_mem_error();
    EXPECT_EQ(origin, WARREN_MEM_ORIGIN_SYSTEM);
    EXPECT_EQ(warren_mem_get_value(nullptr, WARREN_MEM_CAPACITY, nullptr, node, &capacity, nullptr),
              WARREN_MEM_SUCCESS);
    EXPECT_GT(available, 0U);
    EXPECT_LE(available, capacity);
    EXPECT_EQ(warren_mem_get_best_target(nullptr, nullptr, &node), WARREN_MEM_SUCCESS);
    warren_mem_criteria_free(criteria);
}

TEST(Machine, ThreadsRegisterAndAskAtOnce) {
    const Opened opened("synthetic:package:2 [numa(memory=1GB)] core:2 pu:1");
    std::thread threads[4];
    for (int number = 0; number < 4; ++number) {
        threads[number] = std::thread([&opened, number] {
            for (int round = 0; round < 50; ++round) {
                const std::string name =
                    "mine_" + std::to_string(number) + "_" + std::to_string(round);
                int attribute = 0;
                EXPECT_EQ(warren_mem_register_attribute(opened.memory(), name.c_str(),
                                                        WARREN_ATTRIBUTE_HIGHER_IS_BETTER,
                                                        &attribute),
                          WARREN_MEM_SUCCESS);
                EXPECT_EQ(warren_mem_set_value(opened.memory(), attribute, nullptr, 1, 5),
                          WARREN_MEM_SUCCESS);
                EXPECT_EQ(opened.order((name + " from=machine:0").c_str()), "1 > 0");
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
}

// hwloc's synthetic descriptions know no such caches before 2.10.
std::string xml_with_cache() {
    char path[] = "/tmp/mpi-test-cache.XXXXXX";
    const int file = mkstemp(path);
    EXPECT_GE(file, 0);
    std::string text = "<?xml version='1.0' encoding='UTF-8'?>\n<!DOCTYPE topology SYSTEM "
                       "'hwloc2.dtd'>\n<topology version='2.0'>\n";
    const auto object = [&](const char* type, int place, int cpus, int nodes, const char* more) {
        char line[400];
        std::snprintf(line, sizeof line,
                      "<object type='%s' os_index='%d' cpuset='0x%x' complete_cpuset='0x%x' "
                      "nodeset='0x%x' complete_nodeset='0x%x' gp_index='%d' %s\n",
                      type, place, cpus, cpus, nodes, nodes, static_cast<int>(text.size()), more);
        text += line;
    };
    object("Machine", 0, 3, 3, "allowed_cpuset='0x3' allowed_nodeset='0x3'>");
    object("NUMANode", 0, 3, 1, "local_memory='64000000000'/>");
    object("MemCache", 0, 3, 2,
           "cache_size='1000000000' depth='1' cache_linesize='64' cache_associativity='1' "
           "cache_type='0'>");
    object("NUMANode", 1, 3, 2, "local_memory='16000000000'/>");
    text += "</object>\n";
    object("PU", 0, 1, 3, "/>");
    object("PU", 1, 2, 3, "/>");
    text += "</object>\n</topology>\n";
    std::replace(text.begin(), text.end(), '\'', '"');
    EXPECT_EQ(write(file, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    close(file);
    return path;
}

TEST(Machine, AMemorySideCacheCountsAmongEquals) {
    const std::string path = xml_with_cache();
    const Opened opened(("xml:" + path).c_str());
    unlink(path.c_str());
    std::uint64_t cache = 0;
    int origin = 0;
    EXPECT_EQ(warren_mem_get_value(opened.memory(), WARREN_MEM_CACHE, "cpus:0", 1, &cache, &origin),
              WARREN_MEM_SUCCESS);
    EXPECT_EQ(cache, 1'000'000'000U);
    EXPECT_EQ(warren_mem_get_value(opened.memory(), WARREN_MEM_CACHE, "cpus:0", 0, &cache, &origin),
              WARREN_MEM_SUCCESS);
    EXPECT_EQ(cache, 0U);
    EXPECT_EQ(opened.order("latency~50% from=cpus:0"), "1 > 0");
    EXPECT_EQ(opened.order("latency~50%,capacity from=cpus:0"), "0 > 1");
    EXPECT_EQ(opened.order("bandwidth from=cpus:0"), "1 > 0"); // as such memories usually are
    EXPECT_EQ(opened.order("capacity from=cpus:0"), "0 > 1");
    EXPECT_EQ(opened.order("cache from=cpus:0"), "1 > 0");
}

TEST(Available, IsReadFromTheSystemsFiles) {
    char folder[] = "/tmp/mpi-test-available.XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    const std::string root = folder;
    const std::string node = root + "/sys/devices/system/node/node2";
    ASSERT_EQ(std::system(("mkdir -p " + node + "/hugepages/hugepages-2048kB").c_str()), 0);
    const auto put = [](const std::string& path, const char* text) {
        std::FILE* file = std::fopen(path.c_str(), "w");
        ASSERT_NE(file, nullptr);
        std::fputs(text, file);
        std::fclose(file);
    };
    std::uint64_t bytes = 0;
    const auto code = [&](std::size_t page) {
        ErrorRecord* record = read_available(root, 2, page, bytes).take();
        const int error_class = record != nullptr ? record->error_class : 0;
        delete record;
        return error_class;
    };
    EXPECT_EQ(code(0), WARREN_MEM_ERR_NO_VALUE);
    put(node + "/meminfo", "Node 2 MemTotal:    9000 kB\nNode 2 MemFree:     1000 kB\n"
                           "Node 2 Active(file):  30 kB\nNode 2 Inactive(file): 200 kB\n");
    EXPECT_EQ(code(0), 0);
    EXPECT_EQ(bytes, 1230U * 1024);
    // The machine's account counts where the node has all of its memory.
    ASSERT_EQ(std::system(("mkdir -p " + root + "/proc").c_str()), 0);
    put(root + "/proc/meminfo",
        "MemTotal:    90000 kB\nMemFree:     7000 kB\nActive(file):  40 kB\n"
        "Inactive(file): 500 kB\n");
    for (const auto& [nodes, kibibytes] : {std::pair{"1-2\n", 1230U}, std::pair{"2\n", 7540U},
                                           std::pair{"1\n", 1230U}, std::pair{"2,5\n", 1230U}}) {
        put(root + "/sys/devices/system/node/has_memory", nodes);
        EXPECT_EQ(code(0), 0);
        EXPECT_EQ(bytes, kibibytes * 1024) << nodes;
    }
    put(root + "/sys/devices/system/node/has_memory", "2\n");
    put(root + "/proc/meminfo", "MemFree:     70 kB\n"); // less: of a container, for example
    EXPECT_EQ(code(0), 0);
    EXPECT_EQ(bytes, 1230U * 1024);
    put(node + "/hugepages/hugepages-2048kB/free_hugepages", "3\n");
    EXPECT_EQ(code(2U << 20), 0);
    EXPECT_EQ(bytes, 3U * (2U << 20));
    EXPECT_EQ(code(1U << 30), 0); // there are no pages of this size
    EXPECT_EQ(bytes, 0U);
    put(node + "/meminfo", "nonsense\n");
    EXPECT_EQ(code(0), WARREN_MEM_ERR_NO_VALUE);
    EXPECT_EQ(std::system(("rm -r " + root).c_str()), 0);
}

} // namespace
} // namespace warren::memory
