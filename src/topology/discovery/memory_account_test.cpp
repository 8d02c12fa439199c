// Machines whose NUMA nodes lack memory that the machine has, as copies of their /sys and /proc.
#include "topology/discovery/memory_account.hpp"

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "topology/discovery/describe.hpp"
#include "warren/topology.h"

namespace warren::discovery {

namespace {

constexpr std::uint64_t GiB = std::uint64_t{1} << 30;

// A machine of one processor for each NUMA node.
class GrownMachine : public testing::Test {
  protected:
    void SetUp() override {
        std::string name = testing::TempDir() + "warren-account-XXXXXX";
        ASSERT_NE(mkdtemp(name.data()), nullptr);
        root_ = name;
    }
    void TearDown() override { std::filesystem::remove_all(root_); }

    void write(const std::string& file, const std::string& text) const {
        const std::filesystem::path path = root_ + "/" + file;
        std::filesystem::create_directories(path.parent_path());
        std::ofstream(path) << text << "\n";
    }
    void make(std::uint64_t machine_bytes, const std::vector<std::uint64_t>& node_bytes) const {
        const std::string last = std::to_string(node_bytes.size() - 1);
        const std::string all = node_bytes.size() == 1 ? "0" : "0-" + last;
        write("proc/meminfo",
              "MemTotal: " + std::to_string(machine_bytes / 1024) + " kB\nMemFree: 5 kB");
        for (const char* list : {"online", "possible", "present"}) {
            write(std::string("sys/devices/system/cpu/") + list, all);
        }
        write("sys/devices/system/node/online", all);
        for (std::size_t node = 0; node < node_bytes.size(); ++node) {
            const std::string number = std::to_string(node);
            const std::string bit = std::to_string(1U << node);
            const std::string processor = "sys/devices/system/cpu/cpu" + number + "/topology/";
            write(processor + "physical_package_id", number);
            write(processor + "core_id", "0");
            for (const char* map :
                 {"core_siblings", "thread_siblings", "package_cpus", "core_cpus"}) {
                write(processor + map, bit);
            }
            const std::string folder = "sys/devices/system/node/node" + number + "/";
            write(folder + "cpumap", bit);
            write(folder + "meminfo", "Node " + number + " MemTotal: " +
                                          std::to_string(node_bytes[node] / 1024) + " kB");
        }
    }
    topology::Description discovered() const {
        topology::Description description;
        EXPECT_FALSE(discover({SourceKind::dump, root_}, description));
        return description;
    }
    static std::string info(const topology::Object& object, const std::string& name) {
        for (const topology::Info& one : object.infos) {
            if (one.name == name) {
                return one.value;
            }
        }
        return "";
    }

    std::string root_;
};

TEST_F(GrownMachine, with_one_node_gives_it_all_memory) {
    make(24 * GiB, {6 * GiB});
    const topology::Description description = discovered();
    ASSERT_EQ(description.targets().size(), 1U);
    const topology::Object& node = description.objects[description.targets()[0]];
    EXPECT_EQ(node.details[0], 24 * GiB);
    ASSERT_GE(node.details.size(), 4U);
    std::uint64_t in_pages = 0;
    for (std::size_t size = 0; size < node.details[1]; ++size) {
        in_pages += node.details[2 + 2 * size] * node.details[3 + 2 * size];
    }
    EXPECT_EQ(in_pages, 24 * GiB);
    EXPECT_EQ(info(node, "NodeAccountBytes"), std::to_string(6 * GiB));
    EXPECT_EQ(description.matrices[WARREN_ATTRIBUTE_CAPACITY].cells.at(0).value, 24 * GiB);
}

TEST_F(GrownMachine, with_several_nodes_says_what_is_in_none) {
    make(24 * GiB, {6 * GiB, 8 * GiB});
    const topology::Description description = discovered();
    ASSERT_EQ(description.targets().size(), 2U);
    EXPECT_EQ(description.objects[description.targets()[0]].details[0], 6 * GiB);
    EXPECT_EQ(description.objects[description.targets()[1]].details[0], 8 * GiB);
    EXPECT_EQ(info(description.objects[0], "BytesOutsideNodes"), std::to_string(10 * GiB));
    EXPECT_EQ(description.matrices[WARREN_ATTRIBUTE_CAPACITY].cells.at(1).value, 8 * GiB);
}

TEST_F(GrownMachine, has_all_memory_on_the_node_that_has_any) {
    make(24 * GiB, {6 * GiB, 0});
    const topology::Description description = discovered();
    ASSERT_EQ(description.targets().size(), 2U);
    EXPECT_EQ(description.objects[description.targets()[0]].details[0], 24 * GiB);
    EXPECT_EQ(description.objects[description.targets()[1]].details[0], 0U);
}

TEST_F(GrownMachine, is_none_when_the_accounts_agree) {
    for (const std::uint64_t machine : {24 * GiB, 24 * GiB + GiB / 8, 20 * GiB, std::uint64_t{0}}) {
        make(machine, {24 * GiB});
        const topology::Description description = discovered();
        const topology::Object& node = description.objects[description.targets().at(0)];
        EXPECT_EQ(node.details[0], 24 * GiB);
        EXPECT_EQ(info(node, "NodeAccountBytes"), "");
        EXPECT_EQ(info(description.objects[0], "BytesOutsideNodes"), "");
    }
}

} // namespace

} // namespace warren::discovery
