#include "topology/checksum.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <initializer_list>

#include "base/processor.hpp"

namespace warren::topology {

namespace {

using Vector [[gnu::vector_size(32)]] = std::uint64_t;
struct Sums {
    Vector words{};
    Vector sums{};
};

[[gnu::always_inline]] inline std::uint64_t sum(const std::byte* bytes, std::size_t count) {
    // By name: of an array compilers don't keep as many in registers.
    Sums first;
    Sums second;
    Sums third;
    Sums fourth;
    std::size_t at = 0;
    const auto add = [&](Sums& to, std::size_t vector) {
        Vector words;
        std::memcpy(&words, bytes + at + vector * sizeof words, sizeof words);
        to.words = ((to.words + to.words) | (to.words >> 63)) + words;
        to.sums += to.words;
    };
    constexpr std::size_t step = 4 * sizeof(Vector);
    constexpr std::size_t turn = 64 * step; // rotated so often words are as they were
    const std::size_t steps_end = count - count % step;
    while (at < steps_end) {
        for (const std::size_t end = std::min(at + turn, steps_end); at < end; at += step) {
            add(first, 0);
            add(second, 1);
            add(third, 2);
            add(fourth, 3);
        }
        for (Sums* sums : {&first, &second, &third, &fourth}) {
            sums->words ^= sums->sums;
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
    for (const Sums& lanes : {first, second, third, fourth}) {
        for (std::size_t lane = 0; lane < sizeof(Vector) / sizeof(std::uint64_t); ++lane) {
            mix(lanes.words[lane]);
            mix(lanes.sums[lane]);
        }
    }
    return mixed;
}

#ifdef __x86_64__
[[gnu::target("avx2")]] std::uint64_t wide_checksum(const std::byte* bytes, std::size_t count) {
    return sum(bytes, count);
}
#endif

} // namespace

std::uint64_t portable_checksum(const std::byte* bytes, std::size_t count) {
    return sum(bytes, count);
}

std::uint64_t checksum(const std::byte* bytes, std::size_t count) {
#ifdef __x86_64__
    if (processor_has_avx2()) {
        return wide_checksum(bytes, count);
    }
#endif
    return portable_checksum(bytes, count);
}

} // namespace warren::topology
