#include "mpi/rank/profile.hpp"

#include <atomic>
#include <gtest/gtest.h>
#include <thread>
#include <vector>

#include "runtime/fibres/switch.hpp"

namespace warren {
namespace {

using profile::kind_of;
using profile::LastArrival;
using profile::RowKind;

constexpr std::uint32_t receive = 7;
constexpr std::uint32_t barrier = 8;

class ProfileTest : public testing::Test {
  protected:
    void SetUp() override {
        ASSERT_FALSE(
            node::Segment::create({.ranks = ranks, .cores = 1, .profiled = true}, segment_));
    }
    // Rank 0's; null: it has none.
    const profile::Row* row(RowKind kind, std::uint32_t procedure, std::uint32_t detail = 0) const {
        const auto* record =
            reinterpret_cast<const profile::ProfileRecord*>(segment_.unit(profile::records, 0));
        for (const profile::Row& row : record->used_rows(profile::Columns(ranks))) {
            if (row.key.load() == profile::key_of(kind, procedure, detail)) {
                return &row;
            }
        }
        return nullptr;
    }
    // How often rank 0 has waited for a rank in a procedure.
    std::uint64_t waits(std::uint32_t procedure, std::uint32_t peer) const {
        const profile::Row* const found = row(RowKind::wait, procedure, peer);
        return found != nullptr ? found->calls.read() : 0;
    }

