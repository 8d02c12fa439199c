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
// writes), costs less than a call. Measured with 2 and 4 ranks on cached pages: a call that reads
// takes 0.35 to 0.7 µs, one that writes 0.7 to 1.5 µs in the system's memory files and 3 to 12 µs
// on ext4, where ranks wait for each other; sieving takes 0.4 to 1.4 µs a KiB.
inline constexpr std::int64_t sieved_read_stride = 1536;
inline constexpr std::int64_t sieved_write_stride = 8 << 10;
inline constexpr std::int64_t sieved_memory_write_stride = 2 << 10; // in the system's memory files
// A call to another node takes longer.
inline constexpr std::int64_t sieved_remote_stride = 32 << 10;
// Blocks up to so far apart, if they are read one by one, are asked for ahead where the disk would
// be waited for at each.
inline constexpr std::int64_t read_ahead_stride = 32 << 10;

// Reads that the system would copy slowly (page_copies.hpp), of at least so many bytes, go by a
// buffer of this size.
inline constexpr std::int64_t least_bounced_bytes = 8 << 10;
inline constexpr std::size_t bounce_bytes = std::size_t{64} << 10;

// Records of an atomic write of more data than the write log holds go by calls of so many bytes at
// most, which the kernel does not divide by itself.
inline constexpr std::uint64_t largest_logged_call = std::uint64_t{1} << 30;

// Pieces of memory that are at least so long are handed to the system as they are; others are
// packed.
inline constexpr std::int64_t direct_piece_bytes = 4 << 10;
inline constexpr std::size_t pieces_at_once = 64;

// Collective access. A half of the staging area (cb_buffer_size sets it), and what a half is
// aligned to in the file.
inline constexpr std::uint64_t staging_half_bytes = std::uint64_t{2} << 20;
inline constexpr std::uint64_t largest_staging_half = std::uint64_t{64} << 20;
inline constexpr std::uint64_t block_bytes = 4096;
// Blocks of the file that are at least so long are not staged: writing them one by one, ranks wait
// for each other; reading, they don't, and save a copy. On other nodes' file systems the number of
// calls counts either way.
inline constexpr std::uint64_t unstaged_block_bytes = 128 << 10;
inline constexpr std::uint64_t unstaged_read_bytes = 16 << 10;
// Nor is data that fills less than this part of the bytes from its first to its last.
inline constexpr std::uint64_t staged_density = 4;
// Nor so little data that the barriers would cost more.
inline constexpr std::uint64_t staged_bytes = 16 << 10;

// Pairs of buffers that a file keeps for threads that share a rank: as many as access it at once.
inline constexpr std::size_t spare_scratches = 2;

// Threads of a rank, or of all fibres of a process, that carry out nonblocking accesses.
inline constexpr int helper_threads = 2;

} // namespace warren::io
