// Entries of write logs as ended ranks leave them, whole and damaged.
#include "launch/mpiexec/unfinished_writes.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <random>
#include <string>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mpi/job/write_log.hpp"

namespace warren::launch {
namespace {

using node::WriteEntry;
using node::WrittenPiece;

class UnfinishedWritesTest : public testing::Test {
  protected:
    static constexpr std::uint32_t ranks = 3;
    static constexpr std::uint32_t rank = 1;
    static constexpr std::uint32_t number = node::entries_per_rank - 1;

    void SetUp() override {
        ASSERT_NE(mkdtemp(folder_), nullptr);
        path_ = std::string(folder_) + "/data";
        put(path_, std::string(20, '.'));
        ASSERT_FALSE(node::Segment::create({.ranks = ranks, .cores = 2}, segment_));
        ASSERT_TRUE(
            segment_.commit_units(node::write_entries, 0, node::write_entry_unit(ranks, 0)));
        entry_ = reinterpret_cast<WriteEntry*>(
            segment_.unit(node::write_entries, node::write_entry_unit(rank, number)));
        segment_.slot(rank).logs_writes = 1;
        name_file(path_);
    }
    void TearDown() override {
        unlink(path_.c_str());
        rmdir(folder_);
    }

    static void put(const std::string& path, const std::string& text) {
        std::ofstream(path, std::ios::trunc) << text;
    }
    std::string content() const {
        std::ifstream file(path_);
        return {std::istreambuf_iterator<char>(file), {}};
    }
    void name_file(const std::string& path) {
        struct stat status;
        ASSERT_EQ(stat(path.c_str(), &status), 0);
        entry_->device = status.st_dev;
        entry_->number = status.st_ino;
        entry_->path_bytes = static_cast<std::uint32_t>(path.size() + 1);
        std::memcpy(static_cast<void*>(entry_ + 1), path.c_str(), path.size() + 1);
    }
    std::byte* pieces() { return reinterpret_cast<std::byte*>(entry_) + page_bytes; }
    void add(std::uint64_t offset, const std::string& text) {
        const WrittenPiece piece = {.offset = offset, .bytes = text.size()};
        std::byte* to = pieces() + entry_->pieces_bytes;
        std::memcpy(to, &piece, sizeof piece);
        std::memcpy(to + sizeof piece, text.data(), text.size());
        entry_->pieces_bytes += node::logged_bytes(text.size());
    }
    // The first byte of the data is there, as the kernel would have left it.
    void begin_write() { put(path_, "..a................."); }
    void enter() {
        add(2, "abc");
        add(10, "de");
        entry_->mark = node::valid_write;
    }
    std::vector<UnfinishedWrite> finish(JobUsers users = JobUsers::own) {
        return finish_writes(segment_, [users] { return users; });
    }
    void expect_problem(const char* problem) {
        const std::vector<UnfinishedWrite> unfinished = finish();
        ASSERT_EQ(unfinished.size(), 1u);
        EXPECT_EQ(unfinished[0].path, path_);
        EXPECT_EQ(unfinished[0].problem, problem);
    }

