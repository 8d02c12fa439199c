#include "launch/mpiexec/memory_nodes.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

namespace warren::launch {
namespace {

class Machine {
  public:
    Machine() {
        char name[] = "/tmp/mpi-test-nodes.XXXXXX";
        root_ = mkdtemp(name);
    }
    Machine(const Machine&) = delete;
    Machine& operator=(const Machine&) = delete;
    ~Machine() { std::filesystem::remove_all(root_); }

    void add(int processor, const std::string& entry) const {
        std::filesystem::create_directories(root_ + "/sys/devices/system/cpu/cpu" +
                                            std::to_string(processor) + "/" + entry);
    }
    void write(const std::string& file, const std::string& text) const {
        const std::filesystem::path path = root_ + file;
        std::filesystem::create_directories(path.parent_path());
        std::ofstream(path) << text;
    }
    const std::string& root() const { return root_; }

  private:
    std::string root_;
};

TEST(MemoryNodes, AreThoseThatTheKernelLinksProcessorsTo) {
    const Machine machine;
    machine.add(0, "node0");
    machine.add(1, "node12");
    machine.add(2, "node3");
    for (const char* other : {"node_of", "nodes", "node", "node5x", "node99999", "cache"}) {
        machine.add(2, other);
        machine.add(3, other);
    }
    EXPECT_EQ(nodes_of_processors({0, 1, 2, 1}, machine.root()), (std::vector{0, 12, 3, 12}));
    EXPECT_EQ(nodes_of_processors({3, 4, -1}, machine.root()), (std::vector{0, 0, 0}));
}

std::vector<int> members(const memory::NodeSet& set) {
    std::vector<int> found;
    for (int node = 0; node < memory::node_limit; ++node) {
        if (set.has(node)) {
            found.push_back(node);
        }
    }
    return found;
}

TEST(MemoryNodes, PagesGoToThoseThatHaveAndGrantMemory) {
    const Machine machine;
    machine.write("/proc/self/status",
                  "Name:\tx\nMems_allowed:\t5d\nMems_allowed_list:\t0,2-4,6\n");
    EXPECT_EQ(members(nodes_with_memory(machine.root())), (std::vector{0, 2, 3, 4, 6}));
    machine.write("/sys/devices/system/node/has_memory", "0-2,6,8,1030\n");
    const memory::NodeSet set = nodes_with_memory(machine.root());
    EXPECT_EQ(members(set), (std::vector{0, 2, 6}));

    std::vector<int> nodes{0, 8, 6, 3, 8, 2};
    EXPECT_EQ(leave_out_others(nodes, set), (std::vector{3, 8}));
    EXPECT_EQ(nodes, (std::vector{0, no_node, 6, no_node, no_node, 2}));
    EXPECT_EQ(leave_out_others(nodes = {2, 0}, set), std::vector<int>());
    EXPECT_EQ(nodes, (std::vector{2, 0}));
}

TEST(MemoryNodes, OfThisMachineCanBeAskedFor) {
    EXPECT_EQ(nodes_of_processors({0}, "").size(), 1U);
    EXPECT_FALSE(nodes_with_memory("").empty());
    const int refusal = refusal_to_move_pages();
    EXPECT_TRUE(refusal == 0 || refusal == EPERM || refusal == ENOSYS) << refusal;
}

} // namespace
} // namespace warren::launch
