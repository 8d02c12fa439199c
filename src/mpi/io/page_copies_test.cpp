// Reads to memory at all distances from the file's pages, where some are copied slowly.
#include "mpi/io/page_copies.hpp"

#include <algorithm>
#include <cstdlib>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <memory>
#include <unistd.h>
#include <vector>

#include "mpi/io/transfer.hpp"
#include "mpi/io/tuning.hpp"

namespace warren::io {
namespace {

const void* address(std::uint64_t number) {
    return reinterpret_cast<const void*>(static_cast<std::uintptr_t>(number));
}

TEST(PageCopies, only_a_few_bytes_behind_the_source_are_slow) {
    constexpr std::uint64_t base = 0x7000'0000;
    for (std::uint64_t from = 0; from < 3 * page_bytes; from += 257) {
        for (std::uint64_t distance = 0; distance < page_bytes; ++distance) {
            const bool expected = distance > 0 && distance < slow_distances && has_slow_distances();
            ASSERT_EQ(copies_slowly(address(base + from + distance), from), expected)
                << distance << " from " << from;
        }
    }
}

std::byte byte_at(std::uint64_t offset) {
    return static_cast<std::byte>((offset * 2654435761U) >> 13);
}

class PageCopiesTest : public testing::Test {
  protected:
    static constexpr std::uint64_t file_bytes = 3 * bounce_bytes;

    void SetUp() override {
        const int descriptor = mkstemp(name_);
        ASSERT_GE(descriptor, 0);
        close(descriptor);
        ASSERT_FALSE(file_.open(name_, O_RDWR, 0));
        std::vector<std::byte> bytes(file_bytes);
        for (std::uint64_t i = 0; i < file_bytes; ++i) {
            bytes[i] = byte_at(i);
        }
        ASSERT_FALSE(file_.write(bytes.data(), bytes.size(), 0));
        const datatype::Datatype& byte = datatype::basic(MPI_BYTE);
        ASSERT_FALSE(View::make(0, byte, byte, native_, true, lock_, view_));
        medium_.file = &file_;
    }
    void TearDown() override { unlink(name_); }

    // Reads to `distance` bytes behind where the offset would be in a page.
    void read(std::uint64_t offset, std::uint64_t distance, std::uint64_t bytes) {
        const std::uint64_t place = (offset + distance) % page_bytes;
        constexpr std::byte untouched{0xa5};
        const PageMemory memory = allocate_pages(bytes + 2 * page_bytes);
        std::byte* const data = memory.get() + place;
        std::fill_n(memory.get(), bytes + 2 * page_bytes, untouched);
        Transfer transfer(medium_, *view_, scratch_, true);
        MPI_Count done = 0;
        ASSERT_FALSE(transfer.move(Direction::read,
                                   {.base = data,
                                    .count = static_cast<MPI_Count>(bytes),
                                    .type = &datatype::basic(MPI_BYTE)},
                                   static_cast<MPI_Count>(offset), done));
        const std::uint64_t there = std::min(bytes, file_bytes - offset);
        ASSERT_EQ(static_cast<std::uint64_t>(done), there);
        for (std::uint64_t i = 0; i < there; ++i) {
            ASSERT_EQ(data[i], byte_at(offset + i)) << i << " of " << offset << "+" << distance;
        }
        ASSERT_TRUE(place == 0 || data[-1] == untouched);
        ASSERT_EQ(data[there], untouched);
    }

    char name_[32] = "/tmp/mpi-test-copies.XXXXXX";
    const Representation native_{.name = "native"};
    RankLock lock_;
    SystemFile file_;
    std::shared_ptr<const View> view_;
    Medium medium_;
    Scratch scratch_;
};

TEST_F(PageCopiesTest, reads_are_right_at_all_distances) {
    for (std::uint64_t distance = 0; distance < slow_distances + 2; ++distance) {
        for (const std::uint64_t offset : {0, 1, 4095, 5000}) {
            read(offset, distance, least_bounced_bytes - 1);
            read(offset, distance, least_bounced_bytes);
            read(offset, distance, bounce_bytes + 17); // several pieces
        }
    }
}

TEST_F(PageCopiesTest, reads_end_where_the_file_does) {
    for (std::uint64_t distance : {0, 16, 64}) {
        read(file_bytes - bounce_bytes - 5, distance, 2 * bounce_bytes);
        read(file_bytes - 7, distance, bounce_bytes);
    }
}

} // namespace
} // namespace warren::io
