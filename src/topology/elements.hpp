// Questions about all elements of an array of bytes or of numbers of 16 bits, of which checking an
// image mostly consists: 16 bytes at a time, without a way out in the middle (the last 16 bytes are
// looked at with some of those before them, once more); long arrays as wide as the processor can.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "topology/format.hpp"

namespace warren::topology {

// The parents of `count` objects, the first of which is `first`, and what their `parents` parents
// say of them. They are even if the first parent has the first `each` of them, and so on, and all
// say so.
struct EvenChildren {
    const std::uint16_t* parent;
    std::size_t count;
    const std::uint16_t* first_child;
    const std::uint16_t* arity;
    std::size_t parents;
    std::uint16_t first;
    std::uint16_t each;
};

// For long arrays.
struct ElementLoops {
    std::uint8_t (*largest8)(const std::uint8_t* numbers, std::size_t count); // 0 of none
    std::uint16_t (*largest16)(const std::uint16_t* numbers, std::size_t count);
    std::uint32_t (*sum16)(const std::uint16_t* numbers, std::size_t count); // of at most 2^16
    bool (*are_even)(const EvenChildren& children);
    // The highest bit says whether a set's words go beyond `words`, or its bits beyond word `most`;
    // both are below 2^63.
    std::uint64_t (*beyond)(const SetRecord* sets, std::size_t count, std::uint64_t words,
                            std::uint64_t most);
};
const ElementLoops& element_loops();
const ElementLoops& portable_element_loops();

template <typename Number>
struct Vector {
    using Type [[gnu::vector_size(16)]] = Number;
    static constexpr std::size_t lanes = sizeof(Type) / sizeof(Number);
};
using ByteLanes = Vector<std::uint8_t>::Type;
using ShortLanes = Vector<std::uint16_t>::Type;

// Whether `is_right(numbers from `at` on, at)`, a vector of comparisons, is true of all. An array
// shorter than a vector is asked about with its first element repeated in front of it; places may
// then be below 0, which are large numbers.
template <typename Number, typename IsRight>
bool all_are(const Number* numbers, std::size_t count, IsRight is_right) {
    using Numbers = typename Vector<Number>::Type;
    constexpr std::size_t lanes = Vector<Number>::lanes;
    if (count == 0) {
        return true;
    }
    Numbers last = Numbers{} + numbers[0];
    if (count >= lanes) {
        std::memcpy(&last, numbers + count - lanes, sizeof last);
    } else {
        for (std::size_t at = 1; at < count; ++at) {
            last[lanes - count + at] = numbers[at];
        }
    }
    auto all = is_right(last, count - lanes);
    for (std::size_t at = 0; at + lanes <= count; at += lanes) {
        Numbers some;
        std::memcpy(&some, numbers + at, sizeof some);
        all &= is_right(some, at);
    }
    std::uint64_t halves[2];
    static_assert(sizeof halves == sizeof all);
    std::memcpy(halves, &all, sizeof halves);
    return (halves[0] & halves[1]) == UINT64_MAX;
}

// Whether all numbers are below `limit`.
template <typename Number>
bool all_below(const Number* numbers, std::size_t count, std::uint64_t limit,
               const ElementLoops& loops) {
    using Numbers = typename Vector<Number>::Type;
    constexpr auto most = static_cast<Number>(-1);
    constexpr std::size_t few = 128 / sizeof(Number); // so few that a call costs more
    if (limit == 0 || limit > most) {
        return limit != 0 || count == 0;
    }
    const auto last = static_cast<Number>(limit - 1);
    if (count > few) {
        if constexpr (sizeof(Number) == 1) {
            return loops.largest8(numbers, count) <= last;
        } else {
            return loops.largest16(numbers, count) <= last;
        }
    }
    return all_are(numbers, count, [last](Numbers some, std::size_t) { return some <= last; });
}

// Whether each number is below the limit, or the largest there is, which stands for none.
template <typename Number>
bool all_below_or_none(const Number* numbers, std::size_t count, std::uint64_t limit) {
    using Numbers = typename Vector<Number>::Type;
    constexpr auto none_of_them = static_cast<Number>(-1);
    if (limit >= none_of_them) {
        return true;
    }
    const auto last = static_cast<Number>(limit);
    return all_are(numbers, count, [last](Numbers some, std::size_t) {
        return some + Number{1} <= last; // none becomes 0
    });
}

template <typename Number>
bool all_equal(const Number* numbers, std::size_t count, Number number) {
    using Numbers = typename Vector<Number>::Type;
    return all_are(numbers, count, [number](Numbers some, std::size_t) { return some == number; });
}

} // namespace warren::topology
