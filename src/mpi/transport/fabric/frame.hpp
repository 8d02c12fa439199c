// Frame: what one send of a port carries: a header and the cells that were ready for one process.
//
//   FrameHeader | CellHeader [extra] data, padded to 8 | CellHeader … |
//
// Frames come from the network, so nothing in them is believed: a reader checks each length before
// it looks behind it. The job's secret tells frames of the job from others; each link's frames are
// numbered, so that a frame that is sent twice is recognised. Nodes of a job have the same byte
// order. Thread rule: values of one call.
//
// Invariants of a frame that FrameReader has accepted
//  1. Its bytes are what the header says, at most frame_bytes_limit.
//  2. Each cell, with its extra and data, lies within it; cells fill it without rest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "mpi/transport/transport.hpp"

namespace warren::transport::fabric {

inline constexpr std::uint32_t frame_magic = 0x57464d31; // "WFM1": changes with the format
inline constexpr std::size_t frame_bytes_limit = 64 * 1024;

struct FrameHeader {
    std::uint32_t magic;
    std::uint32_t bytes; // of the frame, this header included
    std::uint64_t secret;
    std::uint32_t source;   // the sending process, by the world rank of its first rank
    std::uint32_t number;   // of this frame on its link, modulo 2^32
    std::uint32_t consumed; // frames of the opposite link that the sender has consumed
    std::uint32_t cells;
};
static_assert(sizeof(FrameHeader) == 32);

struct CellHeader {
    CellKind kind;
    std::uint16_t block;  // 1: a block, with `extra` before its data
    std::uint32_t slot;   // the receiving rank's, on its node
    std::uint32_t sender; // world rank
    std::uint32_t context;
    std::int32_t source;
    std::int32_t tag;
    std::uint32_t bytes; // of data
    std::uint32_t reserved;
};
static_assert(sizeof(CellHeader) == 32);

inline constexpr std::size_t padded(std::size_t bytes) {
    return (bytes + 7) & ~std::size_t{7};
}
inline constexpr std::size_t cell_bytes_of(bool block, std::size_t bytes) {
    return sizeof(CellHeader) + (block ? extra_bytes : 0) + padded(bytes);
}
// The largest block: it fits an empty frame.
inline constexpr std::size_t block_bytes_limit =
    frame_bytes_limit - sizeof(FrameHeader) - sizeof(CellHeader) - extra_bytes;
static_assert(block_bytes_limit % 8 == 0);

// A cell in a frame.
struct FrameCell {
    CellHeader header;
    const std::byte* extra; // null: no block
    const std::byte* data;
};

class FrameReader {
  public:
    enum class Fault : std::uint8_t {
        none,
        length, // shorter or longer than its header says
        magic,  // no frame, or another version's
        secret, // of another job
        cells   // damaged inside
    };

    // Checks all of a frame. fault() says whether next() may be called.
    FrameReader(std::span<const std::byte> frame, std::uint64_t secret);

    Fault fault() const { return fault_; }
    const FrameHeader& header() const { return header_; }
    // The next cell. False: that was all.
    bool next(FrameCell& cell);

  private:
    Fault check(std::uint64_t secret);

    std::span<const std::byte> frame_;
    FrameHeader header_ = {};
    std::size_t at_ = sizeof(FrameHeader);
    Fault fault_;
};

const char* text_of(FrameReader::Fault fault);

} // namespace warren::transport::fabric
