// Limits and sizes of file access, with their reasons. The machine: 2 cores of a virtual EPYC,
// ext4.
#pragma once

#include <cstddef>
#include <cstdint>

namespace warren::io {

// Offsets in files are at most so large: sums of two never overflow.
inline constexpr std::int64_t largest_offset = (std::int64_t{1} << 62) - 1;
// The end of a file, where it has not been seen.
inline constexpr std::uint64_t no_end = ~std::uint64_t{0};

// Data with gaps is packed into, and sieved in, pieces that stay in the second-level cache's reach.
inline constexpr std::size_t buffer_bytes = std::size_t{1} << 20;
// Hints may ask for larger sieves, up to here.
inline constexpr std::uint64_t largest_sieve = std::uint64_t{64} << 20;

// Blocks of the file that are at least so long are read and written each by a call of the system.
inline constexpr std::int64_t direct_block_bytes = 16 << 10;
// Smaller ones are sieved while the distance from one to the next, which sieving reads (and
// writes), costs less than a call: a call for 4 KiB takes 1 to 6 µs.
inline constexpr std::int64_t sieved_read_stride = 32 << 10;
inline constexpr std::int64_t sieved_write_stride = 32 << 10;

// Pieces of memory that are at least so long are handed to the system as they are; others are
// packed.
inline constexpr std::int64_t direct_piece_bytes = 4 << 10;
inline constexpr std::size_t pieces_at_once = 64;

// Collective access. A half of the staging area (cb_buffer_size sets it), and what a half is
// aligned to in the file.
inline constexpr std::uint64_t staging_half_bytes = std::uint64_t{2} << 20;
inline constexpr std::uint64_t largest_staging_half = std::uint64_t{64} << 20;
inline constexpr std::uint64_t block_bytes = 4096;
// Blocks of the file that are at least so long are not staged.
inline constexpr std::uint64_t unstaged_block_bytes = 128 << 10;
// Nor is data that fills less than this part of the bytes from its first to its last.
inline constexpr std::uint64_t staged_density = 4;
// Nor so little data that the barriers would cost more.
inline constexpr std::uint64_t staged_bytes = 16 << 10;

// Pairs of buffers that a file keeps for threads that share a rank: as many as access it at once.
inline constexpr std::size_t spare_scratches = 2;

// Threads of a rank, or of all fibres of a process, that carry out nonblocking accesses.
inline constexpr int helper_threads = 2;

} // namespace warren::io
