// A kind of memory: where the pages of a heap go. Two allocations of equal kinds come from one
// heap.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace warren::memory {

// How an allocation continues when the first target of the order has no room left.
enum class Policy : std::uint8_t {
    next,      // the next in the order takes the rest; with all full the allocation fails
    strict,    // only the equally good ones at the head of the order serve, else it fails
    interleave // pages alternate among the equally good ones; what they lack goes to the next
};

enum class PageSize : std::uint8_t {
    any,   // as the system does; blocks of less than class_size_limit get small pages
    small, // 4 KiB
    huge   // 2 MiB, transparently: where the kernel finds such pages
};

inline constexpr unsigned smallest_page_shift = 12;
inline constexpr unsigned largest_page_shift = 40;

inline constexpr std::size_t target_limit = 128; // NUMA nodes in an order

struct Kind {
    Policy policy = Policy::next;
    PageSize page_size = PageSize::any;
    // Pages of 2^shift bytes from the system's reserve, see reserve.hpp; 0: ordinary ones.
    std::uint8_t reserved_shift = 0;
    std::uint16_t equals = 1; // targets at the head that are equally good, 1 to count
    std::uint16_t count = 0;  // targets, 1 to target_limit
    std::int16_t targets[target_limit] = {};

    bool operator==(const Kind& other) const {
        return policy == other.policy && page_size == other.page_size &&
               reserved_shift == other.reserved_shift && equals == other.equals &&
               count == other.count && std::equal(targets, targets + count, other.targets);
    }
};

} // namespace warren::memory
