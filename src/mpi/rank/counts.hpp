// Counts: what a rank counts of its work, for the tool information interface (mpi/tool).
//
// Counting that would cost a short message an instruction is done only while somebody observes the
// rank (RankLock::observed): the rank then takes the long ways, and those count. Everything else is
// counted always, on ways that are long anyway. Thread rule: changed under the rank's lock, but for
// add_shared(); read by anybody.
#pragma once

#include <atomic>
#include <cstdint>

namespace warren {

class Count {
  public:
    void add(std::uint64_t more) {
        value_.store(value_.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
    }
    // By threads that don't have the rank's lock.
    void add_shared(std::uint64_t more) { value_.fetch_add(more, std::memory_order_relaxed); }
    std::uint64_t read() const { return value_.load(std::memory_order_relaxed); }

  private:
    std::atomic<std::uint64_t> value_{0};
};

// Messages of a kind, and their bytes.
struct MessageCount {
    void add(std::uint64_t its_bytes) {
        messages.add(1);
        bytes.add(its_bytes);
    }
    Count messages;
    Count bytes;
};

struct Counts {
    // While observed
    MessageCount eager; // sent
    MessageCount received;
    Count posted_attempts; // comparisons of messages with posted receives
    Count waits;
    Count waiting_ns;
    MessageCount window_operations;

    // Always
    MessageCount streams; // sent
    MessageCount rendezvous;
    MessageCount direct;
    MessageCount to_self;
    MessageCount unexpected;
    MessageCount fetched; // by the kernel, from the memory of other ranks
    Count fetches_refused;
    Count sleeps;
    Count wakes;
    Count yields;
    Count window_lock_waits;
    Count file_bytes_read;
    Count file_bytes_written;
};

} // namespace warren
