#include "topology/checksum.hpp"

#include <bit>
#include <cstring>

#include "base/processor.hpp"

namespace warren::topology {

namespace {

[[gnu::always_inline]] inline std::uint64_t sum(const std::byte* bytes, std::size_t count) {
    constexpr std::size_t lanes = 8;
    std::uint64_t sums[lanes] = {};
    std::uint64_t sums_of_sums[lanes] = {};
    std::size_t at = 0;
    for (; at + sizeof sums <= count; at += sizeof sums) {
        for (std::size_t lane = 0; lane < lanes; ++lane) {
            std::uint64_t word; // each for itself: copied together they would go through memory
            std::memcpy(&word, bytes + at + lane * sizeof word, sizeof word);
            sums[lane] = std::rotl(sums[lane], 1) + word;
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
