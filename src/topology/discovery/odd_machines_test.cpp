// Machines that lack something: processors that are offline, processors without memory of their
// own, files that may not be read.
#include <cstdlib>
#include <fstream>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "base/error.hpp"
#include "topology/discovery/named_source.hpp"
#include "warren/topology.h"

namespace warren::discovery {

namespace {

// Two packages of two processors; the second has no memory, and its processor 3 is offline.
constexpr const char* odd = R"(<?xml version="1.0" encoding="UTF-8"?>
<topology version="2.0">
  <object type="Machine" os_index="0" cpuset="0x7" complete_cpuset="0xf" allowed_cpuset="0x7" nodeset="0x1" complete_nodeset="0x1" allowed_nodeset="0x1" gp_index="1">
    <object type="Package" os_index="0" cpuset="0x3" complete_cpuset="0x3" nodeset="0x1" complete_nodeset="0x1" gp_index="2">
      <object type="NUMANode" os_index="0" cpuset="0x3" complete_cpuset="0x3" nodeset="0x1" complete_nodeset="0x1" gp_index="3" local_memory="4294967296"/>
      <object type="PU" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1" complete_nodeset="0x1" gp_index="4"/>
      <object type="PU" os_index="1" cpuset="0x2" complete_cpuset="0x2" nodeset="0x1" complete_nodeset="0x1" gp_index="5"/>
    </object>
    <object type="Package" os_index="1" cpuset="0x4" complete_cpuset="0xc" nodeset="0x0" complete_nodeset="0x0" gp_index="6">
      <object type="PU" os_index="2" cpuset="0x4" complete_cpuset="0x4" nodeset="0x0" complete_nodeset="0x0" gp_index="7"/>
    </object>
  </object>
</topology>
)";

class OddMachine : public testing::Test {
  protected:
    void SetUp() override {
        ASSERT_NE(mkdtemp(folder_), nullptr);
        ASSERT_EQ(chmod(folder_, 0755), 0);
        std::ofstream(file("odd.xml")) << odd;
    }
    void TearDown() override {
        warren_topology_close(topology_);
        for (const char* name : {"odd.xml", "image", "values"}) {
            unlink(file(name).c_str());
        }
        rmdir(folder_);
    }
    std::string file(const char* name) const { return std::string(folder_) + "/" + name; }
    void open() {
        warren_topology_report report;
        ASSERT_EQ(warren_topology_open(("xml:" + file("odd.xml")).c_str(), &topology_, &report), 0)
            << report.problem;
    }

