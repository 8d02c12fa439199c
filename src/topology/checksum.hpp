// The checksum of a topology image: against accidents (a torn file, flipped bits), not against
// somebody who can compute it. Sums, and sums of these, which tell words in other places from each
// other, in eight lanes, that compilers make vectors of: 30 kB take about 1 µs. Sums are rotated
// before each word: else two flipped top bits of a lane could cancel each other in both.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace warren::topology {

// `count` is a multiple of 8.
inline std::uint64_t checksum(const std::byte* bytes, std::size_t count) {
    constexpr std::size_t lanes = 8;
    std::uint64_t sums[lanes] = {};
    std::uint64_t sums_of_sums[lanes] = {};
    std::size_t at = 0;
    for (; at + sizeof sums <= count; at += sizeof sums) {
        std::uint64_t words[lanes];
        std::memcpy(words, bytes + at, sizeof words);
        for (std::size_t lane = 0; lane < lanes; ++lane) {
            sums[lane] = std::rotl(sums[lane], 1) + words[lane];
            sums_of_sums[lane] += sums[lane];
        }
    }
    constexpr std::uint64_t factor = 0x9e3779b97f4a7c15; // odd, of mixed bits: 2^64 / golden ratio
    std::uint64_t mixed = count;
    const auto mix = [&mixed](std::uint64_t word) {
        mixed = std::rotl((mixed ^ word) * factor, 31);
    };
    for (; at < count; at += sizeof(std::uint64_t)) {
        std::uint64_t word;
        std::memcpy(&word, bytes + at, sizeof word);
        mix(word);
    }
    for (std::size_t lane = 0; lane < lanes; ++lane) {
        mix(sums[lane]);
        mix(sums_of_sums[lane]);
    }
    return mixed;
}

} // namespace warren::topology
