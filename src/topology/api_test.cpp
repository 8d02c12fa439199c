// The C API: every function refuses what is no argument of it, and sources that are refused say
// why.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "topology/mapping.hpp"
#include "warren/topology.h"

namespace warren::topology {

namespace {

// Two packages with two NUMA nodes and eight processors each.
class Api : public testing::Test {
  protected:
    void SetUp() override {
        warren_topology_report report;
        ASSERT_EQ(
            warren_topology_open("synthetic:package:2 numa:2 core:2 pu:2", &topology_, &report),
            WARREN_TOPOLOGY_SUCCESS)
            << report.problem;
        EXPECT_EQ(report.way, WARREN_TOPOLOGY_SYNTHETIC);
    }
    void TearDown() override { warren_topology_close(topology_); }

    // Opens `source`, which fails so, and gives the reason.
    static std::string refuse(const std::string& source, int expected) {
        warren_topology* topology = nullptr;
        warren_topology_report report;
        EXPECT_EQ(warren_topology_open(source.c_str(), &topology, &report), expected) << source;
        EXPECT_EQ(topology, nullptr);
        EXPECT_EQ(report.way, 0);
        EXPECT_STRNE(report.problem, "");
        warren_topology_close(topology);
        return report.problem;
    }

    warren_object pu(uint32_t index) const {
        return warren_topology_object(topology_, WARREN_OBJECT_PU, index);
    }

