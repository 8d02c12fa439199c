// Cell: one cache line that contains a message of a few bytes, or says where its data is.
//
// Cells move through the receiver's queue, which all ranks of the node may write, or through the
// pair ring of two ranks. The sender stores a cell's sequence last and the receiver reads it first,
// so that a short message costs the transfer of a single line.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "mpi/transport/shm/segment_regions.hpp"
#include "mpi/transport/transport.hpp"

namespace warren::transport {

// A cell of the transport's own (CellKind 0). Payload: number of the pair ring, four bytes.
inline constexpr CellKind cell_opens_pair_ring = 0;

// Place of a cell's data.
enum class Place : std::uint8_t {
    cell,  // in the payload
    chunk, // in a chunk of the sender (queue)
    ring,  // in the pair's ring
    bounce // in a bounce buffer, and perhaps still arriving (pair ring)
};

// Part of a cell that only pair rings use (pair_ring.hpp).
struct PairRingTurn {
    std::uint16_t
        acknowledged;   // cells that its sender has read of the opposite pair ring, mod 2^16
    std::uint16_t next; // where the cell after this one is
};

struct alignas(node::cache_line_bytes) Cell {
    std::atomic<std::uint32_t> sequence; // position + 1; stored last
    CellKind kind;
    Place place;
    std::uint8_t length; // bytes in the payload, when the data is there
    std::uint32_t context;
    std::int32_t source;
    std::int32_t tag;
    union {
        std::uint32_t sender; // queue: the sender's rank on the node
        PairRingTurn turn;    // pair ring
    };
    alignas(8) std::byte payload[inline_bytes];
};
static_assert(sizeof(Cell) == cell_bytes);

// The payload of a cell whose data is in a chunk or ring. `extra` is the message room's.
struct BlockReference {
    std::uint32_t bytes;
    // chunk: its number among all; ring: where the data starts; bounce: a BouncePlace
    std::uint32_t position;
    // ring: bytes consumed in all when this block is
    // bounce: bytes published, growing while the receiver reads; bit 63: the buffer may be kept
    std::uint64_t mark;
    std::byte extra[extra_bytes];
};
inline constexpr std::size_t block_progress_offset = 8; // of mark in the payload
inline constexpr std::uint64_t may_be_kept_bit = std::uint64_t{1} << 63;
static_assert(sizeof(BlockReference) == inline_bytes);

// The data of a cell that contains it.
inline Arrival arrival_of(const Cell& cell, std::uint32_t sender) {
    return {.header = {.kind = cell.kind,
                       .context = cell.context,
                       .source = cell.source,
                       .tag = cell.tag},
            .sender = sender,
            .bytes = cell.length,
            .block_bytes = cell.length,
            .data = cell.payload,
            .extra = nullptr};
}

} // namespace warren::transport
