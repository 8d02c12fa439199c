// RankLock: keeps the threads of one rank apart when the program asked for MPI_THREAD_MULTIPLE;
// costs one predicted branch otherwise.
//
// The lock is not fair: the first thread that asks while it is free gets it. Handing the lock to
// the thread that has waited longest would cost a switch of threads each time when threads share a
// processor. A thread that polls holds the lock most of the time and would starve the others, so it
// calls pass(), and only one thread of a rank polls (ThreadWaits). Invariants: `word_` is free,
// held, or held with sleepers, who are woken one at a time by the release; `wanted_` counts the
// threads that are in acquire_slowly. It is also where the shortest ways of the library look once
// whether they are open: closed() while threads share the rank or a tool observes it.
#pragma once

#include <atomic>
#include <cstdint>

#include "mpi/rank/counts.hpp"
#include "mpi/rank/observer.hpp"

namespace warren {

class RankLock {
  public:
    // Called once, before a second thread may exist that calls MPI.
    void share(std::uint32_t processors) {
        shared_ = true;
        closed_ = true;
        guarded_ = true;
        spins_ = processors > 1;
    }
    bool shared() const { return shared_; }

    // Whether the ways are closed that neither share the rank nor count. (Not atomic, so that to
    // ask is one instruction: it changes while one thread calls MPI, and stays when threads share.)
    bool closed() const { return closed_; }
    bool observed() const { return observed_.load(std::memory_order_relaxed); }
    // Without a tool, figures that only tools ask for are not counted for a profile.
    bool observed_by_tool() const { return observed_by_tool_.load(std::memory_order_relaxed); }
    void observe(bool on, bool by_tool) {
        observed_.store(on, std::memory_order_relaxed);
        observed_by_tool_.store(by_tool, std::memory_order_relaxed);
        if (!shared_) {
            closed_ = on;
        }
    }
    // Whether calls have more to do at their begin and end than nothing: the lock is to be taken,
    // or the call recorded (Profile). Stays as it is once the rank's calls have begun, but for
    // share().
    bool guarded() const { return guarded_; }
    void guard() { guarded_ = true; }
    // Who is told of events; null: nobody. Changed under the lock.
    std::atomic<Observer*> observer{nullptr};
    Count waits; // threads that had to wait for the lock

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

    // Whether another thread waits for the lock, which this one holds.
    bool wanted() const { return wanted_.load(std::memory_order_relaxed) != 0; }
    // Lets one that waits have the lock, then takes it again.
    void pass();

  private:
    enum : std::uint32_t { unheld, held, held_with_sleepers };

    void acquire() {
        std::uint32_t seen = unheld;
        if (!word_.compare_exchange_strong(seen, held, std::memory_order_acquire)) [[unlikely]] {
            acquire_slowly();
        }
    }
    void acquire_slowly();
    void release();

    bool shared_ = false;
    bool closed_ = false;
    bool guarded_ = false;
    std::atomic<bool> observed_{false};
    std::atomic<bool> observed_by_tool_{false};
    bool spins_ = false; // more than one processor: the holder may be running while another waits
    std::atomic<std::uint32_t> word_{unheld};
    std::atomic<std::uint32_t> wanted_{0};
};

} // namespace warren