    char folder_[32] = "/tmp/mpi-test-writes.XXXXXX";
    std::string path_;
    node::Segment segment_;
    WriteEntry* entry_ = nullptr;
};

TEST_F(UnfinishedWritesTest, all_pieces_of_a_valid_entry_are_written_once) {
    enter();
    begin_write();
    EXPECT_TRUE(finish().empty());
    EXPECT_EQ(content(), "..abc.....de........");
    put(path_, "later");
    EXPECT_TRUE(finish().empty());
    EXPECT_EQ(content(), "later");
}

TEST_F(UnfinishedWritesTest, what_is_not_marked_is_not_written) {
    enter();
    entry_->mark = 0;
    EXPECT_TRUE(finish().empty());
    entry_->mark = node::valid_write;
    segment_.slot(rank).logs_writes = 0;
    EXPECT_TRUE(finish().empty());
    EXPECT_EQ(content(), std::string(20, '.'));
}

TEST_F(UnfinishedWritesTest, a_write_that_has_not_begun_is_left) {
    enter();
    EXPECT_TRUE(finish().empty());
    EXPECT_EQ(content(), std::string(20, '.'));
    put(path_, "");
    entry_->mark = node::valid_write;
    EXPECT_TRUE(finish().empty());
    EXPECT_EQ(content(), "");
}

TEST_F(UnfinishedWritesTest, newer_data_stay) {
    enter();
    put(path_, "..newer.............");
    EXPECT_TRUE(finish().empty());
    EXPECT_EQ(content(), "..newer.............");
}

TEST_F(UnfinishedWritesTest, bytes_that_another_has_locked_are_left) {
    enter();
    entry_->locks_system = 1;
    begin_write();
    const int other = open(path_.c_str(), O_RDWR);
    struct flock range = {};
    range.l_type = F_WRLCK;
    range.l_whence = SEEK_SET;
    range.l_start = 11;
    range.l_len = 100;
    ASSERT_EQ(fcntl(other, F_OFD_SETLK, &range), 0);
    const std::vector<UnfinishedWrite> unfinished = finish();
    ASSERT_EQ(unfinished.size(), 1u);
    EXPECT_EQ(unfinished[0].problem, "somebody else has locked its bytes");
    EXPECT_EQ(content(), "..a.................");
    close(other);
}

TEST_F(UnfinishedWritesTest, a_file_that_is_gone_stays_so_which_is_told) {
    enter();
    unlink(path_.c_str());
    expect_problem(std::strerror(ENOENT));
    EXPECT_NE(access(path_.c_str(), F_OK), 0);
}

TEST_F(UnfinishedWritesTest, another_file_of_the_name_is_left_alone) {
    enter();
    const std::string moved = path_ + ".moved";
    ASSERT_EQ(rename(path_.c_str(), moved.c_str()), 0);
    put(path_, "another");
    expect_problem("another file has its name");
    EXPECT_EQ(content(), "another");
    unlink(path_.c_str());
    ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
    entry_->mark = node::valid_write;
    expect_problem("another file has its name"); // and nobody waits for a reader
    unlink(moved.c_str());
}

TEST_F(UnfinishedWritesTest, jobs_with_processes_of_other_users_get_no_help) {
    enter();
    begin_write();
    const std::vector<UnfinishedWrite> unfinished = finish(JobUsers::others_too);
    ASSERT_EQ(unfinished.size(), 1u);
    EXPECT_EQ(describe(unfinished[0], "rank 7"), "the last write of rank 7 to " + path_ +
                                                     " may be there in part only: a process of "
                                                     "the job had another user");
    EXPECT_EQ(content(), "..a.................");
}

TEST_F(UnfinishedWritesTest, some_ranks_are_finished_alone) {
    enter();
    begin_write();
    const std::uint32_t others[] = {0, 2};
    const auto own = [] { return JobUsers::own; };
    EXPECT_TRUE(finish_writes(segment_, others, own).empty());
    EXPECT_EQ(content(), "..a.................");
    EXPECT_TRUE(finish_writes(segment_, std::span(&rank, 1), own).empty());
    EXPECT_EQ(content(), "..abc.....de........");
}

TEST_F(UnfinishedWritesTest, what_the_system_refuses_is_told) {
    rlimit usual;
    getrlimit(RLIMIT_FSIZE, &usual);
    const rlimit small = {.rlim_cur = 12, .rlim_max = usual.rlim_max};
    begin_write();
    add(2, "abc");
    add(11, "xyz"); // beyond the limit, for which the kernel would end the process
    entry_->mark = node::valid_write;
    setrlimit(RLIMIT_FSIZE, &small);
    const std::vector<UnfinishedWrite> unfinished = finish();
    setrlimit(RLIMIT_FSIZE, &usual);
    ASSERT_EQ(unfinished.size(), 1u);
    EXPECT_EQ(unfinished[0].rank, rank);
    EXPECT_EQ(unfinished[0].path, path_);
    EXPECT_EQ(unfinished[0].problem, std::strerror(EFBIG));
    EXPECT_EQ(content(), "..abc...............");
}

TEST_F(UnfinishedWritesTest, an_entry_that_contradicts_itself_is_refused) {
    const auto refused = [this](auto damage) {
        entry_->pieces_bytes = 0;
        enter();
        name_file(path_);
        damage();
        const std::vector<UnfinishedWrite> unfinished = finish();
        return unfinished.size() == 1 && unfinished[0].path.empty() &&
               content() == std::string(20, '.');
    };
    auto* const piece = reinterpret_cast<WrittenPiece*>(pieces());
    EXPECT_TRUE(refused([&] { entry_->path_bytes = 0; }));
    EXPECT_TRUE(refused([&] { entry_->path_bytes = 5000; }));
    EXPECT_TRUE(refused([&] { --entry_->path_bytes; }));
    EXPECT_TRUE(refused([&] { reinterpret_cast<char*>(entry_ + 1)[0] = '.'; }));
    EXPECT_TRUE(refused([&] { entry_->pieces_bytes = 0; }));
    EXPECT_TRUE(refused([&] { entry_->pieces_bytes = ~std::uint64_t{0}; }));
    EXPECT_TRUE(refused([&] { entry_->pieces_bytes -= 8; }));
    EXPECT_TRUE(refused([&] { entry_->pieces_bytes += 8; }));
    EXPECT_TRUE(refused([&] { piece->bytes = 0; }));
    EXPECT_TRUE(refused([&] { piece->bytes = ~std::uint64_t{0}; }));
    EXPECT_TRUE(refused([&] { piece->bytes = 1 << 20; }));
    EXPECT_TRUE(refused([&] { piece->offset = ~std::uint64_t{0}; }));
}

TEST_F(UnfinishedWritesTest, random_bytes_do_no_harm) {
    std::mt19937_64 random(5);
    rlimit usual;
    getrlimit(RLIMIT_FSIZE, &usual);
    const rlimit small = {.rlim_cur = 1 << 20, .rlim_max = usual.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
    for (int round = 0; round < 3000; ++round) {
        entry_->pieces_bytes = 0;
        enter();
        name_file(path_);
        const std::uint64_t changes = 1 + random() % 4;
        for (std::uint64_t i = 0; i < changes; ++i) {
            auto* const to =
                random() % 2 != 0 ? reinterpret_cast<std::byte*>(&entry_->path_bytes) : pieces();
            to[random() % 40] = static_cast<std::byte>(random() % 3 == 0 ? random() : random() % 4);
        }
        entry_->mark = node::valid_write;
        finish();
        ASSERT_EQ(entry_->mark, 0u);
        ASSERT_LE(content().size(), 1u << 20);
        put(path_, "........");
    }
    setrlimit(RLIMIT_FSIZE, &usual);
}

} // namespace
} // namespace warren::launch
