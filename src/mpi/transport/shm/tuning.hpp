// Tuning constants of the shared-memory transport: sizes and counts that measurements have chosen.
// Changing one changes speed, never correctness, within the limits that static_asserts check.
//
// Each group names the program of bench/ that measures it (bench/README.md). Run it on two bound
// ranks, for example `mpiexec -n 2 --bind-to core bench/latency --sizes 1K,2K,4K`. Compare
// placements with and without a common cache (--bind-to, taskset). Layout of the node segment, such
// as bounce_bytes, is in segment_regions.hpp; size classes and rhythm of the copy methods are
// members of CopyMethodClass (copy_methods.hpp).
#pragma once

#include <cstddef>
#include <cstdint>

#include "mpi/transport/shm/segment_regions.hpp"

namespace warren::transport {

// --- Pair ring (pair_ring.hpp). bench/latency --sizes 64,1K,2K,4K; bench/message_rate

// ring_block_limit: the largest block of the ring, bytes. Up to ring_preferred_limit the sender can
// prefetch the lines before it needs them (prefetch_ring). Larger blocks are faster in frames
// through a bounce buffer, whose lines stay in the two caches; they use the ring only where there
// are no bounce buffers.
inline constexpr std::size_t ring_block_limit = 4096;
inline constexpr std::size_t ring_preferred_limit = 2048;

// Distance, in cells, at which either side prefetches: a line's latency in messages.
inline constexpr std::uint32_t cells_ahead = 8;

// Cells and bytes that two ranks that answer each other use before they start again. Few, so that
// the lines stay in the nearest caches of both.
inline constexpr std::uint32_t hot_cells = 4;
inline constexpr std::size_t hot_ring_bytes = 4096;
static_assert(hot_ring_bytes >= 2 * ring_preferred_limit, "the next block is ahead of the last");

// Cells that a pair sends before it gets a pair ring: a program that sends one message to every
// rank should not take 44 KiB per pair for that. bench/footprint
inline constexpr std::uint32_t cells_until_pair_ring = 8;

// --- Polling (node_transport.hpp). bench/latency; bench/bandwidth --sizes 8K,64K,1M

// Polls of a pair ring for the next cell before other progress: 20 to 40 us.
inline constexpr std::uint32_t polls_of_a_pair_ring = 1000;
// Polls for a block's next frame, which is short, before other progress.
inline constexpr std::uint32_t polls_of_a_frame = 32;
// Cells that a poll takes of one sender, so that a busy one doesn't keep the others waiting.
inline constexpr std::uint32_t cells_taken_per_poll = 32;

// --- Bounce buffers (bounce.hpp). bench/bandwidth --sizes 8K,64K,1M,4M, also with --written

// At or above long_stream_bytes, a message moves in blocks of half a buffer if a core's own cache
// holds less than the bounces_under_way whole buffers that are under way at once. A long message
// passes through the caches of both sides, and the part under way should stay in them. Between two
// cores of one last cache, 2 to 4 MiB take up to a sixth less time in half buffers where a core's
// own cache has 512 KiB, and up to a fifth more where it has 1 MiB. 1 MiB takes more in both cases.
inline constexpr std::uint64_t long_stream_bytes = 2 * 1024 * 1024;
inline constexpr std::size_t long_stream_block_bytes = bounce_bytes / 2;
inline constexpr std::size_t bounces_under_way = 3;

// From this many blocks in a row, with no cell from the receiver in between, it counts as behind.
inline constexpr std::uint32_t blocks_until_behind = 3;

// --- Copies (copy_large.hpp). bench/bandwidth --sizes 8K,32K,64K,1M

// Bytes prefetched before a string move out of lines that another core has written.
inline constexpr std::size_t string_prefetch_bytes = 4096;
// Largest piece that vector copies read: above it string moves are faster.
inline constexpr std::size_t vector_limit_bytes = 32768;
// Distance and step of the prefetch of vector copies, bytes.
inline constexpr std::size_t vector_ahead_bytes = 2048;
inline constexpr std::size_t vector_stride_bytes = 256;
// Assumed size of a core's own cache if the processor doesn't tell, or tells less.
inline constexpr std::size_t least_near_bytes = std::size_t{256} << 10;

// --- Joint copies (joint_copy.hpp). bench/bandwidth --sizes 64K,256K,1M,4M on two processes

// From this size on a copy is worth sharing, bytes: two blocks, each of which takes longer than the
// other side needs to see that there is one.
inline constexpr std::uint64_t joint_limit = 64 * 1024;
// Limits of a block, bytes.
inline constexpr std::uint64_t smallest_joint_block = joint_limit / 2;
inline constexpr std::uint64_t largest_joint_block = 128 * 1024;
// Bytes that the receiver copies by one call: so many that the kernel's entry is negligible.
inline constexpr std::uint64_t largest_joint_share = 1024 * 1024;
// Waits for the other side's last block. It is in the middle of a copy for the first polls, has
// probably lost its processor for the next yields, and is stopped or dead afterwards.
inline constexpr int joint_spins_until_yield = 2000;
inline constexpr int joint_yields_until_late = 1000;
inline constexpr long joint_nap_ns = 500'000;

// --- Plans (plans.hpp). bench/latency --sizes 1K,2K,4K with --ranks threads

// Above this size, bytes, one copy for which sender and receiver must be in MPI at once is faster
// than two through the receiver's queue. (For pairs with a pair ring: CopyMethodClass.)
inline constexpr std::uint64_t direct_limit = 2048;

// --- Choice of copy methods (copy_methods.hpp). bench/bandwidth --written, bench/latency --read

// The advice changes only for a method that takes less than this part of the present one's time.
inline constexpr float worthwhile = 0.95F;
// A receiver that looks later than this after the sender began, ns, was busy with something else.
inline constexpr std::uint64_t late_ns = 20000;
// Measure anew after this many messages in a row that took this many times as long; after twice as
// many each time that it changed nothing (most_in_vain doublings: 512).
inline constexpr std::uint32_t enough_to_tell = 8;
inline constexpr float much_slower = 1.6F;
inline constexpr std::uint32_t most_in_vain = 6;
// After this pause, ns, between two measured messages of a class, earlier measurements are dropped.
inline constexpr std::uint64_t stale_ns = 10'000'000'000;

} // namespace warren::transport
