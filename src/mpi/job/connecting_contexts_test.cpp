#include "mpi/job/connecting_contexts.hpp"

#include <set>

#include <gtest/gtest.h>

namespace warren::node {
namespace {

constexpr std::uint32_t block = ContextIds::connecting_block;

TEST(ConnectingContexts, GiveNothingBeforeTheyAreOpen) {
    ConnectingContexts contexts;
    EXPECT_EQ(contexts.take(), 0U);
    EXPECT_FALSE(contexts.open());
    EXPECT_NE(contexts.take(), 0U);
}

TEST(ConnectingContexts, NumbersInUseAreNotGivenAgain) {
    ConnectingContexts contexts;
    ConnectingContexts others;
    ASSERT_FALSE(contexts.open());
    ASSERT_FALSE(others.open());
    std::set<std::uint32_t> seen;
    for (std::uint32_t turn = 0; turn < block + block / 2; ++turn) {
        for (ConnectingContexts* its : {&contexts, &others}) {
            const std::uint32_t context = its->take();
            EXPECT_TRUE(ContextIds::is_spanning(context));
            EXPECT_EQ(context % 2, 0U);
            EXPECT_TRUE(seen.insert(context).second);
        }
    }
    EXPECT_EQ(contexts.blocks(), 2U);
}

TEST(ConnectingContexts, FreeNumbersComeAgainAsLateAsPossible) {
    ConnectingContexts contexts;
    ASSERT_FALSE(contexts.open());
    const std::uint32_t kept = contexts.take();
    const std::uint32_t first = contexts.take();
    contexts.give_back(first);
    for (std::uint32_t turn = 0; turn < 10 * block; ++turn) {
        const std::uint32_t context = contexts.take();
        EXPECT_NE(context, kept);
        // The other numbers of the block come first.
        EXPECT_EQ(context == first, turn % (block - 1) == block - 2);
        contexts.give_back(context);
    }
    EXPECT_EQ(contexts.blocks(), 1U);
}

TEST(ConnectingContexts, ThoseOfOthersAreIgnored) {
    ConnectingContexts contexts;
    ConnectingContexts others;
    ASSERT_FALSE(contexts.open());
    ASSERT_FALSE(others.open());
    const std::uint32_t context = contexts.take();
    others.give_back(context);
    contexts.give_back(0);
    contexts.give_back(16);
    for (std::uint32_t turn = 1; turn < block; ++turn) {
        EXPECT_NE(contexts.take(), context);
    }
    contexts.give_back(context);
    contexts.give_back(context);
    EXPECT_EQ(contexts.take(), context);
    EXPECT_NE(contexts.take(), context);
}

} // namespace
} // namespace warren::node
