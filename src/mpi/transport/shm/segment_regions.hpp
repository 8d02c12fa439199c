// The transport's regions of the node segment (base/segment_region.hpp): their sizes, and what is
// in them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/page.hpp"
#include "base/segment_region.hpp"
#include "mpi/job/segment.hpp"

namespace warren::transport {

struct Cell;     // cell.hpp
struct Chunk;    // queue.hpp
struct PairRing; // pair_ring.hpp

// A rank's end of its queue, and what others tell it: a part of its slot.
struct alignas(node::cache_line_bytes) QueueEnds {
    std::atomic<std::uint32_t> tail;                                     // claimed by senders
    alignas(node::cache_line_bytes) std::atomic<std::uint32_t> consumed; // stored by the rank
    // 1: a bit is set among the ranks that sleep until this one has taken cells or chunks.
    alignas(node::cache_line_bytes) std::atomic<std::uint32_t> space_wanted;
    // A bit for each of this rank's bounce buffers that has been given back (bounce.hpp).
    alignas(node::cache_line_bytes) std::atomic<std::uint32_t> bounces_returned;
    std::atomic<std::uint32_t> inbound_pair_rings; // opened towards this rank
};
static_assert(sizeof(QueueEnds) <= sizeof(node::RankSlot::of_transport));
inline QueueEnds& queue_ends_of(node::RankSlot& slot) {
    return *reinterpret_cast<QueueEnds*>(slot.of_transport);
}

// Per rank a bit for each rank that waits for space there.
inline constexpr node::RegionId<std::atomic<std::uint64_t>> space_waiters{3};

inline constexpr std::uint32_t queue_cells = 128; // power of two
inline constexpr std::size_t cell_bytes = 64;     // one cache line
inline constexpr node::RegionId<Cell> queues{4};  // a unit per rank

inline constexpr std::uint32_t chunks_per_rank = 8;
inline constexpr std::size_t chunk_bytes = 4096 + node::cache_line_bytes; // payload + its header
inline constexpr node::RegionId<Chunk> chunks{5};

inline constexpr std::uint32_t pair_ring_cells = 128;          // power of two
inline constexpr std::size_t pair_ring_data_bytes = 32 * 1024; // power of two
inline constexpr std::size_t pair_ring_bytes =
    page_bytes + pair_ring_cells * cell_bytes + pair_ring_data_bytes; // ends, cells, payload
inline constexpr std::uint32_t pair_rings_per_receiver = 16;          // bounds what a poll looks at
inline constexpr node::RegionId<PairRing> pair_rings{6};
inline constexpr node::RegionId<std::atomic<std::uint32_t>> pair_rings_opened{7};

inline constexpr std::uint32_t bounce_buffers = 8; // per rank
inline constexpr std::size_t bounce_bytes = 256 * 1024;
// With space for the shift of the data, and not a power of two, so that the buffers don't compete
// for the same sets of the caches.
inline constexpr std::size_t bounce_stride_bytes =
    bounce_bytes + page_bytes + 5 * node::cache_line_bytes;
inline constexpr node::RegionId<std::byte> bounces{8};

} // namespace warren::transport
