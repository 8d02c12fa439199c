#include "launch/mpiexec/limits.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <memory>

namespace warren::launch {
namespace {

// A folder with the system's files as a test wants them.
class System {
  public:
    System() {
        char name[] = "/tmp/mpi-test-limits.XXXXXX";
        root_ = mkdtemp(name);
        write("proc/loadavg", "0.10 0.20 0.30 3/400 1234");
        write("proc/sys/kernel/threads-max", "1000");
        write("proc/sys/kernel/pid_max", "4000");
        write("proc/sys/fs/inotify/max_user_instances", "128");
        write("proc/sys/vm/max_map_count", "65530");
    }
    System(const System&) = delete;
    System& operator=(const System&) = delete;
    ~System() { std::filesystem::remove_all(root_); }

    void write(const std::string& path, const std::string& text) const {
        const std::filesystem::path file = root_ + "/" + path;
        std::filesystem::create_directories(file.parent_path());
        std::ofstream(file) << text << "\n";
    }
    const std::string& root() const { return root_; }

  private:
    std::string root_;
};

std::string text_of(Error error) {
    if (!error) {
        return "";
    }
    return std::unique_ptr<ErrorRecord>(error.take())->text;
}

TEST(Limits, tasks_that_the_system_has_no_room_for_are_an_error_that_names_the_limit) {
    const System system;
    EXPECT_EQ(text_of(check_free_tasks(600, system.root())), "");
    EXPECT_EQ(text_of(check_free_tasks(601, system.root())),
              "the system's limit of threads (sysctl kernel.threads-max) is 1000, of which 400 are "
              "in use");
    system.write("proc/sys/kernel/pid_max", "401");
    EXPECT_NE(text_of(check_free_tasks(2, system.root())).find("kernel.pid_max"),
              std::string::npos);
}

TEST(Limits, the_limit_that_leaves_the_fewest_tasks_is_named_with_what_it_leaves) {
    const System system;
    EXPECT_EQ(tightest_task_limit(system.root()).room, 600U);
    system.write("proc/sys/kernel/pid_max", "900");
    const TaskLimit limit = tightest_task_limit(system.root());
    EXPECT_EQ(limit.room, 500U);
    EXPECT_NE(limit.text.find("kernel.pid_max) is 900"), std::string::npos);
}

TEST(Limits, without_the_systems_files_there_is_no_limit) {
    EXPECT_EQ(tightest_task_limit("/nowhere").text, "");
    EXPECT_EQ(text_of(check_free_tasks(1U << 20, "/nowhere")), "");
}

TEST(Limits, what_ends_first_is_named_first) {
    const System system;
    const auto limits = shared_limits(true, system.root());
    ASSERT_FALSE(limits.empty());
    EXPECT_EQ(limits.front().what, "inotify instances");
    EXPECT_EQ(limits.front().count, 128U);
    for (std::size_t i = 1; i < limits.size(); ++i) {
        EXPECT_LE(limits[i - 1].count, limits[i].count);
    }
    const auto has_mappings = [](const std::vector<SharedLimit>& all) {
        return std::any_of(all.begin(), all.end(),
                           [](const SharedLimit& one) { return one.what == "mappings"; });
    };
    EXPECT_TRUE(has_mappings(limits));
    EXPECT_FALSE(has_mappings(shared_limits(false, system.root()))); // each process has its own
}

TEST(Limits, what_not_every_rank_can_have_is_told) {
    const std::vector<SharedLimit> limits{{128, "inotify instances", "sysctl a"},
                                          {2000, "open files", "ulimit -Hn"}};
    EXPECT_EQ(describe_limits(limits, 1024),
              "all ranks together can have 128 inotify instances (sysctl a; not one each), 2000 "
              "open files (ulimit -Hn)");
    EXPECT_EQ(describe_limits({}, 4), "");
}

} // namespace
} // namespace warren::launch
