// Tuning constants of collective operations: sizes and counts that measurements have chosen.
// Changing one changes speed, never correctness; all ranks of a communicator must use the same
// values.
//
// Unless a group says otherwise, `bench/collectives --operations NAME --sizes …` measures it
// (bench/README.md), on 2 ranks, on few (up to flat_ranks), and on more ranks than processors.
// Machine: README.md's, a 2-core virtual EPYC (Zen 4).
// Which path an operation takes is the table of paths.hpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "mpi.h"
#include "mpi/coll/segment_regions.hpp"

namespace warren::coll {

// --- Collective slot (flat_sync.hpp, counted_sync.hpp). --operations barrier,allreduce

// Most ranks that read each other's lines. Among more, counting arrivals costs less.
inline constexpr int flat_ranks = 8;
// Polls of a flat operation before the engine makes progress: a peer that has a processor and
// arrives at about the same time has arrived by then.
inline constexpr int flat_spins = 64;
// Operations in which a rank that had to wait delays its first poll (flat::ArrivalWait).
inline constexpr std::uint8_t delayed_operations = 15;
// Above this size, bytes, short blocks take so long to write that no first poll needs a delay.
inline constexpr std::size_t delay_limit_bytes = 512;
// Sleepers that one rank wakes, each of which wakes as many.
inline constexpr int wake_fan_out = 2;

// --- Short blocks (short_blocks.hpp). all operations, --sizes 256,512,1K,2K

// Largest block, bytes, for which the shorter code is worth a class of its own.
inline constexpr MPI_Count short_block_bytes = 1024;

// --- Levels (levels.hpp)

// Operations of a communicator of several nodes before it gets levels, which take as long to make
// as several operations.
inline constexpr std::uint64_t levels_from = 3;

// --- Copies. --operations bcast,allgather

// At or above this size, bytes, use the copy routine tuned for lines that another core wrote last.
inline constexpr std::size_t large_copy_bytes = 4096;
// Up to this size, bytes, lines that another core has written are read by vector copies, in pieces
// of half of it.
inline constexpr std::size_t vector_copy_bytes = 32768;

// --- Pieces of data in staging areas (shared_data.hpp). --operations allgather,alltoall

// Largest piece of data, bytes, that all ranks exchange; of two ranks, pair_piece_bytes. Two ranks
// write where the other has read. That is slow only at a piece's end, where the reader's prefetcher
// has taken lines beyond it: so their pieces are larger.
inline constexpr std::size_t piece_bytes = 16384;
inline constexpr std::size_t pair_piece_bytes = 131072;
// At or above this size, bytes, two ranks use the wide staging area and its piece size.
inline constexpr std::size_t wide_from_bytes = 262144;
inline constexpr std::size_t wide_piece_bytes = 262144;
// Pieces of data that moves from or to a root, bytes: the first of these whose data is at most as
// long. A reader begins when the first piece is there, and each piece costs an arrival.
struct FlowPiece {
    std::size_t data_bytes;
    std::size_t piece_bytes;
};
inline constexpr FlowPiece flow_pieces[] = {{16384, 4096}, {65536, 8192}, {~std::size_t{0}, 16384}};
// At or above this size, bytes, data of two ranks may be passed instead of pushed
// (copy_methods.hpp).
inline constexpr std::size_t passing_from_bytes = 32768;

// --- Sizes of staging areas (staging.hpp). --operations all --sizes 4K,64K,256K,1M

// *_rank_bytes: size per rank and phase. Each has one line beyond a round number, so that blocks of
// different ranks don't compete for the same cache sets. pair_rank_bytes replaces large_rank_bytes
// for two ranks, which exchange data in larger pieces. *_area_bytes: limit of a whole area, which a
// node of many ranks can spare for one communicator. (Wide areas leave half of the node's units to
// others.)
namespace staging {
inline constexpr std::size_t small_rank_bytes = (std::size_t{4} << 10) + node::cache_line_bytes;
inline constexpr std::size_t small_area_bytes = std::size_t{4} << 20;
inline constexpr std::size_t large_rank_bytes = (std::size_t{64} << 10) + node::cache_line_bytes;
inline constexpr std::size_t pair_rank_bytes = (std::size_t{128} << 10) + node::cache_line_bytes;
inline constexpr std::size_t wide_rank_bytes = (std::size_t{256} << 10) + node::cache_line_bytes;
inline constexpr std::size_t large_area_bytes = std::size_t{17} << 20;
// An area larger than this returns its memory to the node; a smaller one's units stay committed.
inline constexpr std::uint64_t kept_bytes = 256 << 10;
} // namespace staging

// --- Reductions (shared_reductions.cpp). --operations reduce,allreduce

// Bytes of operands that are combined at a time, while they are in the nearest cache.
inline constexpr std::size_t fold_bytes = 4096;
// From about this size, bytes, ranks that have a processor each combine a part each.
inline constexpr std::size_t parts_from_bytes = 8192;
// Bytes that a rank combines between two of its arrivals.
inline constexpr std::size_t part_bytes = 65536;
// Reductions of two ranks up to this size, bytes, have one piece per phase, at least a short
// block's size.
inline constexpr std::size_t reduce_round_bytes = 65536;
// Their largest piece, bytes: pieces stay in the nearer caches.
inline constexpr std::size_t reduce_piece_bytes = 65536;
// Pieces of a reduction to a root that fill the pipeline: two per phase.
inline constexpr std::size_t pipeline_pieces = 2 * std::size_t{collective_phases};
// Bytes of two ranks' operands that are combined at a time; distance of the prefetch.
inline constexpr std::size_t stream_bytes = 512;
inline constexpr std::size_t operand_ahead_bytes = 2048;

// --- From buffer to buffer (shared_direct.hpp). all operations, with --ranks threads; sizes in
// bytes

// Below this size shared memory is faster, which needs one arrival of each rank.
inline constexpr MPI_Count direct_from_bytes = 8 * 1024;
// Each of two ranks waits for only one other.
inline constexpr MPI_Count direct_pair_from_bytes = 3 * 1024;
// Ranks that share processors must all be scheduled once more.
inline constexpr MPI_Count direct_crowded_from_bytes = 64 * 1024;
// In an all-to-all of this many ranks, the blocks cost so much that scheduling is negligible.
inline constexpr int direct_many_ranks = 64;

// --- Algorithms over messages (choice.cpp). On an intercommunicator, or beyond choice.cpp's table

// Up to these sizes, bytes, use the algorithm with the fewest messages, above them that with the
// fewest bytes.
inline constexpr MPI_Count short_allreduce_bytes = 16 * 1024;
inline constexpr MPI_Count short_allgather_bytes = 64 * 1024; // of all blocks
inline constexpr MPI_Count short_gather_bytes = 4 * 1024;     // of gathers and scatters
inline constexpr MPI_Count short_reduce_scatter_bytes = 16 * 1024;
// Ranks up to which a chain or a fan is as quick as a tree.
inline constexpr int few_ranks = 4;
// Peers of an all-to-all whose messages are under way at once: enough to wait seldom, few enough to
// bound what arrives before it is wanted.
inline constexpr int batch_peers = 64;
// Bytes that a rank copies for itself between two rounds of progress, since peers wait for room, or
// for data.
inline constexpr MPI_Count bytes_between_looks = 128 * 1024;

} // namespace warren::coll
