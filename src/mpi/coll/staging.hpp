// Staging: memory of the node segment through which the data of a communicator's collective
// operations passes when it is too large for the lines of its collective slot (slot_memory.hpp).
//
// A communicator with a slot can have two staging areas, a small and a large one. A communicator of
// two ranks can also have a wide one, for data that is faster in large pieces. Each area has a part
// for every phase of the slot. An operation may use its phase's part freely; the phase ring's
// invariant 2 says when it may write there. An area is allocated when an operation first needs it,
// and returned with the slot.
//
// Invariants
//  1. Whether a communicator has a staging area is decided once, by whoever first wants it, in a
//     word of the slot: all its ranks find the same answer, also "no" (the node's memory, or what
//     is set aside for staging areas, is exhausted), until the slot is given back. One rank decides
//     while others yield: several at once would take units from each other.
//  2. A staging area has memory before its word says that it exists.
//  3. A unit is used by one staging area at most: its bit in the staging map is set while
//     it is.
// Thread rule: any rank at any time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/page.hpp"
#include "mpi/coll/segment_regions.hpp"
#include "mpi/coll/tuning.hpp"
#include "mpi/job/segment.hpp"

namespace warren::coll {

enum class StagingKind : std::uint8_t { small, large, wide };

namespace staging {

// Meanings of a slot's word.
inline constexpr std::uint32_t undecided = 0;
inline constexpr std::uint32_t deciding = 1;
inline constexpr std::uint32_t refused = 2;
inline constexpr std::uint32_t first = 3; // + number of the first unit

inline std::byte* memory(const node::Segment& segment, std::uint32_t word) {
    return segment.at(staging_units) + std::uint64_t{word - first} * staging_unit_bytes;
}

// Decides a word that was undecided, or waits for who does; returns what it says then: refused, or
// where the staging area begins.
std::uint32_t decide(const node::Segment& segment, std::atomic<std::uint32_t>& word,
                     StagingKind kind, int ranks);
// Gives a staging area back that nobody uses any more. The word becomes undecided.
void give_back(const node::Segment& segment, std::atomic<std::uint32_t>& word, StagingKind kind,
               int ranks);

} // namespace staging

// Bytes of one phase of a staging area of `ranks` ranks: whole lines.
constexpr std::size_t staging_phase_bytes(StagingKind kind, int ranks) {
    const bool small = kind == StagingKind::small;
    const std::size_t wanted =
        static_cast<std::size_t>(ranks) * (small                       ? staging::small_rank_bytes
                                           : kind == StagingKind::wide ? staging::wide_rank_bytes
                                           : ranks == 2                ? staging::pair_rank_bytes
                                                                       : staging::large_rank_bytes);
    const std::size_t most =
        (small ? staging::small_area_bytes : staging::large_area_bytes) / collective_phases;
    return (wanted < most ? wanted : most) / node::cache_line_bytes * node::cache_line_bytes;
}

// Distance of rows in a staging area: whole lines, but not whole pages, at whose distance blocks of
// different ranks would compete for the same cache sets.
constexpr std::size_t staging_row_pitch(std::size_t row_bytes) {
    const std::size_t lines =
        (row_bytes + node::cache_line_bytes - 1) / node::cache_line_bytes * node::cache_line_bytes;
    return lines % page_bytes == 0 ? lines + node::cache_line_bytes : lines;
}

// Distance of blocks in a row: small ones adjacent, others as rows.
constexpr std::size_t staging_block_stride(std::size_t bytes) {
    return bytes < node::cache_line_bytes ? bytes : staging_row_pitch(bytes);
}

} // namespace warren::coll
