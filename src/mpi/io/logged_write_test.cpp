// An atomic write enters its pieces in the write log of its rank.
#include "mpi/io/logged_write.hpp"

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include "mpi/datatype/construct.hpp"
#include "mpi/io/view.hpp"

namespace warren::io {
namespace {

using datatype::Buffer;
using Result = LoggedWrite::Result;
using Pieces = std::vector<std::pair<std::uint64_t, std::string>>;

const Representation native{.name = "native"};

class LoggedWriteTest : public testing::Test {
  protected:
    static constexpr std::uint32_t rank = 1;

    void SetUp() override {
        ASSERT_FALSE(node::Segment::create({.ranks = 2, .cores = 2}, segment_));
        segment_.header().launcher_pid = 1;
        log_ = WriteLog(segment_, rank);
        ASSERT_TRUE(log_);
        entry_ = entry(0);
        const int descriptor = mkstemp(name_);
        ASSERT_GE(descriptor, 0);
        close(descriptor);
        ASSERT_FALSE(file_.open(name_, O_RDWR, 0));
        file_.find_full_path();
    }
    void TearDown() override { unlink(name_); }

    std::shared_ptr<const View> view_of(std::uint64_t displacement,
                                        const datatype::Datatype& type) {
        std::shared_ptr<const View> made;
        EXPECT_FALSE(
            View::make(displacement, datatype::basic(MPI_BYTE), type, native, true, lock_, made));
        return made;
    }
    // `count` blocks of `length` bytes, `stride` apart, in an element.
    static void make_vector(MPI_Count count, MPI_Count length, MPI_Count stride,
                            datatype::Draft& made) {
        ASSERT_FALSE(datatype::make_vector(count, length, stride, datatype::basic(MPI_BYTE), made));
        made.type.references = 1; // it is in no table that frees it
    }
    static Buffer bytes(const void* data, std::size_t count) {
        return {.base = const_cast<void*>(data),
                .count = static_cast<MPI_Count>(count),
                .type = &datatype::basic(MPI_BYTE)};
    }
    node::WriteEntry* entry(std::uint32_t number) const {
        return reinterpret_cast<node::WriteEntry*>(
            segment_.unit(node::write_entries, node::write_entry_unit(rank, number)));
    }
    Pieces pieces(std::uint32_t number = 0) const {
        Pieces found;
        const std::byte* at = reinterpret_cast<const std::byte*>(entry(number)) + page_bytes;
        const std::byte* const end = at + entry(number)->pieces_bytes;
        while (at < end) {
            node::WrittenPiece piece;
            std::memcpy(&piece, at, sizeof piece);
            found.emplace_back(piece.offset,
                               std::string(reinterpret_cast<const char*>(at + sizeof piece),
                                           static_cast<std::size_t>(piece.bytes)));
            at += node::logged_bytes(piece.bytes);
        }
        return found;
    }

