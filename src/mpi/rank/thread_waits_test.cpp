#include "mpi/rank/rank.hpp"

#include <atomic>
#include <chrono>
#include <functional>
#include <gtest/gtest.h>
#include <mutex>
#include <thread>
#include <vector>

namespace warren {
namespace {

// A rank whose work comes from outside through a mailbox per thread, which its progress empties, or
// through a word that only the waiting thread looks at. GetParam(): processors of the node.
class ThreadWaitsTest : public testing::TestWithParam<std::uint32_t> {
  protected:
    static constexpr int threads = 5;
    struct PairRing {
        std::atomic<int> posted{0}; // by whoever brings work
        int fetched = 0;            // by progress, under the rank's lock
    };

    void SetUp() override {
        node::Segment segment;
        ASSERT_FALSE(node::Segment::create({.ranks = 1, .cores = GetParam()}, segment));
        rank_ = std::make_unique<Rank>(std::move(segment), 0);
        rank_->share_by_threads();
    }

    bool progress() {
        EXPECT_EQ(inside_.fetch_add(1), 0); // the lock is held
        bool moved = false;
        for (PairRing& pair_ring : pair_rings_) {
            const int posted = pair_ring.posted.load(std::memory_order_acquire);
            moved |= posted != pair_ring.fetched;
            pair_ring.fetched = posted;
        }
        inside_.fetch_sub(1);
        return moved;
    }
    void wait_for(int pair_ring, int value, BroughtBy brought_by) {
        const std::lock_guard guard(rank_->lock);
        rank_->wait(
            [&] {
                return (brought_by == BroughtBy::others ? pair_rings_[pair_ring].posted.load()
                                                        : pair_rings_[pair_ring].fetched) >= value;
            },
            [this] { return progress(); }, [] {}, [] { return WaitReason{}; }, brought_by);
    }
    void post(int pair_ring) {
        pair_rings_[pair_ring].posted.fetch_add(1, std::memory_order_release);
        rank_->ring(0);
    }
    static void run(int count, const std::function<void(int)>& work) {
        std::vector<std::thread> all;
        for (int t = 0; t < count; ++t) {
            all.emplace_back(work, t);
        }
        for (std::thread& one : all) {
            one.join();
        }
    }

    std::unique_ptr<Rank> rank_;
    PairRing pair_rings_[threads];
    std::atomic<int> inside_{0};
};

INSTANTIATE_TEST_SUITE_P(Processors, ThreadWaitsTest, testing::Values(0, 64));

// Each thread gets what is posted for it, whichever of them polls, and posts for the next one: at
// any time all but a few wait.
TEST_P(ThreadWaitsTest, each_thread_is_woken_for_its_own_work) {
    constexpr int rounds = 300;
    post(0);
    run(threads, [&](int self) {
        const auto brought_by = self % 2 == 0 ? BroughtBy::progress : BroughtBy::others;
        for (int round = 1; round <= rounds; ++round) {
            wait_for(self, round, brought_by);
            post((self + 1) % threads);
        }
    });
    EXPECT_EQ(pair_rings_[0].posted.load(), rounds + 1);
}

// A thread that doesn't wait itself (MPI_Test) wakes the sleepers that it brings something.
TEST_P(ThreadWaitsTest, work_that_another_thread_has_fetched_wakes_its_owner) {
    constexpr int rounds = 200;
    std::atomic<bool> over{false};
    std::thread tester([&] {
        while (!over.load()) {
            {
                const std::lock_guard guard(rank_->lock);
                if (progress()) {
                    rank_->wake_threads();
                }
            }
            std::this_thread::yield();
        }
    });
    std::thread poster([&] {
        for (int round = 1; round <= rounds; ++round) {
            for (int pair_ring = 0; pair_ring < threads; ++pair_ring) {
                post(pair_ring);
            }
            if (round % 50 == 0) { // long enough for everybody to sleep
                std::this_thread::sleep_for(std::chrono::milliseconds(5));
            }
        }
    });
    run(threads, [&](int self) {
        for (int round = 1; round <= rounds; ++round) {
            wait_for(self, round, BroughtBy::progress);
        }
    });
    over = true;
    poster.join();
    tester.join();
}

// A function of the program that progress calls may wait as well.
TEST_P(ThreadWaitsTest, a_wait_inside_the_polling_threads_progress_polls_itself) {
    post(1);
    bool nested = false;
    const std::lock_guard guard(rank_->lock);
    rank_->wait([&] { return nested; },
                [&] {
                    rank_->wait([this] { return pair_rings_[1].fetched == 1; },
                                [this] { return progress(); }, [] {}, [] { return WaitReason{}; });
                    nested = true;
                    return true;
                },
                [] {}, [] { return WaitReason{}; });
    EXPECT_TRUE(nested);
}

} // namespace
} // namespace warren
