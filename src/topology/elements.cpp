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

[[gnu::always_inline]] inline std::uint32_t sum(const std::uint16_t* numbers, std::size_t count) {
    std::uint32_t all = 0;
    for (std::size_t at = 0; at < count; ++at) {
        all += numbers[at];
    }
    return all;
}

using WideShorts [[gnu::vector_size(32)]] = std::uint16_t;

// Whether each number is the one `distance` before it and `step` more, modulo 2^16. Fewer than fill
// a vector are a shorter one's, the last of many are looked at with some of those before them.
template <typename Numbers>
[[gnu::always_inline]] inline bool follow(const std::uint16_t* numbers, std::size_t count,
                                          std::size_t distance, std::uint16_t step) {
    constexpr std::size_t lanes = sizeof(Numbers) / sizeof(std::uint16_t);
    const std::size_t pairs = count - distance;
    if (pairs < lanes) {
        if constexpr (lanes > Vector<std::uint16_t>::lanes) {
            return follow<ShortLanes>(numbers, count, distance, step);
        }
        std::uint16_t wrong = 0;
        for (std::size_t at = 0; at < pairs; ++at) {
            wrong |= static_cast<std::uint16_t>(numbers[at + distance] - numbers[at] - step);
        }
        return wrong == 0;
    }
    Numbers wrong{};
    const auto look = [&](std::size_t at) {
        Numbers some;
        Numbers behind;
        std::memcpy(&some, numbers + at, sizeof some);
        std::memcpy(&behind, numbers + at + distance, sizeof behind);
        wrong |= behind - some - step;
    };
    look(pairs - lanes);
    for (std::size_t at = 0; at + lanes < pairs; at += lanes) {
        look(at);
    }
    std::uint64_t words[sizeof wrong / sizeof(std::uint64_t)];
    std::memcpy(words, &wrong, sizeof words);
    std::uint64_t any = 0;
    for (const std::uint64_t word : words) {
        any |= word;
    }
    return any == 0;
}

template <typename Numbers>
[[gnu::always_inline]] inline bool are_even_in(const EvenChildren& all) {
    return all.first_child[0] == all.first && all.arity[0] == all.each &&
           follow<Numbers>(all.parent, all.each, 1, 0) &&
           follow<Numbers>(all.parent, all.count, all.each, 1) &&
           follow<Numbers>(all.first_child, all.parents, 1, all.each) &&
           follow<Numbers>(all.arity, all.parents, 1, 0);
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
    [](const std::uint16_t* numbers, std::size_t count) { return sum(numbers, count); },
    [](const EvenChildren& children) { return are_even_in<ShortLanes>(children); },
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
[[gnu::target("avx2")]] std::uint32_t wide_sum16(const std::uint16_t* numbers, std::size_t count) {
    return sum(numbers, count);
}
[[gnu::target("avx2")]] bool wide_even(const EvenChildren& children) {
    return are_even_in<WideShorts>(children);
}
[[gnu::target("avx2")]] std::uint64_t wide_beyond(const SetRecord* sets, std::size_t count,
                                                  std::uint64_t words, std::uint64_t most) {
    return all_beyond(sets, count, words, most);
}
constexpr ElementLoops wide_loops = {wide_largest8, wide_largest16, wide_sum16, wide_even,
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
