// ContextIds: the numbers that tell the messages of a node's communicators apart.
//
// A communicator takes one, which stands for two contexts (even: the program's messages, odd: the
// library's), and every member gives it back when its communicator ends; after the last it is free
// again. So they do not run out before 2^19 communicators live at once, however many come and go.
//     bits 31…21  how often the number has been taken: a message that a wrong program leaves behind
//                 is not taken for one of a later communicator
//     bits 20…1   index in the node segment's table, which grows with the most that have lived
//     bit 0       point-to-point or collective
// Communicators of several nodes have numbers that are never used again, each node its own ones,
// from the indices above context_limit. Those of several worlds have numbers from there, too
// (ConnectingContexts).
// Indices below first_dynamic need no agreement (mpi/comm/communicator.hpp).
//
// Thread rule: by any rank, without locks. Invariant: a number is in the free list or has users.
#pragma once

#include <atomic>
#include <cstdint>

#include "mpi/job/segment.hpp"

namespace warren::node {

// A number of a communicator.
struct ContextEntry {
    std::atomic<std::uint32_t> users; // members that have not given it back
    std::atomic<std::uint32_t> next;  // in the free list, 0: none
    std::uint32_t lives;              // how often it was taken; changed by who has taken it
    // 0: none yet; ~0: there was none left; else 1 + the communicator's collective slot.
    std::atomic<std::uint32_t> slot;
};
inline constexpr std::uint32_t context_limit = 1 << 19;
inline constexpr RegionId<ContextEntry> contexts{13}; // committed a page at a time

// The first number that has never been taken; the list of those that are free again.
struct ContextStock {
    std::atomic<std::uint32_t> next;
    std::atomic<std::uint64_t> free;
    std::atomic<std::uint32_t> committed; // entries that have memory
    std::atomic<std::uint32_t> spanning;  // numbers taken for communicators of several nodes
};
inline constexpr RegionId<ContextStock> context_stock{14};

class ContextIds {
  public:
    // The even context of a number for `members` ranks. 0 when there is none, or memory is out.
    static std::uint32_t take(const Segment& segment, std::uint32_t members);

    // For a communicator of several nodes; 0: there is none left.
    static std::uint32_t take_spanning(const Segment& segment);
    // The number `turn` of a block of numbers for communicators of several worlds; and back.
    static std::uint32_t connecting(std::uint32_t block, std::uint32_t turn) {
        return spanning(block * connecting_block + turn);
    }
    static std::uint32_t connecting_block_of(std::uint32_t context) {
        return number_of(context) / connecting_block;
    }
    static std::uint32_t connecting_turn_of(std::uint32_t context) {
        return number_of(context) % connecting_block;
    }
    static constexpr std::uint32_t connecting_block = 1 << 12;  // numbers
    static constexpr std::uint32_t connecting_blocks = 1 << 18; // of a node
    // Whether a context is from take_spanning() or connecting().
    static bool is_spanning(std::uint32_t context) { return index_of(context) >= first_spanning; }

    // Gives up one member's share; contexts that are not from take() have none. The last member
    // gets what the entry's `slot` was, to free it; else 0.
    [[nodiscard]] static std::uint32_t give_back(const Segment& segment, std::uint32_t context);

    // For a context that is from take().
    static ContextEntry& entry(const Segment& segment, std::uint32_t context) {
        return segment.at(contexts)[index_of(context)];
    }

    static constexpr std::uint32_t first_dynamic = 8;

  private:
    static constexpr std::uint32_t index_bits = 20;
    static constexpr std::uint32_t first_spanning = 1 << (index_bits - 1);
    static_assert(context_limit == first_spanning);
    // The context of a number of 30 bits beyond those of take(); and back.
    static std::uint32_t spanning(std::uint32_t number);
    static std::uint32_t number_of(std::uint32_t context);
    static constexpr std::uint32_t low_bits = index_bits - 1;
    static_assert(std::uint64_t{connecting_blocks} * connecting_block == std::uint64_t{1} << 30);

    static std::uint32_t index_of(std::uint32_t context) {
        return (context >> 1) & ((1u << index_bits) - 1);
    }
};

} // namespace warren::node
