#include "launch/mpiexec/vain_waits.hpp"

#include <cstdio>
#include <memory>

#include <gtest/gtest.h>

#include "launch/mpiexec/tuning.hpp"
#include "mpi.h"

namespace warren::launch {
namespace {

constexpr std::uint64_t now_ns = 100'000'000'000;

// Four ranks, of which rank 3 has finalised and failed.
class VainWaits : public testing::Test {
  protected:
    void SetUp() override {
        Error error = node::Segment::create({.ranks = 4, .commit = false}, segment_);
        ASSERT_FALSE(error);
        for (std::uint32_t rank = 0; rank < 4; ++rank) {
            segment_.slot(rank).state = node::RankStage::initialised;
        }
        segment_.slot(3).state = node::RankStage::finalised;
    }

    void wait(std::uint32_t rank, std::int32_t peer, const char* communicator = "MPI_COMM_WORLD",
              std::uint64_t for_ns = 2 * vain_wait_ns) {
        node::Activity& activity = segment_.slot(rank).activity;
        activity.peer = peer;
        std::snprintf(activity.communicator_name, sizeof activity.communicator_name, "%s",
                      communicator);
        activity.since_ns = now_ns - for_ns;
    }

    std::vector<std::uint32_t> found() {
        return vain_waits(segment_, {false, false, false, true}, {3}, now_ns);
    }

    node::Segment segment_;
};

using Ranks = std::vector<std::uint32_t>;

TEST_F(VainWaits, AreThoseForTheRank) {
    EXPECT_EQ(found(), Ranks());
    wait(1, 3);
    EXPECT_EQ(found(), Ranks({1}));
    wait(2, 0);
    EXPECT_EQ(found(), Ranks({1}));
}

TEST_F(VainWaits, AreNotShort) {
    wait(1, 3, "MPI_COMM_WORLD", vain_wait_ns / 2);
    EXPECT_EQ(found(), Ranks());
}

TEST_F(VainWaits, ArePerhapsNotThoseForOthers) {
    wait(0, 1);
    wait(1, 3, "half"); // another rank of the world
    wait(2, MPI_ANY_SOURCE);
    segment_.slot(1).activity.requests = 2;
    segment_.slot(0).activity.since_ns = 0; // it computes, and may send
    EXPECT_EQ(found(), Ranks());
}

TEST_F(VainWaits, AreAllWhenNobodyGoesOn) {
    wait(0, 1);
    wait(1, 3, "half");
    wait(2, MPI_PROC_NULL); // a collective operation
    EXPECT_EQ(found(), Ranks({0, 1, 2}));
    segment_.slot(2).state = node::RankStage::not_started;
    EXPECT_EQ(found(), Ranks());
}

} // namespace
} // namespace warren::launch
