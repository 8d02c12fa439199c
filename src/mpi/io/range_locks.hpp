// RangeLocks: locks of byte ranges of files, in the node segment.
//
// Who rewrites bytes that it does not own (data sieving: read a block, change some of it, write it
// back) must exclude all other writers of the block, through whatever file handle of the job, else
// their data is lost. Atomic mode also excludes readers. A file has one of lock_blocks blocks, by
// its device and number; files that share a block only share its slots.
//
// A shared lock, which every plain write takes, costs two atomic instructions while nobody holds
// or wants an exclusive one of the block. Otherwise a lock takes a slot with its range.
// Thread rule: any thread of any rank, also without the rank's lock. A holder never waits for MPI,
// nor for another lock of a file.
// Invariants
//  1. No slot's range overlaps that of an exclusive slot of the same file.
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
    std::uint64_t file; // 0: free
    std::uint64_t begin;
    std::uint64_t end;
    std::uint32_t exclusive;
    std::uint32_t owner; // rank on the node
};

inline constexpr std::size_t lock_slots = 96;

struct LockBlock {
    rma::SharedMutex mutex; // of the slots
    std::atomic<std::uint32_t> changes;
    std::atomic<std::uint32_t> sleepers;
    std::atomic<std::uint32_t> exclusive_wanted; // exclusive locks held or waited for
    alignas(node::cache_line_bytes) std::atomic<std::uint32_t> passing; // shared ones without slot
    alignas(node::cache_line_bytes) LockSlot slots[lock_slots];
};
static_assert(sizeof(LockBlock) <= lock_block_bytes);

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
        block_->passing.fetch_add(1, std::memory_order_seq_cst);
        // Both orders pair with lock_slot()'s: either this sees the wish for an exclusive lock, or
        // who has it sees this one pass.
        if (block_->exclusive_wanted.load(std::memory_order_seq_cst) == 0) [[likely]] {
            return passed;
        }
        end_pass();
        return lock_slot(begin, end, false);
    }
    int lock_exclusive(std::uint64_t begin, std::uint64_t end) const {
        block_->exclusive_wanted.fetch_add(1, std::memory_order_seq_cst);
        return lock_slot(begin, end, true);
    }
    void unlock(int slot) const {
        if (slot == passed) [[likely]] {
            end_pass();
        } else {
            unlock_slot(slot);
        }
    }

  private:
    void end_pass() const {
        if (block_->passing.fetch_sub(1, std::memory_order_seq_cst) == 1 &&
            block_->exclusive_wanted.load(std::memory_order_seq_cst) != 0) [[unlikely]] {
            announce_change();
        }
    }
    int lock_slot(std::uint64_t begin, std::uint64_t end, bool exclusive) const;
    int try_slot(std::uint64_t begin, std::uint64_t end, bool exclusive) const;
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
