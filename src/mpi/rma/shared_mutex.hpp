// SharedMutex: a mutex in memory that the ranks of a node share, whose word names its owner.
//
// A critical section is short and never waits for MPI. Whoever finds the mutex taken polls for a
// while if ranks have a processor each, then sleeps. Whoever waits for a rank that has ended
// (mpiexec --keep-going) takes the mutex over, and hears that what it guards may be half changed.
// Invariants: the word is 0, or 1 + its owner; an owner's word is changed by it alone until it has
// ended; who sleeps has said so, and who has slept says that others may; who looks clears that
// and wakes one.
// An owner clears the word by a plain store and then looks for sleepers, because another atomic
// instruction would take as long as the whole critical section. Its look may overtake the store,
// so it may miss one who goes to sleep at this instant. All sleeps therefore have a limit.
// Thread rule: any thread, of any rank.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/futex.hpp"
#include "mpi/job/segment.hpp"

namespace warren::rma {

// Who wants a mutex.
struct MutexUser {
    const node::Segment* segment;
    std::uint32_t rank; // on the node
    bool spins;         // ranks have a processor each
};

class SharedMutex {
  public:
    // The rank that it has been taken over from, because it has ended; nobody: it was free.
    int lock(const MutexUser& user) {
        std::uint32_t unheld = 0;
        if (!word_.compare_exchange_strong(unheld, held_by(user.rank), std::memory_order_acquire))
            [[unlikely]] {
            return lock_slowly(user);
        }
        return nobody;
    }
    void unlock() {
        word_.store(0, std::memory_order_release);
        std::atomic_signal_fence(std::memory_order_seq_cst); // the compiler keeps the order
        if (has_sleepers_.load(std::memory_order_relaxed) != 0) [[unlikely]] {
            wake();
        }
    }

    static constexpr int nobody = -1;
    // The rank that holds it and has ended.
    int ended_owner(const node::Segment& segment) const {
        return ended_owner_of(word_.load(std::memory_order_relaxed), segment);
    }

  private:
    static constexpr std::uint32_t held_by(std::uint32_t rank) { return rank + 1; }
    static int ended_owner_of(std::uint32_t holder, const node::Segment& segment) {
        return holder != 0 && segment.has_ended(holder - 1) ? static_cast<int>(holder) - 1 : nobody;
    }
    int lock_slowly(const MutexUser& user);
    void wake();

    std::atomic<std::uint32_t> word_{0};
    std::atomic<std::uint32_t> has_sleepers_{0};
};
static_assert(sizeof(SharedMutex) == 8);

// Holds a SharedMutex for a block.
class SharedLock {
  public:
    SharedLock(SharedMutex& mutex, const MutexUser& user)
        : mutex_(mutex), owner_before_(mutex.lock(user)) {}
    SharedLock(const SharedLock&) = delete;
    SharedLock& operator=(const SharedLock&) = delete;
    ~SharedLock() { mutex_.unlock(); }

    // The owner that the mutex has been taken over from, on the node: it has ended, and may have
    // left a change half done. SharedMutex::nobody: there is none.
    int taken_over_from() const { return owner_before_; }

  private:
    SharedMutex& mutex_;
    const int owner_before_;
};

} // namespace warren::rma
