#include "launch/mpiexec/hosts.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <unistd.h>

#include <gtest/gtest.h>

#include "launch/mpiexec/node_plan.hpp"
#include "mpi/job/segment.hpp"

namespace warren::launch {
namespace {

std::string text_of(Error error) {
    const std::unique_ptr<ErrorRecord> record(error.take());
    return record == nullptr ? "" : record->text;
}

std::string shown(const std::vector<Host>& hosts) {
    std::string text;
    for (const Host& host : hosts) {
        text += (text.empty() ? "" : " ") + host.name + ":" + std::to_string(host.slots) + "=" +
                std::to_string(host.ranks);
    }
    return text;
}

class Hostfile {
  public:
    explicit Hostfile(const std::string& text) {
        close(mkstemp(name_));
        std::ofstream(name_) << text;
    }
    ~Hostfile() { std::remove(name_); }
    const char* name() const { return name_; }

  private:
    char name_[40] = "/tmp/mpi-test-hostfile-test-XXXXXX";
};

std::string of_list(const std::string& list) {
    std::vector<Host> hosts;
    const std::string error = text_of(parse_hosts("option --hosts", list, hosts));
    return error.empty() ? shown(hosts) : error;
}

std::string of_file(const std::string& text) {
    const Hostfile file(text);
    std::vector<Host> hosts;
    const std::string error = text_of(parse_hostfile("option -f", file.name(), hosts));
    return error.empty() ? shown(hosts) : error;
}

TEST(Hosts, HaveSlots) {
    EXPECT_EQ(of_list("a:4,b"), "a:4=0 b:1=0");
    EXPECT_EQ(of_list("a,b:2,a,a:3"), "a:5=0 b:2=0");
    EXPECT_EQ(of_list("fe80::1"), "fe80::1:1=0");
    EXPECT_EQ(of_file("# all\na slots=2\n\nb:4 # again\nc 3\nd max_slots=7\n"),
              "a:2=0 b:4=0 c:3=0 d:1=0");
}

TEST(Hosts, WrongOnesAreRefused) {
    EXPECT_NE(of_list("").find("needs the name"), std::string::npos);
    EXPECT_NE(of_list("a,,b").find("no name"), std::string::npos);
    EXPECT_NE(of_list("a:0").find("number of slots"), std::string::npos);
    EXPECT_NE(of_list("a:x").find("number of slots"), std::string::npos);
    EXPECT_NE(of_list("-oProxyCommand=x").find("no name"), std::string::npos);
    EXPECT_NE(of_list("a;reboot").find("no name"), std::string::npos);
    EXPECT_NE(of_file("# nothing\n").find("names no node"), std::string::npos);
    EXPECT_NE(of_file("a slots=0\n").find("no number of slots"), std::string::npos);
    std::vector<Host> hosts;
    EXPECT_NE(text_of(parse_hostfile("option -f", "/nonexistent", hosts)).find("No such file"),
              std::string::npos);
    EXPECT_NE(text_of(parse_hostfile("option -f", "/tmp", hosts)).find("directory"),
              std::string::npos);
}

std::string divided(const std::string& list, std::uint32_t ranks, std::uint32_t per_node = 0,
                    bool dealt = false) {
    std::vector<Host> hosts;
    EXPECT_EQ(text_of(parse_hosts("option --hosts", list, hosts)), "");
    const std::string error = text_of(divide_ranks(ranks, per_node, dealt, hosts));
    return error.empty() ? shown(hosts) : error;
}

TEST(Hosts, RanksFillSlotsInOrder) {
    EXPECT_EQ(divided("a:4,b:4", 8), "a:4=4 b:4=4");
    EXPECT_EQ(divided("a:4,b:4", 5), "a:4=4 b:4=1");
    EXPECT_EQ(divided("a:4,b:4", 3), "a:4=3");
    EXPECT_EQ(divided("a,b,c", 2, 1), "a:1=1 b:1=1");
}

TEST(Hosts, MoreRanksThanSlotsAreShared) {
    EXPECT_EQ(divided("a:4,b:4", 12), "a:4=6 b:4=6");
    EXPECT_EQ(divided("a:1,b:3", 8), "a:1=2 b:3=6");
    EXPECT_EQ(divided("a,b", 5), "a:1=2 b:1=3");
    EXPECT_NE(divided("a,b", 5, 2).find("need 3 nodes, and there are 2"), std::string::npos);
    EXPECT_NE(divided("a", node::rank_limit + 1).find("at most"), std::string::npos);
}

TEST(Hosts, RanksAreDealtOut) {
    EXPECT_EQ(divided("a:4,b:4", 5, 0, true), "a:4=3 b:4=2");
    EXPECT_EQ(divided("a,b,c", 2, 0, true), "a:1=1 b:1=1");
}

TEST(Hosts, OfSlurmAreExpanded) {
    std::vector<std::string> names;
    EXPECT_TRUE(expand_slurm_nodes("n[08-10,2],m,k[1]-ib", names));
    EXPECT_EQ(names, (std::vector<std::string>{"n08", "n09", "n10", "n2", "m", "k1-ib"}));
    std::vector<std::uint32_t> counts;
    EXPECT_TRUE(expand_slurm_counts("2(x3),1", counts));
    EXPECT_EQ(counts, (std::vector<std::uint32_t>{2, 2, 2, 1}));
    for (const char* wrong : {"n[1", "n[a-b]", "n[1-]", "n[1]x[2]", ""}) {
        EXPECT_FALSE(expand_slurm_nodes(wrong, names = {})) << wrong;
    }
    for (const char* wrong : {"2(x", "2(x0)", "x", "", "2(3)"}) {
        EXPECT_FALSE(expand_slurm_counts(wrong, counts = {})) << wrong;
    }
}

TEST(NodePlan, ComesBackAsItWas) {
    NodePlan plan;
    plan.node = 1;
    plan.world_size = 7;
    plan.sharers = 3;
    plan.secret = 99;
    plan.first_ranks = {0, 4, 7};
    plan.names = {"a", "b"};
    plan.ranks = {5, 2};
    plan.words = {"-n", "5", "x y", ""};
    plan.environment = {"A=1"};
    plan.directory = "/tmp";
    const std::string bytes = plan.pack();
    NodePlan other;
    ASSERT_TRUE(NodePlan::unpack(bytes, other));
    EXPECT_EQ(other.pack(), bytes);
    EXPECT_EQ(other.sharers, 3U);
    EXPECT_EQ(other.ranks_here(0), 1U);
    EXPECT_EQ(other.ranks_here(1), 2U);
    EXPECT_EQ(other.world_rank(2), 6U);
    other.dealt = true;
    EXPECT_EQ(other.ranks_here(0), 2U); // 1, 3
    EXPECT_EQ(other.ranks_here(1), 1U); // 5
    EXPECT_EQ(other.world_rank(2), 5U);
    for (std::size_t length = 0; length < bytes.size(); ++length) {
        EXPECT_FALSE(NodePlan::unpack(bytes.substr(0, length), other)) << length;
    }
    EXPECT_FALSE(NodePlan::unpack(bytes + "x", other));
}

} // namespace
} // namespace warren::launch
