// Copies of a few bytes, without a call or a loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace warren::transport {

// Copies up to 40 bytes (a cell's payload): two overlapping moves cover the lengths between powers
// of two. The areas don't overlap.
[[gnu::always_inline]] inline void copy_small(void* to, const void* from, std::size_t bytes) {
    auto* target = static_cast<char*>(to);
    const auto* source = static_cast<const char*>(from);
    struct Sixteen {
        std::uint64_t words[2];
    };
    const auto move = [&]<typename Word>(std::size_t offset, Word word)
        __attribute__((always_inline)) {
        std::memcpy(&word, source + offset, sizeof word);
        std::memcpy(target + offset, &word, sizeof word);
    };
    if (bytes >= 16) {
        move(0, Sixteen{});
        if (bytes > 32) {
            move(16, Sixteen{});
        }
        move(bytes - 16, Sixteen{});
    } else if (bytes >= 8) {
        move(0, std::uint64_t{});
        move(bytes - 8, std::uint64_t{});
    } else if (bytes >= 4) {
        move(0, std::uint32_t{});
        move(bytes - 4, std::uint32_t{});
    } else {
        for (std::size_t i = 0; i < bytes; ++i) {
            target[i] = source[i];
        }
    }
}

} // namespace warren::transport
