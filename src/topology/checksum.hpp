// The checksum of a topology image: against accidents (a torn file, flipped bits), not against
// somebody who can compute it. Four chains of words side by side, for speed: 30 kB take 1 to 2 µs.
// Every step can be undone, so a change of one word always changes the result.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace warren::topology {

// `count` is a multiple of 8.
inline std::uint64_t checksum(const std::byte* bytes, std::size_t count) {
    constexpr std::uint64_t factor = 0x9e3779b97f4a7c15; // odd, of mixed bits: 2^64 / golden ratio
    const auto step = [](std::uint64_t chain, std::uint64_t word) {
        return std::rotl((chain ^ word) * factor, 31);
    };
    const auto load = [bytes](std::size_t at) {
        std::uint64_t word;
        std::memcpy(&word, bytes + at, sizeof word);
        return word;
    };
    std::uint64_t one = count;
    std::uint64_t two = 1;
    std::uint64_t three = 2;
    std::uint64_t four = 3;
    std::size_t at = 0;
    for (; at + 32 <= count; at += 32) {
        one = step(one, load(at));
        two = step(two, load(at + 8));
        three = step(three, load(at + 16));
        four = step(four, load(at + 24));
    }
    for (; at < count; at += 8) {
        one = step(one, load(at));
    }
    return step(step(step(one, two), three), four) ^ factor;
}

} // namespace warren::topology
