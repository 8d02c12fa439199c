// Control block of a window: what its ranks share beside the data. It begins the window's extent of
// the heap, and has a line of cache lines per rank.
//
// Each node of a window has a block of its own, with a line for each rank of the window. In the
// lines of ranks of other nodes is what has been told of their memory, and their places in the
// queues of locks of this node.
//
// Thread rule: each member says who writes it when. Invariants
//  1. What describes the ranks' memory is constant from the end of the window's creation on.
//  2. All is zero when the extent has been taken.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "mpi/job/segment.hpp"
#include "mpi/rma/offer.hpp"
#include "mpi/rma/regions.hpp"
#include "mpi/rma/shared_mutex.hpp"

namespace warren::rma {

// The lock of a rank's part of a window (MPI_Win_lock), see lock.hpp.
struct LockWord {
    // Who holds it: see WindowLock.
    std::atomic<std::uint64_t> word;
    SharedMutex queue_mutex;
    // The ranks that wait, in order: 1 + rank in the window's communicator, 0: none. Under the
    // mutex.
    std::uint32_t first;
    std::uint32_t last;
    // 1 + who has ended while it changed the queue: the lock is lost. Written before the word.
    std::atomic<std::uint32_t> lost_by;
};

enum class WaiterState : std::uint32_t { queued, next, granted };

// A rank that waits for a lock: it is in one queue at most.
struct LockWaiter {
    std::uint32_t next; // in the queue: as `first` above
    std::uint32_t exclusive;
    std::uint32_t busy; // a thread of the rank waits; under the rank's lock
    std::atomic<WaiterState> state;
};

struct RankControl {
    // Constant after the window's creation. Where its memory begins: from the window's extent on,
    // of windows that own their memory; else, and of ranks of other nodes, in the address space of
    // its process.
    alignas(node::cache_line_bytes) std::uint64_t place;
    std::uint64_t size; // that loads and stores may reach: 0 of ranks of other nodes
    std::int64_t displacement_unit;
    std::uint32_t process;         // ranks with the same share an address space
    std::uint32_t alignment_shift; // of `place`, in a window that owns its memory
    std::uint64_t whole_size;

    static constexpr std::uint32_t of_other_node = 0xffffffff; // in place of a process
    bool is_remote() const { return process == of_other_node; }

    alignas(node::cache_line_bytes) LockWord lock;

    // Held for each accumulate operation on this rank's memory.
    alignas(node::cache_line_bytes) SharedMutex accumulate_mutex;
    LockWaiter waiter; // of this rank
    // Shared locks of this window that this rank holds or waits for.
    std::atomic<std::uint32_t> shared_locks;

    RegionLine regions; // of a dynamic window
    OfferBox offer;     // of this rank, as an origin
};

// A bit for each rank of a window.
constexpr std::uint64_t words_of_bits(std::uint64_t ranks) {
    return (ranks + 63) / 64;
}

// The places in a control block.
class ControlBlock {
  public:
    ControlBlock() = default;
    ControlBlock(std::byte* base, int ranks)
        : base_(base), ranks_(static_cast<std::uint32_t>(ranks)) {}

    static constexpr std::uint64_t bytes(std::uint64_t ranks) {
        return ranks * (sizeof(RankControl) + bit_line_bytes(ranks));
    }

    std::byte* base() const { return base_; }
    RankControl& rank(int rank) const { return reinterpret_cast<RankControl*>(base_)[rank]; }
    // A bit for each rank that has posted its window to `origin` (MPI_Win_post), until that one
    // starts its epoch.
    std::atomic<std::uint64_t>* posts(int origin) const { return bits(origin, 0); }
    // A bit for each rank that has completed its epoch to `target` (MPI_Win_complete), until that
    // one's exposure ends.
    std::atomic<std::uint64_t>* completions(int target) const { return bits(target, 1); }

  private:
    // Both rows of bits of a rank are in cache lines of its own, which nobody but it polls.
    static constexpr std::uint64_t bit_line_bytes(std::uint64_t ranks) {
        const std::uint64_t both = 2 * words_of_bits(ranks) * sizeof(std::uint64_t);
        return (both + node::cache_line_bytes - 1) / node::cache_line_bytes *
               node::cache_line_bytes;
    }
    std::atomic<std::uint64_t>* bits(int rank, std::uint64_t row) const {
        return reinterpret_cast<std::atomic<std::uint64_t>*>(base_ + ranks_ * sizeof(RankControl) +
                                                             static_cast<std::uint64_t>(rank) *
                                                                 bit_line_bytes(ranks_)) +
               row * words_of_bits(ranks_);
    }

    std::byte* base_ = nullptr;
    std::uint32_t ranks_ = 0;
};

} // namespace warren::rma
