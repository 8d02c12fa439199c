// The window heap: extents don't overlap, what is given back is taken again and zero, ranks that
// take and give at the same time keep the table in order.
#include "mpi/rma/heap.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <gtest/gtest.h>
#include <thread>
#include <utility>
#include <vector>

#include "mpi.h"

namespace warren::rma {
namespace {

struct WindowHeapTest : testing::Test {
    void SetUp() override {
        ASSERT_FALSE(node::Segment::create({.ranks = 2, .cores = 2}, segment));
    }
    std::uint64_t take(WindowHeap& heap, std::uint64_t bytes) {
        std::uint64_t offset = 0;
        Error error = heap.take(bytes, offset);
        EXPECT_FALSE(error);
        error.drop();
        return offset;
    }
    node::Segment segment;
};

TEST_F(WindowHeapTest, ExtentsLieBehindTheSegmentAndDoNotOverlap) {
    WindowHeap heap;
    ASSERT_FALSE(WindowHeap::open(segment, 0, heap));
    const std::uint64_t first = take(heap, 1);
    const std::uint64_t second = take(heap, 3 * page_bytes + 1);
    const std::uint64_t third = take(heap, page_bytes);
    EXPECT_GE(first, segment.header().bytes);
    EXPECT_EQ(second, first + page_bytes);
    EXPECT_EQ(third, second + 4 * page_bytes);
}

TEST_F(WindowHeapTest, TheFirstGapThatIsLargeEnoughIsTaken) {
    WindowHeap heap;
    ASSERT_FALSE(WindowHeap::open(segment, 0, heap));
    const std::uint64_t first = take(heap, page_bytes);
    const std::uint64_t second = take(heap, 4 * page_bytes);
    const std::uint64_t third = take(heap, page_bytes);
    heap.give_back(first);
    heap.give_back(second);
    EXPECT_EQ(take(heap, 5 * page_bytes), first);
    heap.give_back(first);
    EXPECT_EQ(take(heap, 6 * page_bytes), third + page_bytes);
    EXPECT_EQ(take(heap, page_bytes), first);
}

TEST_F(WindowHeapTest, MemoryThatIsTakenAgainIsZero) {
    WindowHeap heap;
    ASSERT_FALSE(WindowHeap::open(segment, 0, heap));
    const std::uint64_t offset = take(heap, page_bytes);
    for (int turn = 0; turn < 3; ++turn) {
        ASSERT_FALSE(WindowHeap::commit(segment, offset, page_bytes));
        SharedPart part;
        ASSERT_FALSE(SharedPart::map(segment, offset, page_bytes, part));
        for (std::uint64_t i = 0; i < page_bytes; ++i) {
            ASSERT_EQ(part.base()[i], std::byte{0});
        }
        std::memset(part.base(), 1, page_bytes);
        part.drop();
        heap.give_back(offset);
        ASSERT_EQ(take(heap, page_bytes), offset);
    }
}

TEST_F(WindowHeapTest, AHeapThatIsTooLargeIsAnError) {
    WindowHeap heap;
    ASSERT_FALSE(WindowHeap::open(segment, 0, heap));
    std::uint64_t offset = 0;
    Error error = heap.take(~std::uint64_t{0}, offset);
    EXPECT_EQ(error.error_class(), MPI_ERR_NO_MEM);
    error.drop();
    error = heap.take(std::uint64_t{1} << 63, offset);
    EXPECT_EQ(error.error_class(), MPI_ERR_NO_MEM);
    error.drop();
    EXPECT_NE(take(heap, 1), 0U);
}

TEST_F(WindowHeapTest, RanksTakeAndGiveAtTheSameTime) {
    constexpr int turns = 300;
    const auto run = [this](std::uint32_t rank) {
        WindowHeap heap;
        ASSERT_FALSE(WindowHeap::open(segment, rank, heap));
        std::vector<std::uint64_t> own;
        for (int turn = 0; turn < turns; ++turn) {
            const std::uint64_t offset = take(heap, page_bytes * (1 + turn % 3));
            ASSERT_FALSE(WindowHeap::commit(segment, offset, page_bytes));
            SharedPart part;
            ASSERT_FALSE(SharedPart::map(segment, offset, page_bytes, part));
            ASSERT_EQ(part.base()[0], std::byte{0}) << "another rank has it, too";
            part.base()[0] = std::byte{1};
            own.push_back(offset);
            if (own.size() > 10) {
                heap.give_back(own.front());
                own.erase(own.begin());
            }
        }
    };
    std::thread other(run, 1);
    run(0);
    other.join();
}

TEST_F(WindowHeapTest, RanksOfAProcessShareAMapping) {
    WindowHeap heap;
    ASSERT_FALSE(WindowHeap::open(segment, 0, heap));
    const std::uint64_t offset = take(heap, page_bytes);
    SharedPart one;
    SharedPart other;
    ASSERT_FALSE(SharedPart::map(segment, offset, page_bytes, one));
    ASSERT_FALSE(SharedPart::map(segment, offset, page_bytes, other));
    EXPECT_EQ(one.base(), other.base());
    SharedPart moved = std::move(one);
    EXPECT_FALSE(one);
    moved.drop();
    ASSERT_FALSE(WindowHeap::commit(segment, offset, page_bytes));
    other.base()[5] = std::byte{1}; // still mapped
}

TEST_F(WindowHeapTest, AMappingThatIsLessAlignedIsNotShared) {
    WindowHeap heap;
    ASSERT_FALSE(WindowHeap::open(segment, 0, heap));
    const std::uint64_t offset = take(heap, page_bytes);
    ASSERT_FALSE(WindowHeap::commit(segment, offset, page_bytes));
    SharedPart before;
    ASSERT_FALSE(SharedPart::map(segment, offset, page_bytes, before));
    const auto place = reinterpret_cast<std::uint64_t>(before.base());
    const std::uint64_t alignment = (place & -place) * 2; // which that one does not have
    SharedPart one;
    SharedPart other;
    ASSERT_FALSE(SharedPart::map(segment, offset, page_bytes, one, alignment));
    ASSERT_FALSE(SharedPart::map(segment, offset, page_bytes, other, alignment));
    EXPECT_EQ(reinterpret_cast<std::uint64_t>(one.base()) % alignment, 0U);
    EXPECT_EQ(one.base(), other.base());
    before.base()[7] = std::byte{1};
    EXPECT_EQ(one.base()[7], std::byte{1}) << "it is the same memory";
}

TEST_F(WindowHeapTest, AddressesWithoutMemoryAreNotCharged) {
    WindowHeap heap;
    ASSERT_FALSE(WindowHeap::open(segment, 0, heap));
    constexpr std::uint64_t space = std::uint64_t{1} << 46; // more than a node has
    std::uint64_t offset = 0;
    Error error = heap.take(space, page_bytes, offset);
    EXPECT_FALSE(error);
    error.drop();
    error = heap.take(page_bytes, space, offset);
    EXPECT_EQ(error.error_class(), MPI_ERR_NO_MEM);
    error.drop();
}

// Two threads that share one processor, or not: the sum says whether anybody was let in twice.
struct SharedMutexTest : testing::Test {
    void SetUp() override {
        ASSERT_FALSE(node::Segment::create({.ranks = 3, .cores = 2}, segment));
    }
    node::Segment segment;
};

TEST_F(SharedMutexTest, ExcludesThreadsThatSpinAndThatSleep) {
    for (const bool spins : {false, true}) {
        SharedMutex mutex{};
        long sum = 0;
        constexpr long turns = 100000;
        const auto count = [&](std::uint32_t rank) {
            for (long turn = 0; turn < turns; ++turn) {
                const SharedLock lock(mutex, {.segment = &segment, .rank = rank, .spins = spins});
                ++sum;
            }
        };
        std::thread one(count, 1);
        std::thread two(count, 2);
        count(0);
        one.join();
        two.join();
        EXPECT_EQ(sum, 3 * turns);
    }
}

TEST_F(SharedMutexTest, IsTakenOverFromARankThatHasEnded) {
    SharedMutex mutex{};
    EXPECT_EQ(mutex.lock({.segment = &segment, .rank = 1, .spins = false}), SharedMutex::nobody);
    EXPECT_EQ(mutex.ended_owner(segment), SharedMutex::nobody);
    // Two ranks wait for it; one of them takes it over.
    std::atomic<int> times{0};
    const auto take = [&](std::uint32_t rank) {
        const SharedLock lock(mutex, {.segment = &segment, .rank = rank, .spins = rank == 0});
        if (lock.taken_over_from() != SharedMutex::nobody) {
            EXPECT_EQ(lock.taken_over_from(), 1);
            times.fetch_add(1);
        }
    };
    std::thread one(take, 0);
    std::thread two(take, 2);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_EQ(times.load(), 0);
    segment.slot(1).ended.store(1);
    segment.header().ended_ranks.store(1);
    EXPECT_EQ(mutex.ended_owner(segment) == 1 || times.load() > 0, true);
    one.join();
    two.join();
    EXPECT_EQ(times.load(), 1);
}

} // namespace
} // namespace warren::rma
