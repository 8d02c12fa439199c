// RankLock: keeps the threads of one rank apart when the program asked for MPI_THREAD_MULTIPLE;
// costs one predicted branch otherwise.
//
// A ticket lock whose waiters sleep: first come, first served, so that a thread that polls in a
// wait and passes the lock on cannot starve the others. Invariant: `serving` is the ticket of the
// holder; the lock is free when serving == next.
#pragma once

#include <atomic>
#include <cstdint>

namespace warren {

class RankLock {
  public:
    // Called once, before a second thread may exist that calls MPI.
    void share() { shared_ = true; }
    bool shared() const { return shared_; }

    void lock() {
        if (shared_) [[unlikely]] {
            acquire();
        }
    }

    void unlock() {
        if (shared_) [[unlikely]] {
            release();
        }
    }

    // Lets the threads that wait have the lock, then takes it again.
    void pass() {
        if (shared_ && next_.load(std::memory_order_relaxed) !=
                           serving_.load(std::memory_order_relaxed) + 1) [[unlikely]] {
            release();
            acquire();
        }
    }

  private:
    void acquire();
    void release();

    bool shared_ = false;
    std::atomic<std::uint32_t> next_{0};
    std::atomic<std::uint32_t> serving_{0};
    std::atomic<std::uint32_t> sleepers_{0};
};

} // namespace warren
