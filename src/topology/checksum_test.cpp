// What the checksum of images notices, and that processors agree on it.
#include "topology/checksum.hpp"

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

TEST(Checksum, is_the_same_on_all_processors) {
    std::mt19937 random(1); // NOLINT: repeatable
    std::vector<std::byte> bytes(1000);
    for (std::byte& byte : bytes) {
        byte = static_cast<std::byte>(random());
    }
    for (std::size_t count = 0; count <= bytes.size(); count += 8) {
        EXPECT_EQ(checksum(bytes.data(), count), portable_checksum(bytes.data(), count)) << count;
    }
}

} // namespace
} // namespace warren::topology
