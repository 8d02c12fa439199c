// WindowHeap: the memory of a job's windows, behind the node segment in the same memory file.
//
// The file is sparse: it has memory where it has been committed, and what has been freed is given
// back to the node. Nothing has a name, so nothing is left behind when the job ends. The heap's
// table, a list of the extents that windows have, is the first part of it.
// Thread rule: by any rank at any time; the table is under its mutex. Invariants
//  1. Extents are whole pages, in rising order, and don't overlap.
//  2. Memory of an extent that has just been taken is zero once it is committed.
//  3. One store makes an extent part of the list, and one takes it out. So the list is in order at
//     all times, also when a rank is killed in between: then an extent, or a place in the table,
//     is lost until the job ends.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/error.hpp"
#include "base/page.hpp"
#include "mpi/job/segment.hpp"
#include "mpi/rma/shared_mutex.hpp"
#include "mpi/rma/shared_part.hpp"

namespace warren::rma {

class WindowHeap {
  public:
    // Windows of a job that can live at the same time.
    static constexpr std::uint32_t extent_limit = 1 << 16;

    // For one call. `rank`: the caller's, on the node.
    static Error open(const node::Segment& segment, std::uint32_t rank, WindowHeap& heap);

    // Takes an extent of so many bytes of addresses, of which `memory` are to be committed.
    // MPI_ERR_NO_MEM: the node has less memory, the table is full, or files may not be so large.
    Error take(std::uint64_t bytes, std::uint64_t memory, std::uint64_t& offset);
    Error take(std::uint64_t bytes, std::uint64_t& offset) { return take(bytes, bytes, offset); }
    // Gives an extent and its memory back. Mappings of it must not be used any more.
    void give_back(std::uint64_t offset);

    // Commits memory within an extent, so that a lack of it is an error and no signal.
    static Error commit(const node::Segment& segment, std::uint64_t offset, std::uint64_t bytes);

  private:
    // Index + 1 of an entry; 0: none.
    using Link = std::uint32_t;
    struct Extent {
        std::uint64_t offset;
        std::uint64_t bytes;
        std::atomic<Link> next;
    };
    struct Table {
        SharedMutex mutex;
        std::atomic<Link> first; // of the list, in rising order
        std::atomic<Link> free;  // of those that have been given back
        std::uint32_t used;      // entries that have been in the list at any time
        std::uint32_t committed; // entries that have memory here
        Extent extents[extent_limit];
    };
    static constexpr std::uint64_t table_bytes =
        (sizeof(Table) + page_bytes - 1) / page_bytes * page_bytes;

    MutexUser user() const { return {.segment = segment_, .rank = rank_, .spins = false}; }
    Extent& extent(Link link) const { return table_->extents[link - 1]; }
    Error commit_table(std::uint32_t count);

    const node::Segment* segment_ = nullptr;
    std::uint32_t rank_ = 0;
    SharedPart part_;
    Table* table_ = nullptr;
};

} // namespace warren::rma
