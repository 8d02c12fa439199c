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

// After so long a sleeper looks whether a lock's owner has ended: long beside most accesses, and
// short for a program that has lost a rank.
constexpr timespec look_at_owners = {.tv_sec = 0, .tv_nsec = 20'000'000};

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

bool RangeLocks::has_ended(std::uint32_t rank) const {
    return user_.segment->has_ended(rank);
}

// Pairs with lock_shared().
bool RangeLocks::anybody_passes() const {
    const std::uint32_t ranks = user_.segment->ranks();
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        if (block_->passing(rank).load(std::memory_order_seq_cst) != 0 && !has_ended(rank)) {
            return true;
        }
    }
    return false;
}

// Frees a slot. Under the mutex.
void RangeLocks::take_back(LockSlot& slot) const {
    const bool was_wanted = slot.state != LockSlot::shared;
    slot.file.store(0, std::memory_order_release);
    if (was_wanted) {
        block_->exclusive_wanted.fetch_sub(1, std::memory_order_seq_cst);
    }
}

// Whether the lock could be had; then `slot` is its slot. An exclusive lock that has to wait gets a
// slot, too, for the next trials. Under the mutex.
bool RangeLocks::try_slot(std::uint64_t begin, std::uint64_t end, LockSlot::State wanted,
                          int& slot) const {
    const bool waited = slot != none;
    bool conflict = wanted == LockSlot::exclusive && anybody_passes();
    int unused = none;
    for (std::size_t i = 0; i < lock_slots; ++i) {
        LockSlot& other = block_->slots[i];
        std::uint64_t its_file = other.file.load(std::memory_order_acquire);
        if (its_file != 0 && has_ended(other.owner)) [[unlikely]] {
            take_back(other);
            its_file = 0;
        }
        if (its_file == 0) {
            unused = unused == none ? static_cast<int>(i) : unused;
        } else if (its_file == file_ && static_cast<int>(i) != slot && other.overlaps(begin, end)) {
            // Who has waited goes before others who wait.
            conflict = conflict || other.state == LockSlot::exclusive ||
                       (other.state == LockSlot::shared && wanted == LockSlot::exclusive) ||
                       (other.state == LockSlot::awaited && !waited);
        }
    }
    if (waited) {
        block_->slots[slot].state = conflict ? LockSlot::awaited : wanted;
        return !conflict;
    }
    if (unused == none || (conflict && wanted == LockSlot::shared)) {
        return false;
    }
    LockSlot& own = block_->slots[unused];
    own.begin = begin;
    own.end = end;
    own.state = conflict ? LockSlot::awaited : wanted;
    own.owner = user_.rank;
    own.file.store(file_, std::memory_order_release);
    slot = unused;
    return !conflict;
}

int RangeLocks::lock_slot(std::uint64_t begin, std::uint64_t end, LockSlot::State wanted) const {
    int slot = none;
    for (int poll = 0;; ++poll) {
        std::uint32_t seen;
        {
            const rma::SharedLock lock(block_->mutex, user_);
            seen = block_->changes.load(std::memory_order_seq_cst);
            if (try_slot(begin, end, wanted, slot)) {
                return slot;
            }
        }
        if (user_.spins && poll < polls_of_range) {
            spin_pause();
            continue;
        }
        // Pairs with announce_change(): it sees this sleeper, or the sleep sees the change.
        block_->sleepers.fetch_add(1, std::memory_order_seq_cst);
        futex_wait(block_->changes, seen, &look_at_owners);
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
        LockSlot& own = block_->slots[slot];
        WARREN_INVARIANT(own.file.load(std::memory_order_relaxed) == file_ &&
                             own.owner == user_.rank,
                         "range locks: a slot is given back by its owner");
        take_back(own);
    }
    announce_change();
}

} // namespace warren::io
