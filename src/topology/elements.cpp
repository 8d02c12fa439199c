#include "topology/elements.hpp"

#include <algorithm>

#include "base/processor.hpp"

namespace warren::topology {

namespace {

// Loops that compilers turn into vectors of the processor that they compile for.
template <typename Number>
[[gnu::always_inline]] inline Number largest(const Number* numbers, std::size_t count) {
    Number most = 0;
    for (std::size_t at = 0; at < count; ++at) {
        most = std::max(most, numbers[at]);
    }
    return most;
}

[[gnu::always_inline]] inline bool are_steps_of(const std::uint16_t* numbers, std::size_t count,
                                                std::uint16_t first, std::uint16_t step) {
    std::uint16_t wrong = 0;
    std::uint16_t expected = first;
    for (std::size_t at = 0; at < count;
         ++at, expected = static_cast<std::uint16_t>(expected + step)) {
        wrong |= numbers[at] ^ expected;
    }
    return wrong == 0;
}

[[gnu::always_inline]] inline bool are_parts_of(const std::uint16_t* numbers, std::size_t count,
                                                std::uint16_t first, std::uint16_t part) {
    std::uint16_t wrong = 0;
    for (std::size_t at = 0; at < count; ++at) {
        const auto place = static_cast<std::uint16_t>(at);
        const auto whole = static_cast<std::uint16_t>(std::uint32_t{place} * part >> 16);
        wrong |= numbers[at] ^ static_cast<std::uint16_t>(first + whole);
    }
    return wrong == 0;
}

[[gnu::always_inline]] inline std::uint64_t all_beyond(const SetRecord* sets, std::size_t count,
                                                       std::uint64_t words, std::uint64_t most) {
    std::uint64_t beyond = 0;
    for (std::size_t index = 0; index < count; ++index) {
        std::uint64_t set; // word, first, count
        std::memcpy(&set, sets + index, sizeof set);
        const std::uint64_t its_words = set >> 48;
        beyond |= words - ((set & UINT32_MAX) + its_words);
        beyond |= most - ((set >> 32 & UINT16_MAX) + its_words);
    }
    return beyond;
}

constexpr ElementLoops portable_loops = {
    [](const std::uint8_t* numbers, std::size_t count) { return largest(numbers, count); },
    [](const std::uint16_t* numbers, std::size_t count) { return largest(numbers, count); },
    [](const std::uint16_t* numbers, std::size_t count, std::uint16_t first, std::uint16_t step) {
        return are_steps_of(numbers, count, first, step);
    },
    [](const std::uint16_t* numbers, std::size_t count, std::uint16_t first, std::uint16_t part) {
        return are_parts_of(numbers, count, first, part);
    },
    [](const SetRecord* sets, std::size_t count, std::uint64_t words, std::uint64_t most) {
        return all_beyond(sets, count, words, most);
    }};

#ifdef __x86_64__
[[gnu::target("avx2")]] std::uint8_t wide_largest8(const std::uint8_t* numbers, std::size_t count) {
    return largest(numbers, count);
}
[[gnu::target("avx2")]] std::uint16_t wide_largest16(const std::uint16_t* numbers,
                                                     std::size_t count) {
    return largest(numbers, count);
}
[[gnu::target("avx2")]] bool wide_steps(const std::uint16_t* numbers, std::size_t count,
                                        std::uint16_t first, std::uint16_t step) {
    return are_steps_of(numbers, count, first, step);
}
[[gnu::target("avx2")]] bool wide_parts(const std::uint16_t* numbers, std::size_t count,
                                        std::uint16_t first, std::uint16_t part) {
    return are_parts_of(numbers, count, first, part);
}
[[gnu::target("avx2")]] std::uint64_t wide_beyond(const SetRecord* sets, std::size_t count,
                                                  std::uint64_t words, std::uint64_t most) {
    return all_beyond(sets, count, words, most);
}
constexpr ElementLoops wide_loops = {wide_largest8, wide_largest16, wide_steps, wide_parts,
                                     wide_beyond};
#endif

} // namespace

const ElementLoops& portable_element_loops() {
    return portable_loops;
}

const ElementLoops& element_loops() {
#ifdef __x86_64__
    if (processor_has_avx2()) {
        return wide_loops;
    }
#endif
    return portable_loops;
}

} // namespace warren::topology
