#include "launch/memory_nodes.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

namespace warren::launch {
namespace {

class Machine {
  public:
    Machine() {
        char name[] = "/tmp/warren-nodes.XXXXXX";
        root_ = mkdtemp(name);
    }
    Machine(const Machine&) = delete;
    Machine& operator=(const Machine&) = delete;
    ~Machine() { std::filesystem::remove_all(root_); }

    void add(int processor, const std::string& entry) const {
        std::filesystem::create_directories(root_ + "/sys/devices/system/cpu/cpu" +
                                            std::to_string(processor) + "/" + entry);
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

TEST(MemoryNodes, OfThisMachineCanBeAskedFor) {
    EXPECT_EQ(nodes_of_processors({0}, "").size(), 1U);
    const int refusal = refusal_to_move_pages();
    EXPECT_TRUE(refusal == 0 || refusal == EPERM || refusal == ENOSYS) << refusal;
}

} // namespace
} // namespace warren::launch
