// SharedMutex: a mutex in memory that the ranks of a node share, whose word names its owner.
//
// A critical section is short and never waits for MPI. Whoever finds the mutex taken polls for a
// while if ranks have a processor each, then sleeps. Invariants: the word is 0, or 2 * (owner + 1),
// plus 1 if others may sleep; who clears the last bit wakes one sleeper.
// Thread rule: any thread, of any rank; `owner` is the caller's rank on the node.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/futex.hpp"

namespace warren::rma {

class SharedMutex {
  public:
    void lock(std::uint32_t owner, bool spins) {
        std::uint32_t unheld = 0;
        if (!word_.compare_exchange_strong(unheld, held_by(owner), std::memory_order_acquire))
            [[unlikely]] {
            lock_slowly(owner, spins);
        }
    }
    void unlock() {
        if ((word_.exchange(0, std::memory_order_release) & has_sleepers) != 0) [[unlikely]] {
            futex_wake(word_, 1);
        }
    }

  private:
    static constexpr std::uint32_t has_sleepers = 1;
    static std::uint32_t held_by(std::uint32_t owner) { return (owner + 1) * 2; }
    void lock_slowly(std::uint32_t owner, bool spins);

    std::atomic<std::uint32_t> word_{0};
};
static_assert(sizeof(SharedMutex) == 4);

// Holds a SharedMutex for a block.
class SharedLock {
  public:
    SharedLock(SharedMutex& mutex, std::uint32_t owner, bool spins) : mutex_(mutex) {
        mutex_.lock(owner, spins);
    }
    SharedLock(const SharedLock&) = delete;
    SharedLock& operator=(const SharedLock&) = delete;
    ~SharedLock() { mutex_.unlock(); }

  private:
    SharedMutex& mutex_;
};

} // namespace warren::rma
