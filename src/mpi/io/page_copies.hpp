// Whether the kernel would copy from a file to memory slowly.
//
// Some processors copy a page five to ten times slower if the target lies a few bytes behind the
// source, modulo a page. That is how files are read into what malloc gives for long arrays: 16
// bytes behind a page. (Measured on a virtual AMD EPYC with fast short string operations: 1 MiB in
// 0.4 ms instead of 0.04 to 0.08.) Thread rule: any thread.
#pragma once

#include <cstdint>

#include "base/page.hpp"

namespace warren::io {

// Distances behind the source, below this one, that are slow.
inline constexpr std::uint64_t slow_distances = 32;

// Whether this processor and kernel copy slowly there: measured once, which takes some 50 µs.
bool has_slow_distances();

// `from`: the offset in the file.
inline bool copies_slowly(const void* to, std::uint64_t from) {
    const std::uint64_t distance = (reinterpret_cast<std::uintptr_t>(to) - from) % page_bytes;
    return distance - 1 < slow_distances - 1 && has_slow_distances();
}

} // namespace warren::io
