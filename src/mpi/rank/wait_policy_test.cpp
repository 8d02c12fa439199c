#include "mpi/rank/wait_policy.hpp"

#include <gtest/gtest.h>

namespace warren {
namespace {

constexpr FibreFunctions some_functions = {};

TEST(WaitPolicyTest, a_rank_with_a_processor_of_its_own_polls_on) {
    const WaitPolicy chosen = WaitPolicy::choose(false, false, nullptr);
    EXPECT_EQ(chosen.functions, nullptr);
    EXPECT_FALSE(chosen.shares_processor);
    EXPECT_FALSE(chosen.takes_turns);
    EXPECT_EQ(chosen.looks, wait_policy::looks_alone);
    EXPECT_EQ(chosen.yields, wait_policy::yields_among_threads); // when its threads are many
}

TEST(WaitPolicyTest, one_of_more_ranks_than_processors_yields_soon) {
    const WaitPolicy chosen = WaitPolicy::choose(true, false, nullptr);
    EXPECT_TRUE(chosen.shares_processor);
    EXPECT_EQ(chosen.spins, wait_policy::spins_shared);
    EXPECT_EQ(chosen.yields, wait_policy::yields);
    EXPECT_EQ(chosen.collective_yields, wait_policy::collective_yields);
    EXPECT_EQ(chosen.looks, wait_policy::looks_shared);
}

TEST(WaitPolicyTest, a_fibre_is_parked_without_a_yield) {
    const WaitPolicy chosen = WaitPolicy::choose(true, true, &some_functions);
    EXPECT_EQ(chosen.functions, &some_functions);
    EXPECT_TRUE(chosen.takes_turns);
    EXPECT_EQ(chosen.spins, wait_policy::spins_of_fibre);
    EXPECT_EQ(chosen.yields, 0u);
    EXPECT_EQ(chosen.collective_yields, wait_policy::collective_yields_of_fibre);
    EXPECT_EQ(chosen.looks, wait_policy::looks_of_fibre);
}

TEST(WaitPolicyTest, only_fibres_take_turns) {
    // mpiexec, which is no fibre, sees the segment of a job of fibres.
    EXPECT_FALSE(WaitPolicy::choose(true, true, nullptr).takes_turns);
    EXPECT_FALSE(WaitPolicy::choose(true, false, &some_functions).takes_turns);
}

} // namespace
} // namespace warren
