#include "runtime/fibres/vain_turns.hpp"

#include <gtest/gtest.h>

namespace warren::fibre {
namespace {

using Then = VainTurns::Then;

struct VainTurnsTest : testing::Test {
    VainTurns turns;
    std::uint64_t now = 1'000'000'000;
    long taken = 3; // times that the kernel has taken the processor, also before the first turn
    int asked = 0;

    Then turn() {
        now += 1'000;
        return turns.after(now, [this] {
            ++asked;
            return taken;
        });
    }
    // How many turns until one doesn't just give way, at most `most`.
    std::uint32_t until_other(std::uint32_t most, Then& then) {
        for (std::uint32_t count = 1; count <= most; ++count) {
            then = turn();
            if (then != Then::give_way) {
                return count;
            }
        }
        return most + 1;
    }
    void make_contended() {
        Then then = Then::give_way;
        until_other(turns_alone, then); // asks for the first time
        ++taken;
        ASSERT_LE(until_other(turns_alone, then), turns_alone);
        ASSERT_EQ(then, Then::yield);
    }
};

TEST_F(VainTurnsTest, AWorkerThatIsAloneOnlyAsksNowAndThen) {
    for (std::uint32_t count = 0; count < 10 * turns_alone; ++count) {
        ASSERT_EQ(turn(), Then::give_way);
    }
    EXPECT_EQ(asked, 10);
}

TEST_F(VainTurnsTest, OneWhoseProcessorIsTakenYieldsAfterFewTurns) {
    make_contended();
    turns.yielded(now, now + 1'000);
    Then then = Then::give_way;
    EXPECT_EQ(until_other(turns_alone, then), turns_contended);
    EXPECT_EQ(then, Then::yield);
}

TEST_F(VainTurnsTest, OneWhoseProcessorIsNoLongerTakenStopsToYield) {
    make_contended();
    std::uint32_t yields = 1;
    Then then = Then::give_way;
    while (until_other(turns_alone, then) <= turns_alone) {
        ASSERT_EQ(then, Then::yield);
        turns.yielded(now, now + 1'000);
        ASSERT_LT(++yields, 2 * yields_contended);
    }
    EXPECT_EQ(turn(), Then::give_way);
}

TEST_F(VainTurnsTest, AFibreThatDoesSomethingElseBeginsTheCountAgain) {
    make_contended();
    for (std::uint32_t round = 0; round < 100; ++round) {
        for (std::uint32_t count = 1; count < turns_contended; ++count) {
            ASSERT_EQ(turn(), Then::give_way);
        }
        turns.ran();
    }
}

TEST_F(VainTurnsTest, AfterALongYieldFibresSleepForAWhileTwiceAsLongEachTime) {
    make_contended();
    std::uint64_t usual = least_sleeping_ticks;
    for (int time = 0; time < 8; ++time) {
        now += long_yield_ticks;
        turns.yielded(now - long_yield_ticks, now);
        const std::uint64_t begin = now;
        EXPECT_EQ(turn(), Then::sleep);
        now = begin + usual - 2'000;
        EXPECT_EQ(turn(), Then::sleep);
        EXPECT_EQ(turn(), Then::give_way);
        usual = std::min(2 * usual, most_sleeping_ticks);
    }
    turns.yielded(now, now + 1'000);
    now += long_yield_ticks;
    turns.yielded(now - long_yield_ticks, now);
    now += most_sleeping_ticks / 2;
    EXPECT_EQ(turn(), Then::give_way);
}

} // namespace
} // namespace warren::fibre
