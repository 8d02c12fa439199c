// Areas: memory of the node segment through which the data of a communicator's collective
// operations passes when it is too large for the lines of its collective slot (shared.hpp).
//
// A communicator with a slot can have two areas, a small one for what most programs do and a large
// one for large data. Each has a part for every phase of the slot; an operation uses its phase's
// part as it likes, and the slot's invariant 2 says when it may write there. An area comes when an
// operation first wants it and goes back with the slot.
//
// Invariants
//  1. Whether a communicator has an area is decided once, by whoever first wants it, in a word of
//     the slot: all its ranks find the same answer, also "no" (the node's memory, or what is set
//     aside for areas, is exhausted), until the slot is given back. One rank decides while others
//     wait, giving way: several at once would take from each other what there is.
//  2. An area has memory before its word says that it exists.
//  3. A unit is used by one area at most: its bit in the segment's area_map is set while it is.
// Thread rule: any rank at any time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "node/segment.hpp"

namespace warren::coll {

enum class AreaKind : std::uint8_t { small, large };

// The bytes of one phase of such an area of `ranks` ranks.
std::size_t area_phase_bytes(AreaKind kind, int ranks);

namespace areas {

// What a slot's word says.
inline constexpr std::uint32_t undecided = 0;
inline constexpr std::uint32_t deciding = 1;
inline constexpr std::uint32_t refused = 2;
inline constexpr std::uint32_t first = 3; // + number of the first unit

inline std::byte* memory(const node::Segment& segment, std::uint32_t word) {
    return segment.at(segment.area_offset(word - first));
}

// Decides a word that was undecided, or waits for who does; returns what it says then: refused, or
// where the area begins.
std::uint32_t decide(const node::Segment& segment, std::atomic<std::uint32_t>& word, AreaKind kind,
                     int ranks);
// Gives an area back that nobody uses any more. The word becomes undecided.
void give_back(const node::Segment& segment, std::atomic<std::uint32_t>& word, AreaKind kind,
               int ranks);

} // namespace areas

} // namespace warren::coll
