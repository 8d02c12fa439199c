// Block rows: where an operation's blocks are, in the lines of a collective slot or in a staging
// area. A phase of a staging area has rows of `pitch` bytes, with a block every `stride` bytes; in
// the lines, each rank's line is its row.
//
// ShortBlocks and SharedData use the same rows, so that their ranks take part in the same
// operations. Thread rule: a value.
#pragma once

#include <cstddef>
#include <cstdint>

#include "mpi/coll/phase_ring.hpp"

namespace warren::coll {

struct BlockRows {
    std::byte* area = nullptr; // null: in the lines
    std::size_t phase_bytes = 0;
    std::size_t pitch = 0;  // from row to row
    std::size_t stride = 0; // from block to block of a row

    std::byte* in_line(const PhaseRing& ring, std::uint64_t operation, int rank, int block) const {
        return ring.line_data(operation, rank) + static_cast<std::size_t>(block) * stride;
    }
    std::byte* in_staging(std::uint64_t operation, int row, int block) const {
        return area + operation % collective_phases * phase_bytes +
               static_cast<std::size_t>(row) * pitch + static_cast<std::size_t>(block) * stride;
    }
    // The block that only the root writes.
    std::byte* of_root(const PhaseRing& ring, std::uint64_t operation, int root, int block) const {
        return area == nullptr ? in_line(ring, operation, root, block)
                               : in_staging(operation, 0, block);
    }
    // The block that a rank writes for a root.
    std::byte* own(const PhaseRing& ring, std::uint64_t operation, int rank, int block = 0) const {
        return area == nullptr ? in_line(ring, operation, rank, block)
                               : in_staging(operation, rank, block);
    }
    // The block that a rank writes for all.
    std::byte* for_all(const PhaseRing& ring, std::uint64_t operation, int rank,
                       int block = 0) const {
        return area == nullptr
                   ? in_line(ring, operation, rank, block)
                   : in_staging(operation, ring.alternating_row(operation, rank), block);
    }
    // The block that a rank writes for another one. In lines, each writer's row has a block for
    // every other rank. In staging, rows and columns are exchanged in every second use of a phase,
    // unless blocks are smaller than a cache line: a line would then have several writers.
    bool exchanged() const { return area != nullptr && stride >= line_bytes; }
    std::byte* between(const PhaseRing& ring, std::uint64_t operation, int from, int to) const {
        const auto column = [](int row, int other) { return other < row ? other : other - 1; };
        return area == nullptr ? in_line(ring, operation, from, column(from, to))
               : exchanged() && PhaseRing::exchanges_places(operation)
                   ? in_staging(operation, to, column(to, from))
                   : in_staging(operation, from, column(from, to));
    }
};

} // namespace warren::coll
