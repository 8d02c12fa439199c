#include "topology/checksum.hpp"

#include <algorithm>
#include <array>
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

// Odd, of mixed bits.
constexpr std::uint64_t lane_factor = 0x9e3779b97f4a7c15; // 2^64 / golden ratio
constexpr std::uint64_t end_factor = 0xf1357aea2e62a9c5;

[[gnu::always_inline]] inline std::uint64_t sum(const std::byte* bytes, std::size_t count) {
    // By name: of an array compilers don't keep as many in registers.
    Sums first;
    Sums second;
    Sums third;
    Sums fourth;
    constexpr std::size_t step = 4 * sizeof(Vector);
    constexpr std::size_t turn = 64 * step; // rotated so often words are as they were
    const auto add = [](Sums& to, const std::byte* from) {
        Vector words;
        std::memcpy(&words, from, sizeof words);
        to.words = ((to.words + to.words) | (to.words >> 63)) + words;
        to.sums += to.words;
    };
    const auto add_step = [&](const std::byte* from) {
        add(first, from);
        add(second, from + sizeof(Vector));
        add(third, from + 2 * sizeof(Vector));
        add(fourth, from + 3 * sizeof(Vector));
    };
    const auto end_turn = [&] {
        for (Sums* lanes : {&first, &second, &third, &fourth}) {
            lanes->words = lanes->words * lane_factor ^ lanes->sums;
        }
    };
    std::size_t at = 0;
    const std::size_t steps_end = count - count % step;
    while (at < steps_end) {
        for (const std::size_t end = std::min(at + turn, steps_end); at < end; at += step) {
            add_step(bytes + at);
        }
        end_turn();
    }
    if (at < count) { // the rest, as if zeros came behind it: `count` tells it from them
        std::array<std::byte, step> rest = {};
        std::memcpy(rest.data(), bytes + at, count - at);
        add_step(rest.data());
        end_turn();
    }
    std::uint64_t mixed = count;
    const auto mix = [&mixed](std::uint64_t word) {
        mixed = (mixed ^ word) * end_factor;
        mixed ^= mixed >> 32; // so that high bits reach low ones
    };
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
