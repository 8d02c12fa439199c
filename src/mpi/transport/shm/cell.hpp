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

namespace warren::transport {

// The message room's purpose of a cell (mpi/message/protocol.hpp); 0 is this room's own.
using CellKind = std::uint16_t;
inline constexpr CellKind cell_opens_pair_ring = 0; // payload: number of the pair ring, four bytes
// A block in a bounce buffer may be handed over in pieces: the first with the cell's kind, the
// others with this one. The block's handler must know its size.
inline constexpr CellKind further_piece = 1;

// Place of a cell's data.
enum class Place : std::uint8_t {
    cell,  // in the payload
    chunk, // in a chunk of the sender (queue)
    ring,  // in the pair's ring
    bounce // in a bounce buffer, and perhaps still arriving (pair ring)
};

inline constexpr std::size_t inline_bytes = 40;

// The head of a cell beside its data: its purpose and the envelope of a message.
struct Header {
    CellKind kind;
    std::uint32_t context;
    std::int32_t source;
    std::int32_t tag;
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
inline constexpr std::size_t extra_bytes = 24;
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

// An arrival: a cell, or the next piece of a block that is still arriving. Valid during the
// handler's call.
struct Arrival {
    Header header;
    std::uint32_t sender;
    std::uint32_t bytes;
    std::uint32_t block_bytes; // of the whole block, of which this may be a piece
    const std::byte* data;
    const std::byte* extra; // of a block; null when the data was in the cell
};

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
