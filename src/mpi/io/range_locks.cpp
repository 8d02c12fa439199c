#include "mpi/io/range_locks.hpp"

#include <cerrno>
#include <climits>
#include <cstring>

#include "base/futex.hpp"
#include "base/invariant.hpp"
#include "mpi.h"

namespace warren::io {

namespace {

// Looks at a range that is locked for some microseconds, before a sleep.
constexpr int polls_of_range = 400;

std::uint64_t key_of(std::uint64_t device, std::uint64_t number) {
    const std::uint64_t key = (device * 0x9e3779b97f4a7c15) ^ (number * 0xc2b2ae3d27d4eb4f);
    return key != 0 ? key : 1;
}

std::uint64_t block_of(std::uint64_t key) {
    return (key ^ (key >> 32)) % lock_blocks;
}

} // namespace

RangeLocks::RangeLocks(const node::Segment& segment, std::uint64_t device, std::uint64_t number,
                       std::uint32_t owner, bool spins)
    : file_(key_of(device, number)), user_{.segment = &segment, .rank = owner, .spins = spins} {
    block_ = reinterpret_cast<LockBlock*>(segment.unit(range_lock_blocks, block_of(file_)));
}

Error RangeLocks::commit(const node::Segment& segment, std::uint64_t device, std::uint64_t number) {
    if (!segment.commit_units(range_lock_blocks, block_of(key_of(device, number)), 1)) {
        return fail(MPI_ERR_NO_MEM, "the node has no memory for the locks of a file: %s",
                    std::strerror(errno));
    }
    return {};
}

// Under the mutex. Negative: it has to wait.
int RangeLocks::try_slot(std::uint64_t begin, std::uint64_t end, bool exclusive) const {
    // Pairs with lock_shared().
    if (exclusive && block_->passing.load(std::memory_order_seq_cst) != 0) {
        return -1;
    }
    int unused = -1;
    for (std::size_t i = 0; i < lock_slots; ++i) {
        const LockSlot& slot = block_->slots[i];
        if (slot.file == 0) {
            unused = unused < 0 ? static_cast<int>(i) : unused;
        } else if (slot.file == file_ && slot.begin < end && begin < slot.end &&
                   (exclusive || slot.exclusive != 0)) {
            return -1;
        }
    }
    if (unused >= 0) {
        block_->slots[unused] = {.file = file_,
                                 .begin = begin,
                                 .end = end,
                                 .exclusive = exclusive ? 1U : 0U,
                                 .owner = user_.rank};
    }
    return unused;
}

int RangeLocks::lock_slot(std::uint64_t begin, std::uint64_t end, bool exclusive) const {
    for (int poll = 0;; ++poll) {
        std::uint32_t seen;
        {
            const rma::SharedLock lock(block_->mutex, user_);
            seen = block_->changes.load(std::memory_order_seq_cst);
            const int slot = try_slot(begin, end, exclusive);
            if (slot >= 0) {
                return slot;
            }
        }
        if (user_.spins && poll < polls_of_range) {
            spin_pause();
            continue;
        }
        // Pairs with announce_change(): it sees this sleeper, or the sleep sees the change.
        block_->sleepers.fetch_add(1, std::memory_order_seq_cst);
        futex_wait(block_->changes, seen);
        block_->sleepers.fetch_sub(1, std::memory_order_relaxed);
    }
}

void RangeLocks::announce_change() const {
    block_->changes.fetch_add(1, std::memory_order_seq_cst);
    if (block_->sleepers.load(std::memory_order_seq_cst) != 0) {
        futex_wake(block_->changes, INT_MAX);
    }
}

void RangeLocks::unlock_slot(int slot) const {
    {
        const rma::SharedLock lock(block_->mutex, user_);
        LockSlot& its = block_->slots[slot];
        WARREN_INVARIANT(its.file == file_ && its.owner == user_.rank,
                         "range locks: a slot is given back by its owner");
        if (its.exclusive != 0) {
            block_->exclusive_wanted.fetch_sub(1, std::memory_order_seq_cst);
        }
        its.file = 0;
    }
    announce_change();
}

} // namespace warren::io