    char name_[32] = "/tmp/mpi-test-log.XXXXXX";
    RankLock lock_;
    node::Segment segment_;
    WriteLog log_;
    node::WriteEntry* entry_ = nullptr;
    SystemFile file_;
};

TEST_F(LoggedWriteTest, an_entry_is_valid_while_it_is_written) {
    const auto view = view_of(5000, datatype::basic(MPI_BYTE));
    {
        LoggedWrite write(log_, file_, true);
        ASSERT_EQ(write.enter(*view, bytes("some data", 9), 10), Result::entered);
        EXPECT_EQ(entry_->mark, node::valid_write);
        EXPECT_EQ(pieces(), (Pieces{{5010, "some data"}}));
        EXPECT_EQ(entry_->device, file_.device());
        EXPECT_EQ(entry_->number, file_.number());
        EXPECT_EQ(entry_->locks_system, 1u);
        EXPECT_EQ(std::string(reinterpret_cast<const char*>(entry_ + 1)), name_);
        EXPECT_EQ(entry_->path_bytes, std::strlen(name_) + 1);
        EXPECT_EQ(segment_.slot(rank).logs_writes, 1u);
    }
    EXPECT_EQ(entry_->mark, 0u);
}

TEST_F(LoggedWriteTest, blocks_of_the_file_are_pieces_and_gaps_of_memory_are_left_out) {
    datatype::Draft tile;
    datatype::Draft pairs;
    make_vector(2, 3, 10, tile);
    make_vector(3, 2, 3, pairs);
    const auto view = view_of(100, tile.type);
    LoggedWrite write(log_, file_, false);
    ASSERT_EQ(write.enter(*view,
                          {.base = const_cast<char*>("ab-cd-ef"), .count = 1, .type = &pairs.type},
                          1),
              Result::entered);
    // (A tile's last block touches the first of the next.)
    EXPECT_EQ(pieces(), (Pieces{{101, "ab"}, {110, "cdef"}}));
}

TEST_F(LoggedWriteTest, memory_is_committed_as_far_as_it_is_used) {
    const auto view = view_of(0, datatype::basic(MPI_BYTE));
    const std::vector<std::byte> data(node::logged_data_bytes + 1);
    const auto enter = [&](std::size_t count) {
        LoggedWrite write(log_, file_, false);
        return write.enter(*view, bytes(data.data(), count), 0);
    };
    const std::uint32_t& committed = entry_->committed_pages[0];
    EXPECT_EQ(committed, 1u);
    EXPECT_EQ(enter(100), Result::entered);
    EXPECT_EQ(committed, 2u);
    EXPECT_EQ(enter(5000), Result::entered);
    EXPECT_EQ(committed, 3u);
    EXPECT_EQ(enter(100), Result::entered);
    EXPECT_EQ(committed, 3u);
    EXPECT_EQ(entry_->committed_pages[1], 0u);
    EXPECT_EQ(enter(node::logged_data_bytes), Result::entered);
    EXPECT_EQ(enter(node::logged_data_bytes + 1), Result::too_large);
}

TEST_F(LoggedWriteTest, what_may_not_fit_takes_no_entry) {
    datatype::Draft tile;
    make_vector(1000, 2, 4, tile);
    const auto view = view_of(0, tile.type);
    EXPECT_TRUE(LoggedWrite::may_fit(*view, 6000));
    EXPECT_FALSE(LoggedWrite::may_fit(*view, 8000));
    EXPECT_TRUE(LoggedWrite::may_fit(*view_of(0, datatype::basic(MPI_BYTE)), 64 << 10));
    const std::vector<std::byte> data(8000);
    LoggedWrite write(log_, file_, false);
    EXPECT_EQ(write.enter(*view, bytes(data.data(), data.size()), 0), Result::too_large);
    EXPECT_EQ(entry_->turns[0], 0u);
}

TEST_F(LoggedWriteTest, too_many_pieces_do_not_fit) {
    datatype::Draft tile;
    make_vector(2, 1, 3, tile);
    const auto view = view_of(0, tile.type);
    const std::vector<std::byte> data(node::logged_data_bytes);
    LoggedWrite write(log_, file_, false);
    EXPECT_EQ(write.enter(*view, bytes(data.data(), data.size()), 0), Result::too_large);
    EXPECT_EQ(entry_->mark, 0u);
}

TEST_F(LoggedWriteTest, records_in_several_pages_are_entered) {
    std::string data(3 * page_bytes, '.');
    for (std::size_t i = 0; i < data.size(); ++i) {
        data[i] = static_cast<char>('a' + i / 7 % 26);
    }
    const auto entered = [&](const View& view, std::size_t count, MPI_Count record) {
        LoggedWrite write(log_, file_, false);
        EXPECT_EQ(write.enter_records(view, bytes(data.data(), count), 0, record), Result::entered);
        EXPECT_EQ(entry_->mark == node::valid_write, !pieces().empty());
        return pieces();
    };
    const auto part = [&](std::size_t at, std::size_t count) { return data.substr(at, count); };
    const auto view = view_of(4000, datatype::basic(MPI_BYTE)); // pages begin at 96, 4192, …
    EXPECT_EQ(entered(*view, 5000, 100), (Pieces{{4000, part(0, 100)}, {8100, part(4100, 100)}}));
    EXPECT_EQ(entered(*view, 4192, 96), (Pieces{}));
    // Whole records: one over a page long, and the next, which has the begin of another page.
    EXPECT_EQ(entered(*view, 10000, 5000),
              (Pieces{{4000, part(0, 5000)}, {9000, part(5000, 5000)}}));
}

TEST_F(LoggedWriteTest, several_threads_of_a_rank_have_an_entry_each) {
    const auto view = view_of(0, datatype::basic(MPI_BYTE));
    std::array<std::optional<LoggedWrite>, node::entries_per_rank> writes;
    for (std::uint32_t i = 0; i < writes.size(); ++i) {
        const std::string data(10, static_cast<char>('a' + i));
        ASSERT_EQ(writes[i].emplace(log_, file_, false).enter(*view, bytes(data.data(), 10), i),
                  Result::entered);
        EXPECT_EQ(pieces(writes[i]->number()), (Pieces{{i, data}}));
        EXPECT_EQ(writes[i]->number(), i);
    }
}

TEST_F(LoggedWriteTest, threads_of_a_rank_take_turns) {
    const auto view = view_of(0, datatype::basic(MPI_BYTE));
    constexpr int rounds = 2000;
    std::atomic<int> mixed{0};
    const auto work = [&](char letter) {
        const std::string data(200, letter);
        for (int round = 0; round < rounds; ++round) {
            LoggedWrite write(log_, file_, false);
            if (write.enter(*view, bytes(data.data(), data.size()), 0) != Result::entered) {
                ++mixed;
            }
            if (pieces(write.number()) != Pieces{{0, data}}) {
                ++mixed;
            }
        }
    };
    std::vector<std::thread> threads;
    for (std::uint32_t i = 0; i < 2 * node::entries_per_rank; ++i) {
        threads.emplace_back(work, static_cast<char>('a' + i));
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(mixed, 0);
    for (const std::atomic<std::uint32_t>& turn : entry_->turns) {
        EXPECT_EQ(turn, 0u);
    }
}

TEST_F(LoggedWriteTest, a_program_without_mpiexec_has_no_log) {
    segment_.header().launcher_pid = static_cast<std::uint32_t>(getpid());
    EXPECT_FALSE(WriteLog(segment_, 0));
}

} // namespace
} // namespace warren::io
