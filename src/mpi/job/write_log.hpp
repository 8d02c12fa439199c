// Write log: what a rank is about to write to a file, in the node segment, so that the write can be
// finished when the rank is killed in its middle.
//
// The kernel writes a file page by page, and gives up between pages when the process is killed. A
// rank therefore enters a write that has to be whole (mpi/io/logged_write.hpp), marks the entry
// valid, writes, and takes the mark away. When the rank has ended, its mpiexec writes what a valid
// entry holds once more (launch/mpiexec/unfinished_writes.hpp).
//
// A rank has some entries, because several of its threads may write at once. The first page of an
// entry is a WriteEntry with the file's path; behind it lie the pieces, each a WrittenPiece with
// its data, whole words long. Thread rule: the threads of the rank take turns at each entry by its
// word of `turns`. Invariants
//  1. While an entry is valid, the rest of it does not change, and its rank holds an exclusive lock
//     of all its bytes. So the write can be done once more before that lock is taken back.
//  2. Memory of an entry is committed before it is used, from its begin on.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/page.hpp"
#include "base/segment_region.hpp"

namespace warren::node {

// The two helper threads (mpi/io/tuning.hpp) and two threads of the program write at once.
inline constexpr std::uint32_t entries_per_rank = 4;

struct WriteEntry {
    // The first entry has the turns of all entries of the rank, so the others need memory only when
    // a second thread writes. 0: free, 1: taken, 2: also waited for.
    std::atomic<std::uint32_t> turns[entries_per_rank];
    std::uint32_t committed_pages[entries_per_rank]; // whoever has the turn changes it
    std::atomic<std::uint64_t> mark;                 // valid_write, or the entry is none
    std::uint64_t device;                            // the file, as fstat(2) tells
    std::uint64_t number;
    std::uint32_t locks_system; // 1: ranks of other nodes exclude each other by locks of the system
    std::uint32_t path_bytes;   // with a final zero; the path follows this
    std::uint64_t pieces_bytes;
};

struct WrittenPiece {
    std::uint64_t offset; // in the file
    std::uint64_t bytes;  // the data follows
};

inline constexpr std::uint64_t valid_write = 0x6574697277'676f6c; // "logwrite", little-endian
inline constexpr std::uint64_t logged_path_bytes = page_bytes - sizeof(WriteEntry);
// A write is whole up to 64 KiB in up to 500 pieces, and less data in more pieces: most records are
// much smaller, and larger copies would cost more than they are worth.
inline constexpr std::uint64_t logged_data_bytes = 64 << 10;
inline constexpr std::uint64_t logged_pieces_bytes = logged_data_bytes + (12 << 10);
inline constexpr std::uint64_t write_entry_bytes = page_bytes + logged_pieces_bytes;

// Bytes of a piece with its data.
constexpr std::uint64_t logged_bytes(std::uint64_t data_bytes) {
    constexpr std::uint64_t word = sizeof(std::uint64_t);
    return sizeof(WrittenPiece) + (data_bytes + word - 1) / word * word;
}

inline constexpr RegionId<WriteEntry> write_entries{22}; // a unit per entry

constexpr std::uint64_t write_entry_unit(std::uint32_t rank, std::uint32_t entry) {
    return std::uint64_t{rank} * entries_per_rank + entry;
}

} // namespace warren::node
