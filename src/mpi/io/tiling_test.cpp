// Tiling: blocks with holes and overlaps, of the offsets that programs use.
#include "mpi/io/tiling.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <vector>

namespace warren::io {
namespace {

TEST(Tiling, blocks_that_touch_cover_their_range) {
    Tiling tiling;
    tiling.add(4096, 8192);
    tiling.add(0, 4096);
    EXPECT_TRUE(tiling.covers(0, 8192));
    EXPECT_FALSE(tiling.covers(0, 8191));
    tiling.add(100, 200);
    EXPECT_FALSE(tiling.covers(0, 8192));
}

// Some blocks are missing, and as many others of the window are there twice.
TEST(Tiling, an_overlap_does_not_hide_a_hole) {
    constexpr std::uint64_t window = std::uint64_t{2} << 20;
    for (std::uint64_t block = 64; block <= window / 8; block *= 4) {
        for (std::uint64_t number = 0; number < 4; ++number) {
            const std::uint64_t begin = number * number * 37 * window;
            for (std::uint64_t length = block; length <= 16 * block; length += block) {
                std::vector<std::uint64_t> sums;
                for (std::uint64_t at = 0; at + length <= window; at += block) {
                    Tiling one;
                    one.add(begin + at, begin + at + length);
                    sums.push_back(one.sum());
                }
                std::sort(sums.begin(), sums.end());
                EXPECT_EQ(std::adjacent_find(sums.begin(), sums.end()), sums.end())
                    << "blocks of " << length << " bytes from byte " << begin << " on";
            }
        }
    }
}

} // namespace
} // namespace warren::io