    static constexpr std::uint32_t ranks = 4;
    node::Segment segment_;
};

TEST_F(ProfileTest, WaitOfAThreadCountsWhileAnotherIsInACollectiveOperation) {
    Profile profile(segment_, 0);
    Profile::Call call;
    profile.begin(barrier, call);
    profile.begin_collective(call, Profile::Pattern::all, false, 0, 2, 1);
    profile.waited(barrier, 1, 0, 1000); // the operation's, which end() counts
    std::thread([&] { profile.waited(receive, 3, 0, 1000); }).join();
    profile.end(barrier, call);
    EXPECT_EQ(waits(receive, 3), 1U);
    EXPECT_EQ(waits(barrier, 1), 0U);
}

TEST_F(ProfileTest, WaitThatBeginsHidesNothingFromOneUnderWay) {
    Profile profile(segment_, 0);
    const std::uint64_t first = profile.wait_begins();
    profile.arrived(2, false);
    const std::uint64_t second = profile.wait_begins();
    profile.waited(receive, profile::nobody, first, 1000);
    profile.waited(barrier, profile::nobody, second, 1000);
    EXPECT_EQ(waits(receive, 2), 1U);
    EXPECT_EQ(waits(barrier, profile::nobody), 1U);
}

TEST_F(ProfileTest, MessageWithAReceiveEndsAWaitRatherThanALaterOneWithout) {
    Profile profile(segment_, 0);
    const std::uint64_t begin = profile.wait_begins();
    profile.arrived(1, false);
    profile.arrived(3, true);
    profile.waited(receive, profile::nobody, begin, 1000);
    EXPECT_EQ(waits(receive, 1), 1U);
}

TEST_F(ProfileTest, OperationWaitsForTheLastToCome) {
    Profile own(segment_, 0);
    Profile other(segment_, 2);
    constexpr std::uint64_t later = 1'000'000;
    Profile::Call call;
    own.begin(barrier, call);
    call.begin -= 2 * later;
    Profile::Call late = call;
    late.begin += later;
    other.begin_collective(late, Profile::Pattern::all, false, 0, 2, 5);
    own.begin_collective(call, Profile::Pattern::all, false, 0, 2, 5); // which is noted too late
    own.end(barrier, call);
    other.end(barrier, late);
    EXPECT_EQ(waits(barrier, 2), 1U);
}

class ShortCalls : public ProfileTest {
  protected:
    // Calls until one is not timed, which has begun then.
    void call_until_not_timed(Profile& profile, Profile::Call& call) {
        for (profile.begin(receive, call); call.begin != 0; profile.begin(receive, call)) {
            call.begin = fibre::ticks(); // whatever else the machine does
            profile.end(receive, call);
        }
    }
};

TEST_F(ShortCalls, AreTimedNowAndThen) {
    Profile profile(segment_, 0);
    constexpr std::uint64_t calls = 2000;
    std::uint64_t timed = 0;
    for (std::uint64_t number = 0; number < calls; ++number) {
        Profile::Call call;
        profile.begin(receive, call);
        timed += call.begin != 0 ? 1 : 0;
        if (call.begin != 0) {
            call.begin = fibre::ticks();
        }
        profile.end(receive, call);
    }
    EXPECT_EQ(row(RowKind::call, receive)->calls.read(), calls);
    EXPECT_GT(timed, calls / 30);
    EXPECT_LT(timed, calls / 4);
}

TEST_F(ShortCalls, WaitOfOneThatIsNotTimedCounts) {
    Profile profile(segment_, 0);
    Profile::Call call;
    call_until_not_timed(profile, call);
    const std::uint64_t before = row(RowKind::call, receive)->ticks.read();
    profile.waited(receive, 3, 0, 1'000'000'000);
    profile.end(receive, call);
    EXPECT_EQ(row(RowKind::call, receive)->ticks.read(), before + 1'000'000'000);
}

TEST_F(ShortCalls, LongOneIsFollowedByTimedOnes) {
    Profile profile(segment_, 0);
    Profile::Call call;
    call_until_not_timed(profile, call);
    while (call.begin == 0) {
        profile.end(receive, call);
        profile.begin(receive, call);
    }
    call.begin -= 1'000'000;
    profile.end(receive, call);
    profile.begin(receive, call);
    EXPECT_NE(call.begin, 0U);
}

TEST(Sampling, TimedCallsStandForTheOthers) {
    profile::Sampling sampling(0);
    constexpr std::uint64_t calls = 100'000;
    std::uint64_t counted = 0;
    for (std::uint64_t number = 0; number < calls; ++number) {
        if (sampling.times_next()) {
            counted += sampling.weight();
            sampling.timed(100, number * number);
        } else {
            sampling.skip();
        }
    }
    EXPECT_GT(counted, calls - 30);
    EXPECT_LE(counted, calls);
}

TEST(Sampling, CallsAtOnceMayAllBeTheLastOne) {
    profile::Sampling sampling(1);
    sampling.skip();
    sampling.skip();
    EXPECT_TRUE(sampling.times_next());
    EXPECT_EQ(sampling.weight(), 3U);
}

TEST(LastArrival, HasTheTimeOfTheRankItNames) {
    // A rank's times are those that leave it over, so that a mixture is seen.
    constexpr std::uint64_t unit = 512;
    constexpr std::uint32_t ranks = 2;
    constexpr std::uint64_t looks = 10'000;
    LastArrival last{};
    std::atomic<std::uint64_t> newest{1};
    std::atomic<bool> over{false};
    std::vector<std::thread> writers;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        writers.emplace_back([&, rank] {
            for (std::uint64_t turn = 0; !over.load(); ++turn) {
                const std::uint64_t tag = newest.load() + (turn % 16 == 0 ? 1 : 0);
                newest.store(tag);
                last.note(tag, rank, (turn * ranks + rank) * unit);
            }
        });
    }
    std::uint64_t mixed = 0;
    for (std::uint64_t found = 0; found < looks;) {
        std::uint32_t rank = 0;
        std::uint64_t ticks = 0;
        if (last.find(newest.load(), 0, rank, ticks)) {
            ++found;
            mixed += ticks / unit % ranks != rank ? 1 : 0;
        }
    }
    over.store(true);
    for (std::thread& writer : writers) {
        writer.join();
    }
    EXPECT_EQ(mixed, 0U);
}

TEST(LastArrival, KeepsTheNewestOperation) {
    constexpr std::uint64_t old_tag = std::uint64_t{2} << 32 | 8;
    constexpr std::uint64_t new_tag = std::uint64_t{2} << 32 | 16;
    LastArrival last{};
    std::uint32_t rank = 0;
    std::uint64_t ticks = 0;
    EXPECT_FALSE(last.find(old_tag, 1'000'000, rank, ticks));
    last.note(new_tag, 3, 3'000'128);
    last.note(old_tag, 1, 2'000'000);
    EXPECT_FALSE(last.find(old_tag, 2'000'000, rank, ticks));
    EXPECT_TRUE(last.find(new_tag, 2'500'096, rank, ticks));
    EXPECT_EQ(rank, 3U);
    EXPECT_NEAR(static_cast<double>(ticks), 3'000'128, 1024);
}

} // namespace
} // namespace warren