    warren_topology* topology_ = nullptr;
};

TEST_F(Api, refuses_what_is_no_source) {
    EXPECT_NE(refuse("nonsense", WARREN_TOPOLOGY_ERR_ARGUMENT).find("nonsense"), std::string::npos);
    refuse("", WARREN_TOPOLOGY_ERR_ARGUMENT);
    refuse("synthetic:pu:0", WARREN_TOPOLOGY_ERR_ARGUMENT);
    refuse("synthetic:cheese:3", WARREN_TOPOLOGY_ERR_ARGUMENT);
    refuse("image:/nowhere/at.all", WARREN_TOPOLOGY_ERR_FILE);
    refuse("xml:/nowhere/at.all", WARREN_TOPOLOGY_ERR_FILE);
    refuse("image:/dev/null", WARREN_TOPOLOGY_ERR_FILE);
    refuse("image:/", WARREN_TOPOLOGY_ERR_FILE);
    refuse("987654", WARREN_TOPOLOGY_ERR_FILE);
    refuse("image:/proc/self/exe", WARREN_TOPOLOGY_ERR_DAMAGED);
    EXPECT_EQ(warren_topology_open(nullptr, nullptr, nullptr), WARREN_TOPOLOGY_ERR_ARGUMENT);
}

// Misc objects within each other, as no machine has them: who walks down may recurse.
std::string nested_xml(int depth) {
    const std::string sets = " cpuset=\"0x1\" complete_cpuset=\"0x1\" nodeset=\"0x1\""
                             " complete_nodeset=\"0x1\"";
    std::string text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                       "<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n<topology version=\"2.0\">\n"
                       "<object type=\"Machine\" os_index=\"0\"" +
                       sets +
                       " allowed_cpuset=\"0x1\" allowed_nodeset=\"0x1\" gp_index=\"1\">\n"
                       "<object type=\"NUMANode\" os_index=\"0\"" +
                       sets + " gp_index=\"2\" local_memory=\"4096\"/>\n" +
                       "<object type=\"PU\" os_index=\"0\"" + sets + " gp_index=\"3\"/>\n";
    for (int i = 0; i < depth; ++i) {
        text += "<object type=\"Misc\" gp_index=\"" + std::to_string(10 + i) + "\">\n";
    }
    for (int i = 0; i < depth; ++i) {
        text += "</object>\n";
    }
    return text + "</object>\n</topology>\n";
}

TEST_F(Api, refuses_objects_that_are_nested_beyond_reason) {
    setenv("HWLOC_LIBXML", "0", 1); // libxml has a limit of its own
    for (const int depth : {200, 300, 3000}) {
        char path[] = "/tmp/mpi-test-nested.XXXXXX";
        const int file = mkstemp(path);
        const std::string text = nested_xml(depth);
        ASSERT_EQ(write(file, text.data(), text.size()), static_cast<ssize_t>(text.size()));
        close(file);
        warren_topology* topology = nullptr;
        warren_topology_report report{};
        const int status =
            warren_topology_open((std::string("xml:") + path).c_str(), &topology, &report);
        if (depth < 256) {
            EXPECT_EQ(status, WARREN_TOPOLOGY_SUCCESS) << report.problem;
            EXPECT_EQ(warren_topology_count(topology, WARREN_OBJECT_MISC), 200U);
        } else {
            EXPECT_EQ(status, WARREN_TOPOLOGY_ERR_LIMIT) << report.problem;
            EXPECT_NE(std::strstr(report.problem, "within each other"), nullptr) << report.problem;
        }
        warren_topology_close(topology);
        unlink(path);
    }
    unsetenv("HWLOC_LIBXML");
}

TEST_F(Api, refuses_memory_files_that_are_not_sealed) {
    std::size_t bytes = 0;
    const void* image = warren_topology_image(topology_, &bytes);
    const int file = memfd_create("test", MFD_ALLOW_SEALING);
    ASSERT_EQ(write(file, image, bytes), static_cast<ssize_t>(bytes));
    EXPECT_NE(refuse(std::to_string(file), WARREN_TOPOLOGY_ERR_FILE).find("sealed"),
              std::string::npos);
    ASSERT_EQ(fcntl(file, F_ADD_SEALS, image_seals), 0);
    warren_topology* own = nullptr;
    ASSERT_EQ(warren_topology_open(std::to_string(file).c_str(), &own, nullptr), 0);
    close(file);
    EXPECT_EQ(warren_topology_way(own), WARREN_TOPOLOGY_NODE);
    EXPECT_EQ(warren_topology_objects(own), warren_topology_objects(topology_));
    warren_topology_close(own);
}

TEST_F(Api, refuses_files_of_other_users) {
    if (geteuid() != 0) {
        GTEST_SKIP() << "only root can give a file away";
    }
    char path[] = "/tmp/mpi-test-api-test.XXXXXX";
    const int file = mkstemp(path);
    ASSERT_GE(file, 0);
    ASSERT_EQ(warren_topology_save(topology_, path), 0);
    // Saving has made another file of this name.
    ASSERT_EQ(chown(path, 12345, 12345), 0);
    refuse(std::string("image:") + path, WARREN_TOPOLOGY_ERR_OWNER);
    refuse(std::string("xml:") + path, WARREN_TOPOLOGY_ERR_OWNER);
    ASSERT_EQ(chown(path, 0, 0), 0);
    refuse(std::string("xml:") + path, WARREN_TOPOLOGY_ERR_DAMAGED);
    close(file);
    unlink(path);
}

TEST_F(Api, reads_what_it_has_saved) {
    char path[] = "/tmp/mpi-test-api-test.XXXXXX";
    close(mkstemp(path));
    ASSERT_EQ(warren_topology_save(topology_, path), 0);
    warren_topology* own = nullptr;
    ASSERT_EQ(warren_topology_open((std::string("image:") + path).c_str(), &own, nullptr), 0);
    EXPECT_EQ(warren_topology_way(own), WARREN_TOPOLOGY_FILE);
    std::size_t bytes = 0;
    std::size_t own_bytes = 0;
    const void* image = warren_topology_image(topology_, &bytes);
    const void* own_image = warren_topology_image(own, &own_bytes);
    ASSERT_EQ(bytes, own_bytes);
    EXPECT_EQ(std::memcmp(image, own_image, bytes), 0);
    warren_topology_close(own);
    ASSERT_EQ(truncate(path, static_cast<off_t>(bytes - 8)), 0);
    refuse(std::string("image:") + path, WARREN_TOPOLOGY_ERR_DAMAGED);
    unlink(path);
    EXPECT_EQ(warren_topology_save(topology_, "/nowhere/at.all"), WARREN_TOPOLOGY_ERR_FILE);
    ASSERT_EQ(mkfifo(path, 0600), 0); // stays what it is
    EXPECT_EQ(warren_topology_save(topology_, path), WARREN_TOPOLOGY_ERR_FILE);
    struct stat status {};
    EXPECT_TRUE(stat(path, &status) == 0 && S_ISFIFO(status.st_mode));
    unlink(path);
    EXPECT_EQ(warren_topology_save(nullptr, path), WARREN_TOPOLOGY_ERR_ARGUMENT);
}

TEST_F(Api, loads_what_the_environment_names_or_else_the_machine) {
    std::size_t bytes = 0;
    const auto* image = static_cast<const std::byte*>(warren_topology_image(topology_, &bytes));
    int file = -1;
    ASSERT_FALSE(share_image({image, bytes}, file));
    setenv("WARREN_TOPOLOGY", std::to_string(file).c_str(), 1);
    warren_topology* own = nullptr;
    warren_topology_report report;
    ASSERT_EQ(warren_topology_load(&own, &report), 0);
    EXPECT_EQ(report.way, WARREN_TOPOLOGY_NODE);
    EXPECT_STREQ(report.problem, "");
    warren_topology_close(own);
    close(file);
    ASSERT_EQ(warren_topology_load(&own, &report), 0);
    EXPECT_EQ(report.way, WARREN_TOPOLOGY_NATIVE);
    EXPECT_STRNE(report.problem, ""); // why not the better way
    warren_topology_close(own);
    unsetenv("WARREN_TOPOLOGY");
    ASSERT_EQ(warren_topology_load(&own, nullptr), 0);
    EXPECT_EQ(warren_topology_way(own), WARREN_TOPOLOGY_NATIVE);
    warren_topology_close(own);
}

TEST_F(Api, loads_by_the_way_that_the_environment_forces) {
    warren_topology* loaded = nullptr;
    warren_topology_report report;
    setenv("WARREN_TOPOLOGY", "synthetic:core:3 pu:1", 1);
    setenv("WARREN_TOPOLOGY_WAY", "native", 1);
    ASSERT_EQ(warren_topology_load(&loaded, &report), WARREN_TOPOLOGY_SUCCESS) << report.problem;
    EXPECT_EQ(report.way, WARREN_TOPOLOGY_NATIVE);
    warren_topology_close(loaded);
    setenv("WARREN_TOPOLOGY_WAY", "image", 1);
    EXPECT_EQ(warren_topology_load(&loaded, &report), WARREN_TOPOLOGY_ERR_ARGUMENT);
    EXPECT_EQ(loaded, nullptr);
    EXPECT_NE(std::strstr(report.problem, "synthetic:core:3"), nullptr) << report.problem;
    setenv("WARREN_TOPOLOGY", "image:/no/such/image", 1);
    EXPECT_NE(warren_topology_load(&loaded, &report), WARREN_TOPOLOGY_SUCCESS);
    EXPECT_EQ(loaded, nullptr);
    EXPECT_EQ(report.way, 0);
    unsetenv("WARREN_TOPOLOGY");
    EXPECT_EQ(warren_topology_load(&loaded, &report), WARREN_TOPOLOGY_ERR_FILE);
    EXPECT_NE(std::strstr(report.problem, "names none"), nullptr);
    setenv("WARREN_TOPOLOGY_WAY", "guess", 1);
    EXPECT_EQ(warren_topology_load(&loaded, &report), WARREN_TOPOLOGY_ERR_ARGUMENT);
    EXPECT_EQ(loaded, nullptr);
    unsetenv("WARREN_TOPOLOGY_WAY");
}

TEST_F(Api, answers_wrong_arguments) {
    EXPECT_EQ(warren_object_common_ancestor(nullptr, 0, 0), WARREN_NO_OBJECT);
    const warren_topology* t = topology_;
    const uint32_t beyond = warren_topology_objects(t);
    for (const uint32_t object : {beyond, beyond + 1, WARREN_NO_OBJECT}) {
        EXPECT_EQ(warren_object_type(t, object), -1);
        EXPECT_EQ(warren_object_depth(t, object), -1);
        EXPECT_EQ(warren_object_logical_index(t, object), WARREN_NO_INDEX);
        EXPECT_EQ(warren_object_os_index(t, object), WARREN_NO_INDEX);
        EXPECT_EQ(warren_object_parent(t, object), WARREN_NO_OBJECT);
        EXPECT_EQ(warren_object_cpus(t, object).count, 0U);
        EXPECT_EQ(warren_object_complete_nodes(t, object).count, 0U);
        EXPECT_EQ(warren_object_child_count(t, object, WARREN_CHILD_TREE), 0U);
        EXPECT_EQ(warren_object_common_ancestor(t, 0, object), WARREN_NO_OBJECT);
        EXPECT_EQ(warren_object_is_below(t, object, 0), 0);
        EXPECT_EQ(warren_object_name(t, object), nullptr);
        EXPECT_EQ(warren_topology_nearest_memory(t, object), WARREN_NO_OBJECT);
        EXPECT_EQ(warren_topology_nearest_device(t, object, 0, 0), WARREN_NO_OBJECT);
        EXPECT_EQ(warren_topology_initiator_of_object(t, object), WARREN_NO_INDEX);
    }
    EXPECT_EQ(warren_topology_count(t, -1), 0U);
    EXPECT_EQ(warren_topology_count(t, WARREN_OBJECT_TYPES), 0U);
    EXPECT_EQ(warren_topology_by_os_index(t, WARREN_OBJECT_PU, 16), WARREN_NO_OBJECT);
    EXPECT_EQ(warren_topology_by_os_index(t, WARREN_OBJECT_CORE, WARREN_NO_INDEX),
              WARREN_NO_OBJECT);
    EXPECT_EQ(warren_topology_next(t, WARREN_OBJECT_PU, beyond), WARREN_NO_OBJECT);
    EXPECT_EQ(warren_object_child(t, 0, WARREN_CHILD_TREE, 2), WARREN_NO_OBJECT);
    EXPECT_EQ(warren_object_child(t, 0, 4, 0), WARREN_NO_OBJECT);
    EXPECT_EQ(warren_topology_level(t, 99, nullptr, nullptr, nullptr),
              WARREN_TOPOLOGY_ERR_ARGUMENT);
    warren_cache cache;
    EXPECT_EQ(warren_object_cache(t, 0, &cache), WARREN_TOPOLOGY_ERR_NONE);
    EXPECT_EQ(warren_object_cache(t, 0, nullptr), WARREN_TOPOLOGY_ERR_ARGUMENT);
    uint64_t value = 0;
    EXPECT_EQ(warren_topology_distance(t, 99, 0, 0, &value), WARREN_TOPOLOGY_ERR_ARGUMENT);
    EXPECT_EQ(warren_topology_value(t, 99, 0, 0, &value, nullptr), WARREN_TOPOLOGY_ERR_ARGUMENT);
    EXPECT_EQ(warren_topology_value(t, WARREN_ATTRIBUTE_LATENCY, 99, 0, &value, nullptr),
              WARREN_TOPOLOGY_ERR_ARGUMENT);
    EXPECT_EQ(warren_topology_value(t, WARREN_ATTRIBUTE_LATENCY, 0, 99, &value, nullptr),
              WARREN_TOPOLOGY_ERR_ARGUMENT);
    EXPECT_EQ(
        warren_topology_value(t, WARREN_ATTRIBUTE_CAPACITY, WARREN_NO_INDEX, 0, &value, nullptr),
        WARREN_TOPOLOGY_SUCCESS);
    EXPECT_EQ(warren_topology_best_target(t, 99, 0, 0), WARREN_NO_INDEX);
    EXPECT_EQ(warren_topology_best_target(t, 0, 0, 99), WARREN_NO_INDEX);
    const uint64_t huge[] = {1};
    EXPECT_EQ(warren_topology_covering(t, {huge, 0, 0xffffffff}), WARREN_NO_OBJECT);
    EXPECT_EQ(warren_topology_covering(t, {huge, 0xffffffff, 1}), WARREN_NO_OBJECT);
    EXPECT_EQ(warren_topology_covering(t, {nullptr, 0, 1}), WARREN_NO_OBJECT);
    EXPECT_EQ(warren_topology_initiator_of_cpus(t, {huge, 0, 0xffffffff}), WARREN_NO_INDEX);
    EXPECT_EQ(warren_object_type(nullptr, 0), -1);
    EXPECT_EQ(warren_topology_objects(nullptr), 0U);
    warren_topology_close(nullptr);
}

TEST_F(Api, knows_types_by_their_names) {
    for (int type = 0; type < WARREN_OBJECT_TYPES; ++type) {
        EXPECT_EQ(warren_object_type_by_name(warren_object_type_name(type)), type);
    }
    EXPECT_EQ(warren_object_type_by_name("numanode"), WARREN_OBJECT_NUMA_NODE);
    EXPECT_EQ(warren_object_type_by_name("cheese"), -1);
    EXPECT_EQ(warren_object_type_by_name(nullptr), -1);
}

TEST_F(Api, guesses_latencies_and_bandwidths_by_locality) {
    uint64_t local = 0;
    uint64_t remote = 0;
    int origin = 0;
    const uint32_t initiator = warren_topology_initiator_of_cpu(topology_, 5); // node 1
    ASSERT_EQ(initiator, warren_topology_initiator_of_object(topology_, pu(4)));
    ASSERT_EQ(
        warren_topology_value(topology_, WARREN_ATTRIBUTE_LATENCY, initiator, 1, &local, &origin),
        0);
    EXPECT_EQ(origin, WARREN_ORIGIN_GUESSED);
    ASSERT_EQ(
        warren_topology_value(topology_, WARREN_ATTRIBUTE_LATENCY, initiator, 2, &remote, &origin),
        0);
    EXPECT_LT(local, remote);
    ASSERT_EQ(
        warren_topology_value(topology_, WARREN_ATTRIBUTE_BANDWIDTH, initiator, 1, &local, nullptr),
        0);
    ASSERT_EQ(warren_topology_value(topology_, WARREN_ATTRIBUTE_BANDWIDTH, initiator, 2, &remote,
                                    nullptr),
              0);
    EXPECT_GT(local, remote);
    EXPECT_EQ(warren_topology_best_target(topology_, WARREN_ATTRIBUTE_LATENCY, initiator, 0), 1U);
    EXPECT_EQ(warren_topology_nearest_memory_of_cpu(topology_, 5),
              warren_topology_by_os_index(topology_, WARREN_OBJECT_NUMA_NODE, 1));
    EXPECT_EQ(warren_topology_nearest_memory(topology_, pu(15)),
              warren_topology_by_os_index(topology_, WARREN_OBJECT_NUMA_NODE, 3));
}

TEST_F(Api, sets_can_be_walked_tested_and_compared) {
    const uint64_t words[] = {0x8000000000000001, 0, 0x10};
    const warren_set set{words, 1, 3}; // 64, 127, 196
    EXPECT_EQ(warren_set_next(set, 0), 64U);
    EXPECT_EQ(warren_set_next(set, 65), 127U);
    EXPECT_EQ(warren_set_next(set, 128), 196U);
    EXPECT_EQ(warren_set_next(set, 197), WARREN_NO_INDEX);
    EXPECT_EQ(warren_set_next(set, 5000), WARREN_NO_INDEX);
    EXPECT_EQ(warren_set_count(set), 3U);
    EXPECT_EQ(warren_set_has(set, 0), 0);
    EXPECT_EQ(warren_set_has(set, 127), 1);
    EXPECT_EQ(warren_set_has(set, 256), 0);
    const uint64_t part_words[] = {0, 1};
    EXPECT_EQ(warren_set_includes(set, {part_words, 0, 2}), 1);
    EXPECT_EQ(warren_set_includes({part_words, 0, 2}, set), 0);
    EXPECT_EQ(warren_set_intersects(set, {part_words, 0, 2}), 1);
    EXPECT_EQ(warren_set_intersects(set, {part_words, 1, 2}), 0);
    EXPECT_EQ(warren_set_includes(set, {nullptr, 0, 0}), 1);
}

} // namespace

} // namespace warren::topology
