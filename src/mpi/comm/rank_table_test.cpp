// The shelf: tables of rank maps that the ranks of a node have once.

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include "mpi.h"
#include "mpi/comm/rank_map.hpp"

namespace warren::comm {
namespace {

class Shelf : public testing::Test {
  protected:
    static constexpr std::size_t bytes = 1 << 20;
    struct alignas(4096) Memory {
        std::byte bytes[Shelf::bytes];
    };
    std::unique_ptr<Memory> memory_ = std::make_unique<Memory>();
    TableShelf shelf_{memory_->bytes, bytes};

    static RankMap shuffled(int size, std::uint32_t seed) {
        std::vector<Process> processes(static_cast<std::size_t>(size));
        std::iota(processes.begin(), processes.end(), Process{0});
        std::shuffle(processes.begin(), processes.end(), std::mt19937(seed));
        return RankMap::of_processes(processes);
    }
};

TEST_F(Shelf, holds_equal_tables_once_and_frees_them_with_their_last_user) {
    const RankMap expected = shuffled(1000, 1);
    {
        RankMap first = shuffled(1000, 1);
        first.share(shelf_);
        const std::uint64_t one = shelf_.used_bytes();
        EXPECT_GE(one, 2000U);
        EXPECT_LE(one, 2200U);
        TableShelf of_another_rank(memory_->bytes, bytes);
        RankMap second = shuffled(1000, 1);
        second.share(of_another_rank);
        EXPECT_EQ(second.table(), first.table());
        EXPECT_EQ(shelf_.used_bytes(), one);
        EXPECT_EQ(first, expected);
        const RankMap copy = second;
        first = RankMap();
        second = RankMap();
        EXPECT_EQ(shelf_.used_bytes(), one);
        EXPECT_EQ(copy, expected);
        EXPECT_EQ(copy.rank_of(expected.process(7)), 7);
        EXPECT_GT(shelf_.used_bytes(), one); // the index
    }
    EXPECT_EQ(shelf_.used_bytes(), 0U);
}

TEST_F(Shelf, keeps_small_and_regular_maps_away) {
    RankMap small = shuffled(20, 1);
    small.share(shelf_);
    EXPECT_FALSE(small.table()->shelved());
    RankMap regular = RankMap::affine(0, 2, 10000);
    regular.share(shelf_);
    EXPECT_TRUE(regular.affine());
}

TEST_F(Shelf, uses_its_memory_again_and_leaves_what_does_not_fit_private) {
    std::mt19937 engine(4);
    const auto random = [&](int low, int high) {
        return low + static_cast<int>(engine() % static_cast<std::uint32_t>(high - low + 1));
    };
    std::vector<RankMap> maps(60);
    int refused = 0;
#ifdef __SANITIZE_THREAD__
    constexpr int rounds = 200; // it is one thread, and slow
#else
    constexpr int rounds = 3000;
#endif
    for (int round = 0; round < rounds; ++round) {
        const int at = random(0, 59);
        maps[at] = RankMap();
        const int size = random(200, 20000);
        RankMap map = shuffled(size, static_cast<std::uint32_t>(random(1, 1 << 30)));
        const RankMap expected = map;
        map.share(shelf_);
        refused += map.table()->shelved() ? 0 : 1;
        ASSERT_EQ(map, expected);
        if (random(0, 3) == 0) {
            ASSERT_EQ(map.rank_of(map.process(7)), 7);
        }
        maps[at] = map;
    }
    EXPECT_GT(refused, 0);
    EXPECT_LT(refused, rounds / 2);
    maps.clear();
    EXPECT_EQ(shelf_.used_bytes(), 0U);
    // All of it is one piece again: the largest table that fits.
    RankMap large = shuffled(500000, 9);
    EXPECT_FALSE(large.table()->shelved());
    large = shuffled(340000, 9);
    large.share(shelf_);
    EXPECT_TRUE(large.table()->shelved());
}

TEST_F(Shelf, serves_ranks_that_come_at_once) {
    std::vector<std::thread> ranks;
    for (int rank = 0; rank < 4; ++rank) {
        ranks.emplace_back([this] {
            TableShelf own(memory_->bytes, bytes);
            for (int round = 0; round < 300; ++round) {
                const std::uint32_t seed = static_cast<std::uint32_t>(round / 3);
                RankMap map = shuffled(700, seed);
                const RankMap expected = map;
                map.share(own);
                ASSERT_EQ(map, expected);
                ASSERT_EQ(map.rank_of(map.process(round)), round);
                ASSERT_EQ(map.rank_of(700), MPI_UNDEFINED);
            }
        });
    }
    for (std::thread& rank : ranks) {
        rank.join();
    }
    EXPECT_EQ(shelf_.used_bytes(), 0U);
}

} // namespace
} // namespace warren::comm
