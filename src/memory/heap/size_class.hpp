// Size classes: the block sizes that a heap keeps, so that a free block serves the next request of
// its class. Steps of 16 bytes up to 128, then four per doubling, up to class_size_limit: a block
// is at most a fourth larger than asked for. Larger blocks have a mapping of their own.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "memory/heap/numa.hpp"
#include "memory/heap/tuning.hpp"

namespace warren::memory {

inline constexpr std::size_t smallest_block_bytes = 16;
inline constexpr std::size_t class_size_limit = 1024 * 1024;
inline constexpr unsigned class_count = 60;

// By computation: the class for blocks of `bytes`, up to class_size_limit; 0 counts as 1.
constexpr unsigned computed_class_of(std::size_t bytes) {
    if (bytes <= 128) {
        return static_cast<unsigned>((bytes - (bytes != 0)) / 16);
    }
    const unsigned power = static_cast<unsigned>(std::bit_width(bytes - 1)) - 1;
    return 8 + (power - 7) * 4 + static_cast<unsigned>((bytes - 1) >> (power - 2)) - 4;
}

// From a table where requests are frequent: by sixteenths, as classes begin and end there.
inline constexpr std::size_t tabled_bytes = 2048;
inline constexpr std::array<std::uint8_t, tabled_bytes / 16 + 1> tabled_classes = [] {
    std::array<std::uint8_t, tabled_bytes / 16 + 1> made{};
    for (std::size_t i = 0; i < made.size(); ++i) {
        made[i] = static_cast<std::uint8_t>(computed_class_of(i * 16));
    }
    return made;
}();

// The class for blocks of `bytes`, up to class_size_limit; 0 counts as 1.
constexpr unsigned class_of(std::size_t bytes) {
    return bytes <= tabled_bytes ? tabled_classes[(bytes + 15) / 16] : computed_class_of(bytes);
}

// The class for blocks of any size; class_count: larger than all classes.
constexpr unsigned class_of_any(std::size_t bytes) {
    return bytes <= tabled_bytes       ? tabled_classes[(bytes + 15) / 16]
           : bytes <= class_size_limit ? computed_class_of(bytes)
                                       : class_count;
}

struct SizeClass {
    std::uint32_t bytes; // of a block
    std::uint32_t pages; // of a span, the pages that blocks are cut from together
    std::uint32_t blocks;
    std::uint32_t kept; // blocks that a thread keeps at most
};

constexpr SizeClass make_class(unsigned index) {
    std::size_t bytes = (index + 1) * smallest_block_bytes;
    if (index >= 8) {
        const unsigned power = 7 + (index - 8) / 4;
        bytes = (std::size_t{1} << power) + ((index - 8) % 4 + 1) * (std::size_t{1} << (power - 2));
    }
    // Large ones have a span each. Small ones share 4 to 32 pages, the first number that wastes
    // little and holds eight.
    std::size_t pages = bytes / page_bytes;
    if (bytes <= 16 * 1024) {
        pages = 4;
        while (pages < 32 && (pages * page_bytes < 8 * bytes ||
                              pages * page_bytes % bytes > pages * page_bytes / 16)) {
            ++pages;
        }
    }
    std::size_t kept = kept_bytes / bytes;
    kept = kept < 1 ? 1 : kept > 256 ? 256 : kept;
    return {static_cast<std::uint32_t>(bytes), static_cast<std::uint32_t>(pages),
            static_cast<std::uint32_t>(pages * page_bytes / bytes),
            static_cast<std::uint32_t>(kept)};
}

inline constexpr std::array<SizeClass, class_count> size_classes = [] {
    std::array<SizeClass, class_count> made{};
    for (unsigned i = 0; i < class_count; ++i) {
        made[i] = make_class(i);
    }
    return made;
}();
static_assert(size_classes[class_count - 1].bytes == class_size_limit);
static_assert(class_of(class_size_limit) == class_count - 1);

} // namespace warren::memory