    char folder_[32] = "/tmp/mpi-test-odd.XXXXXX";
    warren_topology* topology_ = nullptr;
};

TEST_F(OddMachine, offline_processors_are_complete_but_not_there) {
    open();
    const warren_topology* t = topology_;
    EXPECT_EQ(warren_set_count(warren_object_cpus(t, 0)), 3U);
    EXPECT_EQ(warren_set_has(warren_object_complete_cpus(t, 0), 3), 1);
    EXPECT_EQ(warren_set_has(warren_topology_available_cpus(t), 3), 0);
    EXPECT_EQ(warren_topology_by_os_index(t, WARREN_OBJECT_PU, 3), WARREN_NO_OBJECT);
    EXPECT_EQ(warren_topology_initiator_of_cpu(t, 3), WARREN_NO_INDEX);
    EXPECT_EQ(warren_topology_nearest_memory_of_cpu(t, 3), WARREN_NO_OBJECT);
    const std::uint64_t offline = 8;
    const warren_set set{&offline, 0, 1};
    EXPECT_EQ(warren_topology_covering(t, set), WARREN_NO_OBJECT);
    EXPECT_EQ(warren_topology_initiator_of_cpus(t, set), WARREN_NO_INDEX);
}

TEST_F(OddMachine, processors_without_memory_have_that_of_others) {
    open();
    const warren_topology* t = topology_;
    const warren_object far = warren_topology_by_os_index(t, WARREN_OBJECT_PU, 2);
    const warren_object memory = warren_topology_object(t, WARREN_OBJECT_NUMA_NODE, 0);
    EXPECT_EQ(warren_set_count(warren_object_nodes(t, far)), 0U);
    EXPECT_EQ(warren_object_memory_bytes(t, warren_object_parent(t, far)), 0U);
    EXPECT_EQ(warren_topology_nearest_memory(t, far), memory);
    const std::uint32_t initiator = warren_topology_initiator_of_cpu(t, 2);
    ASSERT_NE(initiator, WARREN_NO_INDEX);
    EXPECT_EQ(warren_topology_best_target(t, WARREN_ATTRIBUTE_LATENCY, initiator, 0), 0U);
    std::uint64_t near_ns = 0;
    std::uint64_t far_ns = 0;
    EXPECT_EQ(warren_topology_value(t, WARREN_ATTRIBUTE_LATENCY,
                                    warren_topology_initiator_of_cpu(t, 0), 0, &near_ns, nullptr),
              0);
    EXPECT_EQ(warren_topology_value(t, WARREN_ATTRIBUTE_LATENCY, initiator, 0, &far_ns, nullptr),
              0);
    EXPECT_GT(far_ns, near_ns);
}

TEST_F(OddMachine, a_share_without_memory_is_an_empty_one) {
    open();
    const std::uint64_t none = 0;
    const warren_set nothing{&none, 0, 1};
    ASSERT_EQ(warren_topology_restrict(topology_, nullptr, &nothing), 0);
    EXPECT_EQ(warren_set_count(warren_topology_available_nodes(topology_)), 0U);
    warren_filter filter{};
    ASSERT_EQ(warren_filter_make(topology_, WARREN_ALL_TYPES, 0, &filter), 0);
    EXPECT_EQ(warren_filter_count(topology_, &filter, WARREN_OBJECT_NUMA_NODE), 0U);
    EXPECT_EQ(warren_filter_count(topology_, &filter, WARREN_OBJECT_PU), 3U);
}

TEST_F(OddMachine, folders_without_a_machine_are_refused) {
    std::vector<std::byte> image;
    std::string note;
    Error error = named_image(folder_, true, image, note);
    ASSERT_EQ(error.error_class(), WARREN_TOPOLOGY_ERR_FILE);
    const std::unique_ptr<ErrorRecord> record(error.take());
    EXPECT_NE(record->text.find("no copy of a machine's /sys and /proc"), std::string::npos)
        << record->text;
}

// Before hwloc makes them, of which it has no end.
TEST_F(OddMachine, descriptions_of_too_many_objects_are_refused) {
    for (const char* text :
         {"pu:99999999", "pack:0x400 core:0x400 pu:0x400", "pack:+1000 core:+1000 pu:+1000",
          "1000\t1000", "core:1000 pu:1000", "1000 1000", "core:30000 [numa(memory=1GB)] pu:2",
          "pu:18446744073709551617", "package:4000000000 core:4000000000 pu:4000000000"}) {
        std::vector<std::byte> image;
        std::string note;
        Error error = named_image(std::string("synthetic:") + text, true, image, note);
        EXPECT_EQ(error.error_class(), WARREN_TOPOLOGY_ERR_LIMIT) << text;
        error.drop();
    }
    warren_topology* many = nullptr;
    ASSERT_EQ(warren_topology_open("synthetic:package:4 [numa(memory=99999)] core:64 pu:2", &many,
                                   nullptr),
              0);
    EXPECT_EQ(warren_topology_count(many, WARREN_OBJECT_PU), 512U);
    warren_topology_close(many);
}

TEST_F(OddMachine, values_that_are_refused_are_noted) {
    std::ofstream(file("values")) << "nonsense";
    setenv("WARREN_MEMORY_VALUES", file("values").c_str(), 1);
    for (const std::string& source : {file("odd.xml"), std::string("synthetic:core:2 pu:1")}) {
        std::vector<std::byte> image;
        std::string note;
        EXPECT_FALSE(named_image(source, true, image, note));
        EXPECT_NE(note.find("does not begin with"), std::string::npos) << note;
    }
    unsetenv("WARREN_MEMORY_VALUES");
}

// The rule is one for all that says what a machine is, however it is named.
TEST_F(OddMachine, files_and_folders_of_other_users_are_refused) {
    if (geteuid() != 0) {
        GTEST_SKIP() << "only root can give a file away";
    }
    constexpr uid_t other = 12345;
    const auto expect_refused = [](const std::string& source) {
        std::vector<std::byte> image;
        std::string note;
        Error error = named_image(source, true, image, note);
        ASSERT_EQ(error.error_class(), WARREN_TOPOLOGY_ERR_OWNER) << source;
        const std::unique_ptr<ErrorRecord> record(error.take());
        EXPECT_NE(record->text.find("belongs to user 12345, neither to you nor to root"),
                  std::string::npos)
            << record->text;
    };
    open();
    ASSERT_EQ(warren_topology_save(topology_, file("image").c_str()), 0);
    for (const char* name : {"image", "odd.xml"}) {
        std::vector<std::byte> image;
        std::string note;
        EXPECT_FALSE(named_image(file(name), true, image, note));
        ASSERT_EQ(chown(file(name).c_str(), other, other), 0);
        expect_refused(file(name));
    }
    expect_refused("image:" + file("image"));
    expect_refused("xml:" + file("odd.xml"));
    ASSERT_EQ(chown(folder_, other, other), 0);
    expect_refused(folder_);
    expect_refused("folder:" + std::string(folder_));
}

// In a child that is nobody: its exit code is what `ask` returns.
int as_nobody(const std::function<int()>& ask) {
    const pid_t child = fork();
    if (child == 0) {
        constexpr uid_t nobody = 65534;
        if (geteuid() == 0 && (setgid(nobody) != 0 || setuid(nobody) != 0)) {
            _exit(99);
        }
        _exit(ask());
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(OddMachine, files_that_may_not_be_read_are_refused_with_the_reason) {
    open();
    ASSERT_EQ(warren_topology_save(topology_, file("image").c_str()), 0);
    for (const char* name : {"odd.xml", "image"}) {
        ASSERT_EQ(chmod(file(name).c_str(), 0), 0);
        const std::string source = (std::string(name) == "image" ? "image:" : "xml:") + file(name);
        const int status = as_nobody([&source] {
            warren_topology* topology = nullptr;
            warren_topology_report report{};
            const int error = warren_topology_open(source.c_str(), &topology, &report);
            const bool is_said =
                std::string(report.problem).find("Permission denied") != std::string::npos;
            return topology == nullptr && is_said ? error : 100;
        });
        EXPECT_EQ(status, WARREN_TOPOLOGY_ERR_FILE) << source;
    }
}

} // namespace

} // namespace warren::discovery
