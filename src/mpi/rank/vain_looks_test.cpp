#include "mpi/rank/vain_looks.hpp"

#include <gtest/gtest.h>

namespace warren {
namespace {

using Then = VainLooks::Then;

constexpr std::uint64_t look_ticks = 75;

// A rank that looks in vain, with a clock of its own.
struct Poller {
    explicit Poller(bool oversubscribed)
        : looks(oversubscribed), count(WaitPolicy::choose(oversubscribed, false, nullptr).looks) {
        end_count(0);
    }

    // A count of looks, so many ticks apart.
    Then end_count(std::uint64_t between_ticks) {
        now += count * (look_ticks + between_ticks);
        const VainLooks::Next next = looks.after(count, now - look_ticks, now, [this] {
            ++questions;
            return VainLooks::Switches{.thread = 1, .involuntary = switches};
        });
        count = next.looks;
        return next.then;
    }
    void yield(std::uint64_t ticks) {
        looks.yielded(now, now + ticks);
        now += ticks;
    }

    VainLooks looks;
    std::uint32_t count;
    std::uint64_t now = 1'000'000'000;
    long switches = 0;
    int questions = 0;
};

TEST(VainLooksTest, ranks_more_than_processors_yield_when_they_only_look) {
    Poller rank(true);
    for (int i = 0; i < 1000; ++i) {
        EXPECT_EQ(rank.end_count(0), Then::yield);
        rank.yield(2'000);
    }
    EXPECT_EQ(rank.questions, 0);
}

TEST(VainLooksTest, who_computes_a_microsecond_between_looks_keeps_its_processor) {
    Poller rank(true);
    for (int i = 0; i < 1000; ++i) {
        EXPECT_EQ(rank.end_count(2'500), Then::look_on);
    }
    EXPECT_EQ(rank.count, wait_policy::looks_computing);
    EXPECT_EQ(rank.end_count(0), Then::yield);
}

TEST(VainLooksTest, a_rank_with_a_processor_of_its_own_yields_only_once_that_has_been_taken) {
    Poller rank(false);
    for (int i = 0; i < 1000; ++i) {
        EXPECT_EQ(rank.end_count(0), Then::look_on);
        EXPECT_EQ(rank.count, wait_policy::looks_alone);
    }
    ++rank.switches;
    EXPECT_EQ(rank.end_count(0), Then::yield);
    // Each yield lets somebody else run.
    for (std::uint32_t i = 0; i < 10 * wait_policy::counts_contended; ++i) {
        ++rank.switches;
        rank.yield(2'000);
        EXPECT_EQ(rank.end_count(0), Then::yield);
    }
    // Nobody is there any more.
    for (std::uint32_t i = 0; i < 2 * wait_policy::counts_contended; ++i) {
        rank.end_count(0);
    }
    EXPECT_EQ(rank.count, wait_policy::looks_alone);
    EXPECT_EQ(rank.end_count(0), Then::look_on);
}

TEST(VainLooksTest, a_long_yield_is_followed_by_sleeps_for_a_while) {
    for (const bool oversubscribed : {true, false}) {
        Poller rank(oversubscribed);
        ++rank.switches;
        EXPECT_EQ(rank.end_count(0), Then::yield);
        rank.yield(wait_policy::long_yield_ticks);
        const std::uint64_t begin = rank.now;
        EXPECT_EQ(rank.end_count(0), Then::look_on); // few looks have gone before
        std::uint64_t sleeps = 0;
        while (rank.end_count(0) == Then::sleep) {
            ++sleeps;
            rank.now += 500'000;
            rank.looks.slept(rank.now);
        }
        EXPECT_GT(sleeps, 100U);
        EXPECT_GE(rank.now - begin, wait_policy::sleeping_ticks);
        EXPECT_LT(rank.now - begin, 2 * wait_policy::sleeping_ticks);
    }
}

TEST(VainLooksTest, who_computes_does_not_sleep) {
    Poller rank(true);
    rank.end_count(0);
    rank.yield(wait_policy::long_yield_ticks);
    for (int i = 0; i < 1000; ++i) {
        EXPECT_EQ(rank.end_count(2'500), Then::look_on);
    }
}

TEST(VainLooksTest, switches_of_different_threads_are_not_compared) {
    VainLooks looks(false);
    std::uint64_t now = 1'000'000'000;
    for (std::uint64_t i = 0; i < 100; ++i) {
        now += std::uint64_t{wait_policy::looks_alone} * look_ticks;
        const VainLooks::Next next =
            looks.after(wait_policy::looks_alone, now - look_ticks, now, [i] {
                return VainLooks::Switches{.thread = 1 + i % 2,
                                           .involuntary = i % 2 == 0 ? 10 : 20};
            });
        EXPECT_EQ(next.then, Then::look_on);
    }
}

} // namespace
} // namespace warren
