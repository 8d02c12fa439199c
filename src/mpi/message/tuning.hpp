// Tuning constants of point-to-point messages: sizes and counts that measurements have chosen.
// Changing one changes speed, never correctness.
//
// Each group names the program of bench/ that measures it (bench/README.md). The transport's
// constants are in mpi/transport/shm/tuning.hpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "mpi.h"

namespace warren::message {

// --- Protocols. bench/latency --sizes 1K,2K,4K with --ranks threads

// Up to this size, bytes, a rank's buffered message to itself is copied a second time: that costs
// less than the room that it would occupy in the attached buffer.
inline constexpr std::uint64_t own_copy_limit = 64 * 1024;
// Time, ns, that a send waits for blocks of a receiver in its address space before it goes direct.
inline constexpr std::uint64_t patience_ns = 1'000'000;

// Processes of other worlds that there is room for at first.
inline constexpr std::uint32_t endpoints_at_once = 64;

// --- Fairness between messages. bench/bandwidth --sizes 1M,4M; bench/stencil

// Blocks of one message that are sent before this rank makes other progress.
inline constexpr std::uint32_t blocks_at_once = 16;
// Parts of data with gaps that are sent to one receiver before this rank looks for arrivals.
inline constexpr std::uint32_t parts_per_turn = 2;
// Rounds in which each stream sends and receives a part, before this rank tests whether its wait is
// over. (A waiting rank continues at once; others continue in their next call.)
inline constexpr std::uint32_t turns_at_once = 16;
// Frames that a rank takes of each sender in such a round.
inline constexpr std::uint32_t frames_per_turn = 2;

// --- Data with gaps. bench/halo

// Small pieces in a part that is sent at once: as many as stay in the nearer caches. Pieces count
// as having at least smallest_gap_piece bytes.
inline constexpr std::size_t gap_pieces_at_once = 1024;
inline constexpr std::size_t smallest_gap_piece = 4;
// At or above this size, bytes, the kernel copies blocks one by one; smaller ones are packed.
inline constexpr MPI_Count coarse_block_bytes = 1024;
// Bytes that the receiver unpacks at a time when its own blocks are small.
inline constexpr std::size_t fetch_window_bytes = 64 * 1024;

// --- Direct copies (direct.hpp). bench/bandwidth --sizes 8K,64K,1M with --ranks threads

// Limits of a block, bytes, and the wanted number of blocks. Copying a block should take longer
// than moving the counters' cache line to the other core, and be short against the whole.
inline constexpr std::uint64_t smallest_direct_block = 8 * 1024;
inline constexpr std::uint64_t largest_direct_block = 64 * 1024;
inline constexpr std::uint64_t direct_blocks_wanted = 8;
// Polls while the other rank finishes a block; after them it has probably lost its processor.
inline constexpr int direct_spins_until_yield = 2000;

} // namespace warren::message
