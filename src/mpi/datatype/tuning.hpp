// Sizes and limits of datatypes' layouts and copies, with their reasons. Changing one changes
// speed, never correctness. bench/halo measures copies of blocks. Machine: 2 cores of a virtual
// EPYC.
//
// Thread rule: constants.
#pragma once

#include <cstddef>

#include "mpi.h"

namespace warren::datatype {

// --- Copies of blocks

// Data that touches more memory than this bypasses the caches, which can't hold it; but not in
// blocks that are smaller than least_streamed_block on average: they take a third longer that way,
// and their lines may hold data that is needed next, as a grid's halo and the face beside it.
inline constexpr MPI_Count cache_bytes = MPI_Count{8} << 20;
inline constexpr MPI_Count least_streamed_block = 128;
// Loops over blocks of at most this size are unrolled; larger ones are no faster so.
inline constexpr std::size_t largest_unrolled_block = 32;
// At this stride and beyond, fewer than eight blocks are on a page, and the hardware's prefetcher,
// which stops at the end of the page, is of no use.
inline constexpr MPI_Count far_stride = 512;
// Blocks that are prefetched ahead. Strides that are multiples of second_level_way map all blocks
// to one set of the second-level cache, where more than few_blocks_ahead would displace each other.
inline constexpr MPI_Count second_level_way = 65536;
inline constexpr MPI_Count blocks_ahead_usually = 48;
inline constexpr MPI_Count few_blocks_ahead = 8;
// Prefetch distance in a contiguous source, such as a message, which may be in another core's
// cache.
inline constexpr std::size_t ahead_bytes = 2048;
// Bytes at the beginning of the next large block that are prefetched.
inline constexpr std::size_t prefetched_beginning = 1024;

// --- Copies through a buffer that stays in the first-level cache

// Layouts whose blocks are all smaller than coarse_bytes are copied through a window; the others
// block by block.
inline constexpr MPI_Count window_bytes = 4096;
inline constexpr MPI_Count coarse_bytes = 256;
// An array of structures is copied field by field in portions of this size, if the structure has at
// most field_limit fields.
inline constexpr MPI_Count portion_bytes = 8192;
inline constexpr std::size_t field_limit = 32;

// --- Layouts

// A type of at most this many steps is copied into the body that uses it, where its blocks may join
// others; a larger one is referred to.
inline constexpr std::size_t inline_steps = 4;
// Limits of lists of places, in order: at most this many evenly spaced blocks before an uneven one
// may join a list instead of forming a loop. A list begins with at least this many steps (fewer are
// the fields of a structure) and has blocks of one size. A larger block is divided into at most
// this many pieces of that size.
inline constexpr MPI_Count chance_repeats = 4;
inline constexpr std::size_t list_steps = 8;
inline constexpr MPI_Count list_ratio = 4;
// A type that needs more steps or places than this is refused: it would take half a gigabyte.
inline constexpr std::size_t step_limit = std::size_t{1} << 23;
inline constexpr std::size_t place_limit = std::size_t{1} << 26;

} // namespace warren::datatype
