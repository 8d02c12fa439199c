// What the checksum of images notices, and that processors agree on it.
#include "topology/checksum.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>
#include <random>
#include <vector>

namespace warren::topology {
namespace {

// Top bits: what two of them add to a sum is nothing.
TEST(Checksum, finds_two_flipped_top_bits_of_a_lane) {
    constexpr std::size_t words = 2112; // 132 of each lane: a sum is turned more than twice
    constexpr std::size_t lanes = 16;   // sums of every sixteenth word
    std::vector<std::byte> bytes(words * sizeof(std::uint64_t), std::byte{0x5a});
    const auto flip = [&bytes](std::size_t word) {
        bytes[word * sizeof(std::uint64_t) + 7] ^= std::byte{0x80};
    };
    const std::uint64_t right = checksum(bytes.data(), bytes.size());
    for (std::size_t one = 0; one < words; ++one) {
        flip(one);
        for (std::size_t other = one + lanes; other < words; other += lanes) {
            flip(other);
            ASSERT_NE(checksum(bytes.data(), bytes.size()), right) << one << " and " << other;
            flip(other);
        }
        flip(one);
    }
}

// Groups of as many bytes in each other's places, at distances at which they come to the same
// lanes, and to sums that are rotated the same: of a table of small numbers, which look alike.
TEST(Checksum, finds_groups_that_are_exchanged) {
    std::mt19937 random(1); // NOLINT: repeatable
    std::vector<std::uint16_t> numbers(30000);
    const auto* bytes = reinterpret_cast<const std::byte*>(numbers.data());
    const std::size_t count = numbers.size() * sizeof numbers[0];
    constexpr int tries = 300;
    for (std::uint16_t& number : numbers) {
        number = static_cast<std::uint16_t>(random() % 1200);
    }
    const std::uint64_t right = checksum(bytes, count);
    for (const std::size_t distance : {128, 512, 1024, 4096, 8192, 16384, 24576}) {
        for (const std::size_t group : {8, 16, 512, 4096}) {
            for (int attempt = 0; group <= distance && attempt < tries; ++attempt) {
                const std::size_t begin = random() % (count - distance - group) / 8 * 8;
                const auto one = numbers.begin() + static_cast<std::ptrdiff_t>(begin / 2);
                const auto exchange = [&] {
                    std::swap_ranges(one, one + static_cast<std::ptrdiff_t>(group / 2),
                                     one + static_cast<std::ptrdiff_t>(distance / 2));
                };
                exchange();
                ASSERT_NE(checksum(bytes, count), right)
                    << group << " bytes, " << distance << " from each other, at " << begin;
                exchange();
            }
        }
    }
    EXPECT_EQ(checksum(bytes, count), right);
}

TEST(Checksum, is_the_same_on_all_processors) {
    std::mt19937 random(1); // NOLINT: repeatable
    std::vector<std::byte> bytes(50000);
    for (std::byte& byte : bytes) {
        byte = static_cast<std::byte>(random());
    }
    for (std::size_t count = 0; count <= bytes.size(); count += count < 1000 ? 8 : 7864) {
        EXPECT_EQ(checksum(bytes.data(), count), portable_checksum(bytes.data(), count)) << count;
    }
}

} // namespace
} // namespace warren::topology
