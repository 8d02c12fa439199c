// Collective operations' regions of the node segment (base/segment_region.hpp): their sizes, and
// what is in them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/segment_region.hpp"

namespace warren::coll {

// A collective slot (slot_memory.hpp): a line, and phases of two lines, a line per rank, and four
// bitmaps of ranks.
inline constexpr std::uint32_t collective_phases = 4; // power of two
constexpr std::size_t collective_bitmap_bytes(std::size_t ranks) {
    return (ranks + 8 * node::cache_line_bytes - 1) / (8 * node::cache_line_bytes) *
           node::cache_line_bytes;
}
// Before the phases: the slot's own line, and what each rank announces.
constexpr std::size_t collective_head_bytes(std::size_t ranks) {
    return (1 + ranks) * node::cache_line_bytes;
}
constexpr std::size_t collective_phase_bytes(std::size_t ranks) {
    return (2 + ranks) * node::cache_line_bytes + 4 * collective_bitmap_bytes(ranks);
}
// The first slot is the world's, and sure to be used; the others are committed when they are taken.
inline constexpr node::RegionId<std::byte> collective_slots{9};

// Most communicators of a node that have a slot: enough for a program's few dozen busy ones; the
// rest use messages.
inline constexpr std::uint32_t collective_slot_limit = 256;
struct SlotMap {
    std::atomic<std::uint64_t> used[collective_slot_limit / 64]; // a bit for each slot
};
inline constexpr node::RegionId<SlotMap> slot_map{10};

// A staging area (staging.hpp) consists of units, which are committed when they are taken.
inline constexpr std::uint64_t staging_unit_bytes = 32 * 1024;
inline constexpr std::uint64_t staging_unit_limit = 1024;
inline constexpr node::RegionId<std::byte> staging_units{11};
struct StagingMap {
    std::atomic<std::uint64_t> used[staging_unit_limit / 64]; // a bit for each unit
};
inline constexpr node::RegionId<StagingMap> staging_map{12};

} // namespace warren::coll
