#include "mpi/rank/doorbell.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <tuple>
#include <vector>

namespace warren {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

// Far beyond what any wake takes: a thread that still sleeps then was forgotten.
constexpr auto patience = 20s;

bool soon(const std::function<bool()>& condition) {
    const Clock::time_point end = Clock::now() + patience;
    while (!condition()) {
        if (Clock::now() > end) {
            return false;
        }
        std::this_thread::yield();
    }
    return true;
}

// Who fences: the wakers (1), or the sleepers for all (0).
class DoorbellTest : public testing::TestWithParam<std::uint32_t> {
  protected:
    DoorbellTest() {
        header_.fence_in_wakers = GetParam();
        doorbell_.join();
    }

    void ring() { Doorbell::ring(header_, word_); }

    // Ends sleeps that should have ended.
    void free_sleepers() {
        word_ += 2;
        futex_wake(word_, 1000);
    }

    node::SegmentHeader header_ = {};
    std::atomic<std::uint32_t> word_{0};
    Doorbell doorbell_{header_, word_};
};

INSTANTIATE_TEST_SUITE_P(Fences, DoorbellTest, testing::Values(0, 1));

TEST_P(DoorbellTest, a_ring_before_the_sleep_is_not_missed) {
    const std::uint32_t seen = doorbell_.prepare();
    ring();
    doorbell_.sleep(seen);
}

TEST_P(DoorbellTest, a_ring_ends_the_sleep) {
    std::atomic<bool> woken{false};
    std::thread sleeper([&] {
        doorbell_.sleep(doorbell_.prepare());
        woken = true;
    });
    ASSERT_TRUE(soon([&] { return word_ != 0; })); // it has prepared
    std::this_thread::sleep_for(20ms);
    EXPECT_FALSE(woken);
    ring();
    EXPECT_TRUE(soon([&] { return woken.load(); }));
    free_sleepers();
    sleeper.join();
}

// The ring was for the first thread; that a second prepares to sleep must not take it back.
TEST_P(DoorbellTest, another_thread_that_goes_to_sleep_hides_no_ring) {
    const std::uint32_t seen = doorbell_.prepare();
    ring();
    std::ignore = doorbell_.prepare();
    std::atomic<bool> returned{false};
    std::thread first([&] {
        doorbell_.sleep(seen);
        returned = true;
    });
    EXPECT_TRUE(soon([&] { return returned.load(); }));
    free_sleepers();
    first.join();
}

TEST_P(DoorbellTest, a_ring_wakes_all_threads_that_sleep) {
    std::atomic<int> woken{0};
    std::atomic<int> prepared{0};
    std::vector<std::thread> sleepers;
    for (int i = 0; i < 3; ++i) {
        sleepers.emplace_back([&] {
            const std::uint32_t seen = doorbell_.prepare();
            ++prepared;
            doorbell_.sleep(seen);
            ++woken;
        });
    }
    ASSERT_TRUE(soon([&] { return prepared == 3; }));
    ring();
    EXPECT_TRUE(soon([&] { return woken == 3; }));
    free_sleepers();
    for (std::thread& sleeper : sleepers) {
        sleeper.join();
    }
}

// Several threads of a rank sleep on one doorbell, each until its own work comes, which two others
// bring: no piece of work stays undone with its thread asleep.
TEST_P(DoorbellTest, no_wake_of_several_sleepers_is_lost) {
    constexpr std::size_t sleepers = 4;
    constexpr int pieces = 5000; // for each sleeper
    struct alignas(64) Work {
        std::atomic<int> brought{0};
        std::atomic<int> done{0};
    };
    std::array<Work, sleepers> work;
    std::atomic<bool> given_up{false};
    std::vector<std::thread> threads;
    for (Work& mine : work) {
        threads.emplace_back([&] {
            while (mine.done < pieces && !given_up) {
                if (mine.brought.load(std::memory_order_acquire) > mine.done) {
                    ++mine.done;
                    continue;
                }
                const std::uint32_t seen = doorbell_.prepare();
                if (mine.brought.load(std::memory_order_acquire) == mine.done && !given_up) {
                    doorbell_.sleep(seen);
                }
            }
        });
    }
    for (std::size_t waker = 0; waker < 2; ++waker) {
        threads.emplace_back([&, waker] {
            // One piece at a time for each of two sleepers: often both sleep, or are about to.
            Work& one = work[waker];
            Work& other = work[waker + 2];
            for (int piece = 0; piece < pieces && !given_up; ++piece) {
                for (Work* to : {&one, &other}) {
                    to->brought.store(piece + 1, std::memory_order_release);
                    ring();
                }
                if (!soon([&] { return one.done > piece && other.done > piece; })) {
                    ADD_FAILURE() << "piece " << piece << ": a sleeper was forgotten";
                    given_up = true;
                }
            }
        });
    }
    for (std::size_t waker = sleepers; waker < threads.size(); ++waker) {
        threads[waker].join();
    }
    given_up = true; // only sleepers that were forgotten are still there to see it
    for (std::size_t sleeper = 0; sleeper < sleepers; ++sleeper) {
        free_sleepers();
        threads[sleeper].join();
    }
}

} // namespace
} // namespace warren
