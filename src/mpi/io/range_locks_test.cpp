// Range locks: who excludes whom, whose turn it is, and what becomes of locks of ranks that have
// ended while others go on.
#include "mpi/io/range_locks.hpp"

#include <atomic>
#include <chrono>
#include <gtest/gtest.h>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

namespace warren::io {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t device = 5;
constexpr std::uint64_t number = 77;
constexpr std::uint32_t ranks = 4;

struct RangeLocksTest : testing::Test {
    void SetUp() override {
        ASSERT_FALSE(node::Segment::create({.ranks = ranks, .cores = 2}, segment));
        ASSERT_FALSE(RangeLocks::commit(segment, device, number));
        for (std::uint32_t rank = 0; rank < ranks; ++rank) {
            locks.emplace_back(segment, device, number, rank, false);
        }
    }
    void end(std::uint32_t rank) {
        segment.slot(rank).ended = 1;
        ++segment.header().ended_ranks;
    }
    // Whether a lock can be had while the others hold theirs; gives it back.
    template <typename Lock>
    bool soon(std::uint32_t rank, Lock lock) {
        const auto had = std::make_shared<std::atomic<bool>>(false);
        std::thread thread([this, rank, lock, had] {
            locks[rank].unlock(lock(locks[rank]));
            *had = true;
        });
        constexpr auto patience = 100ms;
        const auto limit = std::chrono::steady_clock::now() + patience;
        while (!*had && std::chrono::steady_clock::now() < limit) {
            std::this_thread::sleep_for(1ms);
        }
        const bool result = *had;
        waiting.push_back(std::move(thread));
        return result;
    }
    void join() {
        for (std::thread& thread : waiting) {
            thread.join();
        }
        waiting.clear();
    }
    void TearDown() override { join(); }

    node::Segment segment;
    std::vector<RangeLocks> locks;
    std::vector<std::thread> waiting;
};

int share_all(const RangeLocks& locks) {
    return locks.lock_shared(0, 100);
}
int exclude_all(const RangeLocks& locks) {
    return locks.lock_exclusive(0, 100);
}

TEST_F(RangeLocksTest, an_exclusive_lock_excludes_what_overlaps_it) {
    const int held = locks[0].lock_exclusive(10, 20);
    EXPECT_TRUE(soon(1, [](const RangeLocks& own) { return own.lock_exclusive(20, 30); }));
    EXPECT_TRUE(soon(1, [](const RangeLocks& own) { return own.lock_shared(0, 10); }));
    EXPECT_FALSE(soon(1, [](const RangeLocks& own) { return own.lock_shared(0, 11); }));
    EXPECT_FALSE(soon(2, [](const RangeLocks& own) { return own.lock_exclusive(19, 30); }));
    locks[0].unlock(held);
    join();
}

TEST_F(RangeLocksTest, shared_locks_exclude_exclusive_ones_only) {
    const int passing = locks[0].lock_shared(0, 100);
    EXPECT_EQ(passing, RangeLocks::passed);
    EXPECT_TRUE(soon(1, share_all));
    EXPECT_FALSE(soon(2, exclude_all));
    locks[0].unlock(passing);
    join();
}

// Else readers that follow each other closely would keep a writer away for ever.
TEST_F(RangeLocksTest, shared_locks_wait_for_an_exclusive_one_that_waits) {
    const int exclusive = locks[0].lock_exclusive(500, 600); // so that the next takes a slot
    const int shared = locks[1].lock_shared(0, 100);
    EXPECT_FALSE(soon(2, exclude_all));
    EXPECT_FALSE(soon(3, share_all));
    EXPECT_TRUE(soon(0, [](const RangeLocks& own) { return own.lock_shared(100, 200); }));
    locks[1].unlock(shared);
    locks[0].unlock(exclusive);
    join();
}

TEST_F(RangeLocksTest, locks_of_an_ended_rank_are_taken_back) {
    locks[0].lock_exclusive(0, 100);
    locks[1].lock_shared(200, 300); // with a slot
    end(0);
    end(1);
    EXPECT_TRUE(soon(2, exclude_all));
    EXPECT_TRUE(soon(2, [](const RangeLocks& own) { return own.lock_exclusive(200, 300); }));
    join();
    // Nobody wants an exclusive lock any more: shared ones pass again.
    const int shared = locks[3].lock_shared(0, 100);
    EXPECT_EQ(shared, RangeLocks::passed);
    locks[3].unlock(shared);
}

TEST_F(RangeLocksTest, an_ended_rank_that_was_passing_holds_nobody_up) {
    locks[0].lock_shared(0, 100);
    end(0);
    EXPECT_TRUE(soon(1, exclude_all));
}

TEST_F(RangeLocksTest, who_waits_hears_of_the_end) {
    locks[0].lock_exclusive(0, 100);
    EXPECT_FALSE(soon(1, exclude_all));
    EXPECT_FALSE(soon(2, share_all));
    end(0);
    join();
}

TEST_F(RangeLocksTest, threads_that_lock_parts_at_random_never_overlap) {
    constexpr int rounds = 3000;
    constexpr std::uint64_t parts = 6;
    std::atomic<int> users[parts] = {}; // exclusive ones count a thousand
    std::atomic<bool> wrong{false};
    std::vector<std::thread> threads;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        threads.emplace_back([&, rank] {
            std::uint64_t random = rank + 1;
            for (int i = 0; i < rounds; ++i) {
                random = random * 6364136223846793005 + 1442695040888963407;
                const std::uint64_t begin = (random >> 33) % parts;
                const std::uint64_t end = begin + 1 + (random >> 45) % (parts - begin);
                const bool exclusive = (random >> 60) % 2 == 0;
                const int weight = exclusive ? 1000 : 1;
                const RangeGuard guard(
                    &locks[rank],
                    exclusive ? RangeGuard::Mode::exclusive : RangeGuard::Mode::shared, begin, end);
                for (std::uint64_t part = begin; part < end; ++part) {
                    const int others = users[part].fetch_add(weight);
                    wrong = wrong || others >= 1000 || (exclusive && others != 0);
                }
                for (std::uint64_t part = begin; part < end; ++part) {
                    users[part].fetch_sub(weight);
                }
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_FALSE(wrong);
}

} // namespace
} // namespace warren::io
