#include "memory/heap/control_group.hpp"

#include <climits>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <string>

#include "memory/attributes/machine.hpp"

namespace warren::memory {
namespace {

constexpr std::int64_t MiB = 1024 * 1024;

// A folder with files as the system has them.
class Root {
  public:
    Root() {
        std::string name = testing::TempDir() + "warren-groups-XXXXXX";
        path_ = mkdtemp(name.data());
    }
    ~Root() { std::filesystem::remove_all(path_); }
    Root(const Root&) = delete;
    Root& operator=(const Root&) = delete;

    void write(const std::string& file, const std::string& text) const {
        const std::filesystem::path path = path_ + "/" + file;
        std::filesystem::create_directories(path.parent_path());
        std::ofstream(path) << text;
    }
    void group(const std::string& folder, const std::string& limit, std::int64_t used,
               std::int64_t files, std::int64_t active = 0) const {
        write("sys/fs/cgroup" + folder + "/memory.max", limit + "\n");
        write("sys/fs/cgroup" + folder + "/memory.current", std::to_string(used) + "\n");
        write("sys/fs/cgroup" + folder + "/memory.stat",
              "anon 1\nfile 77\ninactive_file " + std::to_string(files) + "\nactive_file " +
                  std::to_string(active) + "\n");
    }
    const std::string& path() const { return path_; }
    std::int64_t left() const { return group_bytes(path_.c_str()); }

  private:
    std::string path_;
};

std::string bytes(std::int64_t mebibytes) {
    return std::to_string(mebibytes * MiB);
}

TEST(ControlGroup, without_limits_there_is_no_bound) {
    const Root root;
    EXPECT_EQ(root.left(), INT64_MAX); // no files at all
    root.write("proc/self/cgroup", "0::/\n");
    EXPECT_EQ(root.left(), INT64_MAX); // the root group has no limit
    root.write("proc/self/cgroup", "0::/a\n");
    root.group("/a", "max", 5 * MiB, 0);
    EXPECT_EQ(root.left(), INT64_MAX);
    root.write("proc/self/cgroup", "nonsense");
    EXPECT_EQ(root.left(), INT64_MAX);
}

TEST(ControlGroup, the_limit_less_what_is_used_but_for_copies_of_files) {
    const Root root;
    root.write("proc/self/cgroup", "0::/a/b\n");
    root.group("/a/b", bytes(160), 50 * MiB, 20 * MiB);
    EXPECT_EQ(root.left(), (160 - 30 - 10) * MiB);
    root.group("/a/b", bytes(160), 150 * MiB, 20 * MiB, 100 * MiB); // copies in use
    EXPECT_EQ(root.left(), (160 - 30 - 10) * MiB);
    root.group("/a/b", bytes(4096), 50 * MiB, 20 * MiB); // the reserve is bounded
    EXPECT_EQ(root.left(), (4096 - 30 - 32) * MiB);
    root.group("/a/b", bytes(160), 170 * MiB, 0);
    EXPECT_EQ(root.left(), 0);
    root.group("/a/b", bytes(160), 3 * MiB, 20 * MiB); // read a moment later
    EXPECT_EQ(root.left(), 150 * MiB);
}

TEST(ControlGroup, groups_above_bound_too) {
    const Root root;
    root.write("proc/self/cgroup", "0::/a/b/c\n");
    root.group("/a", bytes(160), 100 * MiB, 0);
    root.group("/a/b", "max", 100 * MiB, 0);
    root.group("/a/b/c", bytes(1600), 10 * MiB, 0);
    EXPECT_EQ(root.left(), 50 * MiB);
}

TEST(ControlGroup, a_path_from_outside_a_container_leads_to_its_mount) {
    const Root root;
    root.write("proc/self/cgroup", "0::/system.slice/of-the-host.scope\n");
    root.group("", bytes(160), 100 * MiB, 0);
    EXPECT_EQ(root.left(), 50 * MiB);
}

TEST(ControlGroup, version_1) {
    const Root root;
    root.write("proc/self/cgroup", "3:cpu,cpuacct:/x\n2:memory:/x\n1:name=systemd:/x\n");
    root.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    root.write("sys/fs/cgroup/memory/memory.usage_in_bytes", bytes(1000));
    root.write("sys/fs/cgroup/memory/x/memory.limit_in_bytes", bytes(320));
    root.write("sys/fs/cgroup/memory/x/memory.usage_in_bytes", bytes(120));
    root.write("sys/fs/cgroup/memory/x/memory.stat", "inactive_file 5\ntotal_inactive_file " +
                                                         bytes(12) + "\ntotal_active_file " +
                                                         bytes(8) + "\n");
    EXPECT_EQ(root.left(), (320 - 100 - 20) * MiB);
}

TEST(ControlGroup, what_is_available_is_within_it) {
    const Root root;
    root.write("sys/devices/system/node/node0/meminfo", "Node 0 MemFree: 1024000 kB\n");
    std::uint64_t available = 0;
    EXPECT_FALSE(read_available(root.path(), 0, 0, available));
    EXPECT_EQ(available, 1'024'000U * 1024);
    root.write("proc/self/cgroup", "0::/\n");
    root.group("", bytes(160), 100 * MiB, 0);
    EXPECT_FALSE(read_available(root.path(), 0, 0, available));
    EXPECT_EQ(available, 50U * MiB);
}

} // namespace
} // namespace warren::memory
