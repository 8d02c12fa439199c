// Slot memory: where things are in a collective slot of the node segment.
//
//     head            a line: the slot's members, their staging areas, calls that differ
//     announcements   a line for each rank
//     phases          each: a line of arrivals, the published line, a line for each rank, and
//                     bitmaps of waiters
// There are two kinds of bitmaps. Each kind has one for even and one for odd rounds of the phase,
// so that a rank that is late to leave an operation, and then wakes others, never takes bits of the
// phase's next round.
// Thread rule: a view of shared memory; its users (phase_ring.hpp, call_agreement.hpp) say who may
// read and write what.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "mpi.h"
#include "mpi/coll/staging.hpp"
#include "mpi/job/segment.hpp"

namespace warren::coll {

inline constexpr std::size_t line_bytes = node::cache_line_bytes;

// Bytes of data in a line.
inline constexpr MPI_Count line_data_bytes = 56;

// One cache line: the data first, for its alignment.
struct Line {
    std::byte data[line_data_bytes];
    std::atomic<std::uint64_t> stamp; // of the operation that it belongs to (call_agreement.hpp)
};
static_assert(sizeof(Line) == line_bytes);

// Number of latest calls for which the head records that they differ: as many as can be waited in
// at once.
inline constexpr std::uint64_t differing_calls = 4;

struct SlotHead {
    std::uint32_t members;
    std::atomic<std::uint32_t> staging[3]; // by kind
    // The first call from which on ranks' operations are not the same any more; 0: they are.
    std::atomic<std::uint32_t> broken_from;
    std::atomic<std::uint64_t> differing[differing_calls];

    static SlotHead& of(std::byte* slot) { return *reinterpret_cast<SlotHead*>(slot); }
    std::atomic<std::uint32_t>& staging_word(StagingKind kind) {
        return staging[static_cast<std::size_t>(kind)];
    }
};
static_assert(sizeof(SlotHead) <= line_bytes);

class SlotMemory {
  public:
    // `ranks`: of the node.
    SlotMemory(std::byte* slot, std::uint32_t ranks)
        : base_(slot),
          phases_(slot + collective_head_bytes(ranks)),
          phase_bytes_(collective_phase_bytes(ranks)) {}

    SlotHead& head() const { return SlotHead::of(base_); }

    // Announcements of a rank: its last calls (CallAgreement). There are more of them than others
    // can be ahead, who wait for the rank in an operation of theirs (phase ring, invariant 2).
    static constexpr std::uint64_t announced_calls = 8;
    std::atomic<std::uint64_t>& announced(int rank, std::uint64_t call) const {
        return reinterpret_cast<std::atomic<std::uint64_t>*>(
            base_ + (1 + static_cast<std::size_t>(rank)) * line_bytes)[call % announced_calls];
    }

    Line& line(std::uint64_t operation, int rank) const {
        return *reinterpret_cast<Line*>(phase(operation) +
                                        (2 + static_cast<std::size_t>(rank)) * line_bytes);
    }
    // Parts that only counted slots have (counted_sync.hpp).
    std::atomic<std::uint64_t>& arrivals(std::uint64_t operation) const {
        return *reinterpret_cast<std::atomic<std::uint64_t>*>(phase(operation));
    }
    Line& published(std::uint64_t operation) const {
        return *reinterpret_cast<Line*>(phase(operation) + line_bytes);
    }
    // `ranks`: of the node.
    std::atomic<std::uint64_t>* published_waiters(std::uint64_t operation,
                                                  std::uint32_t ranks) const {
        return reinterpret_cast<std::atomic<std::uint64_t>*>(
            phase(operation) + (2 + std::size_t{ranks}) * line_bytes +
            operation / collective_phases % 2 * 2 * collective_bitmap_bytes(ranks));
    }
    std::atomic<std::uint64_t>* arrived_waiters(std::uint64_t operation,
                                                std::uint32_t ranks) const {
        return published_waiters(operation, ranks) +
               collective_bitmap_bytes(ranks) / sizeof(std::uint64_t);
    }

  private:
    std::byte* phase(std::uint64_t operation) const {
        return phases_ + operation % collective_phases * phase_bytes_;
    }

    std::byte* const base_;
    std::byte* const phases_;
    const std::size_t phase_bytes_;
};

} // namespace warren::coll
