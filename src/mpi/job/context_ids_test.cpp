#include "mpi/job/context_ids.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <set>
#include <thread>
#include <vector>

#include "mpi/job/node_map.hpp"

namespace warren::node {
namespace {

Segment make_segment(std::uint32_t ranks) {
    Segment segment;
    Error error = Segment::create({.ranks = ranks, .cores = 1}, segment);
    EXPECT_FALSE(error);
    error.drop();
    return segment;
}

TEST(ContextIds, AreEvenAndDistinctWhileTheyLive) {
    const Segment segment = make_segment(2);
    std::set<std::uint32_t> live;
    for (int i = 0; i < 50000; ++i) {
        const std::uint32_t context = ContextIds::take(segment, 1);
        ASSERT_GE(context, 2 * ContextIds::first_dynamic);
        ASSERT_EQ(context % 2, 0u);
        ASSERT_TRUE(live.insert(context).second);
    }
    for (const std::uint32_t context : live) {
        EXPECT_EQ(ContextIds::give_back(segment, context), 0u);
    }
    for (int i = 0; i < 50000; ++i) {
        // The numbers come again, as other contexts.
        const std::uint32_t context = ContextIds::take(segment, 1);
        ASSERT_EQ(live.count(context), 0u);
        ASSERT_TRUE(live.count(context - (1u << 21)) == 1);
    }
}

TEST(ContextIds, OfCommunicatorsOfSeveralNodesAreDistinctInTheJob) {
    std::set<std::uint32_t> taken;
    for (std::uint32_t node = 0; node < 3; ++node) {
        Segment segment;
        Error error = Segment::create({.ranks = 2, .cores = 1, .nodes = 3}, segment);
        ASSERT_FALSE(error);
        segment.at(node_place)->node = node;
        for (int i = 0; i < 1000; ++i) {
            const std::uint32_t context = ContextIds::take_spanning(segment);
            ASSERT_TRUE(ContextIds::is_spanning(context));
            ASSERT_EQ(context % 2, 0u);
            ASSERT_TRUE(taken.insert(context).second);
            ASSERT_EQ(ContextIds::give_back(segment, context), 0u);
        }
        // The node's own communicators have numbers of their own.
        EXPECT_FALSE(ContextIds::is_spanning(ContextIds::take(segment, 1)));
        // There is an end.
        segment.at(context_stock)->spanning.store((1u << 30) / 3 + 1);
        EXPECT_EQ(ContextIds::take_spanning(segment), 0u);
    }
}

TEST(ContextIds, AreFreeAfterTheLastMember) {
    const Segment segment = make_segment(3);
    const std::uint32_t first = ContextIds::take(segment, 3);
    EXPECT_EQ(ContextIds::give_back(segment, first), 0u);
    EXPECT_EQ(ContextIds::give_back(segment, first), 0u);
    const std::uint32_t second = ContextIds::take(segment, 1);
    EXPECT_NE((first >> 1) % (1 << 20), (second >> 1) % (1 << 20));
    EXPECT_EQ(ContextIds::give_back(segment, first), 0u);
    const std::uint32_t third = ContextIds::take(segment, 1);
    EXPECT_EQ((first >> 1) % (1 << 20), (third >> 1) % (1 << 20));
    EXPECT_NE(first, third);
    // Those that were never taken.
    for (std::uint32_t context = 0; context < 2 * ContextIds::first_dynamic; context += 2) {
        EXPECT_EQ(ContextIds::give_back(segment, context), 0u);
    }
}

TEST(ContextIds, RunOutWithAnAnswer) {
    const Segment segment = make_segment(1);
    std::vector<std::uint32_t> live;
    while (const std::uint32_t context = ContextIds::take(segment, 1)) {
        live.push_back(context);
        ASSERT_LT(live.size(), 1u << 20);
    }
    EXPECT_GT(live.size(), 500000u);
    EXPECT_EQ(ContextIds::take(segment, 1), 0u);
    EXPECT_EQ(ContextIds::give_back(segment, live.back()), 0u);
    EXPECT_NE(ContextIds::take(segment, 1), 0u);
}

TEST(ContextIds, ThreadsNeverShareOne) {
    const Segment segment = make_segment(1);
    std::vector<std::thread> threads;
    std::atomic<std::uint32_t> owners[4096] = {};
    std::atomic<int> shared{0};
    for (int t = 0; t < 3; ++t) {
        threads.emplace_back([&] {
            for (int i = 0; i < 50000; ++i) {
                const std::uint32_t context = ContextIds::take(segment, 1);
                std::atomic<std::uint32_t>& owner = owners[(context >> 1) % 4096];
                shared += owner.fetch_add(1) != 0;
                owner.fetch_sub(1);
                EXPECT_EQ(ContextIds::give_back(segment, context), 0u);
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(shared, 0);
    EXPECT_LE(segment.at(context_stock)->next.load(), 8u + 3u);
}

} // namespace
} // namespace warren::node
