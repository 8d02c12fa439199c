// Changes that the checksum of images detects, and that all processors compute the same one.
#include "topology/checksum.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>
#include <random>
#include <utility>
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

// Flips one bit in each of two adjacent words: a flipped top bit changes only one bit of the value
// that the next word is mixed with.
TEST(Checksum, finds_two_flipped_bits_of_neighbours_at_the_end) {
    std::vector<std::byte> bytes(1808, std::byte{0x5a}); // 16 bytes behind the last whole step
    const std::uint64_t right = checksum(bytes.data(), bytes.size());
    const auto flip = [&bytes](std::size_t bit) {
        bytes[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
    };
    const std::size_t word = (bytes.size() - 16) * 8;
    for (std::size_t one = 0; one < 64; ++one) {
        flip(word + one);
        for (std::size_t other = 64; other < 128; ++other) {
            flip(word + other);
            ASSERT_NE(checksum(bytes.data(), bytes.size()), right) << one << " and " << other;
            flip(word + other);
        }
        flip(word + one);
    }
}

// Uses small numbers, whose sums have many zeros, in arrays whose last turn has any length.
TEST(Checksum, finds_each_flipped_bit) {
    std::mt19937 random(1); // NOLINT: repeatable
    for (std::size_t steps = 64; steps < 128; steps += 3) {
        std::vector<std::uint64_t> words(steps * 16);
        for (std::uint64_t& word : words) {
            word = random() % 300;
        }
        const auto* bytes = reinterpret_cast<const std::byte*>(words.data());
        const std::uint64_t right = checksum(bytes, words.size() * sizeof words[0]);
        for (std::size_t word = 0; word < words.size(); word += 1 + word % 2) {
            for (std::size_t bit = word % 3; bit < 64; bit += 3) {
                words[word] ^= std::uint64_t{1} << bit;
                ASSERT_NE(checksum(bytes, words.size() * sizeof words[0]), right)
                    << steps << " steps, bit " << bit << " of word " << word;
                words[word] ^= std::uint64_t{1} << bit;
            }
        }
    }
}

// Exchanges words of neighbouring turns, small numbers or sets of few bits. One of 10,000 exchanges
// may go undetected.
TEST(Checksum, finds_nearly_all_words_that_are_exchanged_between_turns) {
    std::mt19937 random(1); // NOLINT: repeatable
    constexpr std::size_t turn = std::size_t{64} * 16;
    std::vector<std::uint64_t> words(4 * turn + 5 * 16 + 3);
    const auto* bytes = reinterpret_cast<const std::byte*>(words.data());
    unsigned tried = 0;
    unsigned unseen = 0;
    for (int attempt = 0; attempt < 40; ++attempt) {
        for (std::uint64_t& word : words) {
            word = attempt % 2 == 0 ? random() % 16
                                    : std::uint64_t{random() % 8 == 0} << random() % 64;
        }
        const std::uint64_t right = checksum(bytes, words.size() * sizeof words[0]);
        for (std::size_t one = 0; one < std::size_t{4} * 16; ++one) { // where a turn begins
            for (std::size_t other = one + turn; other < words.size(); other += turn) {
                if (words[one] == words[other]) {
                    continue;
                }
                std::swap(words[one], words[other]);
                ++tried;
                unseen += checksum(bytes, words.size() * sizeof words[0]) == right ? 1 : 0;
                std::swap(words[one], words[other]);
            }
        }
    }
    EXPECT_GT(tried, 1000);
    EXPECT_LE(unseen * 1000, tried) << unseen << " of " << tried;
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
