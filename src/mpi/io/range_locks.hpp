// RangeLocks: locks of byte ranges of files, in the node segment.
//
// Who rewrites bytes that it does not own (data sieving: read a block, change some of it, write it
// back) must exclude all other writers of the block, through whatever file handle of the job, else
// their data is lost. Atomic mode also excludes readers. A file has one of lock_blocks blocks, by
// its device and number; files that share a block only share its slots.
//
// A shared lock, which every plain write takes, costs two atomic instructions while nobody holds
// or wants an exclusive one of the block. Otherwise a lock takes a slot with its range. An
// exclusive lock that has to wait takes its slot at once, so that shared ones, which could follow
// each other without end, wait for it.
//
// Each slot and each passing lock names its rank. When others outlive a killed rank (mpiexec
// --keep-going), they take its locks back: what it wrote last may be half there.
// Thread rule: any thread of any rank, also without the rank's lock. A holder never waits for MPI,
// nor for another lock of a file.
// Invariants
//  1. No held slot's range overlaps that of an exclusive held slot of the same file.
//  2. An exclusive lock is given while nobody passes, and nobody passes while one is wanted.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/error.hpp"
#include "mpi/io/segment_regions.hpp"
#include "mpi/job/segment.hpp"
#include "mpi/rma/shared_mutex.hpp"

namespace warren::io {

struct LockSlot {
    enum State : std::uint32_t { shared, exclusive, awaited }; // awaited: an exclusive lock

    std::atomic<std::uint64_t> file; // 0: free; stored last, and cleared first
    std::uint64_t begin;
    std::uint64_t end;
    State state;
    std::uint32_t owner; // rank on the node

    bool overlaps(std::uint64_t from, std::uint64_t to) const { return begin < to && from < end; }
};

inline constexpr std::size_t lock_slots = 96;

struct LockBlock {
    rma::SharedMutex mutex; // of the slots
    std::atomic<std::uint32_t> changes;
    std::atomic<std::uint32_t> sleepers;
    // Exclusive locks held or waited for. (One more for a rank that was killed before it had a
    // slot: then shared locks take slots until the job ends.)
    std::atomic<std::uint32_t> exclusive_wanted;
    alignas(node::cache_line_bytes) LockSlot slots[lock_slots];

    // Shared locks without a slot, by their rank on the node: counters behind the block.
    std::atomic<std::uint32_t>& passing(std::uint32_t rank) {
        return reinterpret_cast<std::atomic<std::uint32_t>*>(this + 1)[rank];
    }
};
static_assert(sizeof(LockBlock) == lock_block_bytes);
static_assert(sizeof(std::atomic<std::uint32_t>) == lock_counter_bytes);

class RangeLocks {
  public:
    RangeLocks() = default;
    // Locks of the file with that number on that device. `owner`: the rank on the node; `spins`:
    // ranks have a processor each.
    RangeLocks(const node::Segment& segment, std::uint64_t device, std::uint64_t number,
               std::uint32_t owner, bool spins);

    // Commits the file's block: once by anybody, before locks are taken.
    static Error commit(const node::Segment& segment, std::uint64_t device, std::uint64_t number);

    static constexpr int passed = -1;
    // Returns what unlock() is to be given.
    int lock_shared(std::uint64_t begin, std::uint64_t end) const {
        own_passing().fetch_add(1, std::memory_order_seq_cst);
        // Both orders pair with lock_slot()'s: either this sees the wish for an exclusive lock, or
        // who has it sees this one pass.
        if (block_->exclusive_wanted.load(std::memory_order_seq_cst) == 0) [[likely]] {
            return passed;
        }
        end_pass();
        return lock_slot(begin, end, LockSlot::shared);
    }
    int lock_exclusive(std::uint64_t begin, std::uint64_t end) const {
        block_->exclusive_wanted.fetch_add(1, std::memory_order_seq_cst);
        return lock_slot(begin, end, LockSlot::exclusive);
    }
    void unlock(int slot) const {
        if (slot == passed) [[likely]] {
            end_pass();
        } else {
            unlock_slot(slot);
        }
    }

  private:
    static constexpr int none = -1;

    std::atomic<std::uint32_t>& own_passing() const { return block_->passing(user_.rank); }
    void end_pass() const {
        if (own_passing().fetch_sub(1, std::memory_order_seq_cst) == 1 &&
            block_->exclusive_wanted.load(std::memory_order_seq_cst) != 0) [[unlikely]] {
            announce_change();
        }
    }
    int lock_slot(std::uint64_t begin, std::uint64_t end, LockSlot::State wanted) const;
    bool try_slot(std::uint64_t begin, std::uint64_t end, LockSlot::State wanted, int& slot) const;
    bool anybody_passes() const;
    bool has_ended(std::uint32_t rank) const;
    void take_back(LockSlot& slot) const;
    void unlock_slot(int slot) const;
    void announce_change() const;

    LockBlock* block_ = nullptr;
    std::uint64_t file_ = 0;
    rma::MutexUser user_ = {};
};

// Holds a lock for a block of code, unless `locks` is null.
class RangeGuard {
  public:
    enum class Mode : std::uint8_t { shared, exclusive };
    RangeGuard(const RangeLocks* locks, Mode mode, std::uint64_t begin, std::uint64_t end)
        : locks_(locks) {
        if (locks_ != nullptr) {
            slot_ = mode == Mode::shared ? locks_->lock_shared(begin, end)
                                         : locks_->lock_exclusive(begin, end);
        }
    }
    RangeGuard(const RangeGuard&) = delete;
    RangeGuard& operator=(const RangeGuard&) = delete;
    ~RangeGuard() {
        if (locks_ != nullptr) {
            locks_->unlock(slot_);
        }
    }

  private:
    const RangeLocks* locks_;
    int slot_ = 0;
};

} // namespace warren::io
