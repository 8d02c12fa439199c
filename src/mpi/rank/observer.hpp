// Observer: who is told of events of a rank, when there is one (mpi/tool/events.hpp).
//
// The calls come from the middle of the library's work: an observer only takes notes, and tells the
// program later, when deliver() is called. Thread rule: under the rank's lock; deliver() without
// it.
#pragma once

#include <atomic>
#include <cstdint>

namespace warren {

class Observer {
  public:
    // A message has come before its receive; `length`, `queued_bytes`: of the queue, with it.
    struct Arrival {
        std::uint32_t source; // rank of the node
        std::int32_t tag;
        std::uint32_t context;
        std::uint64_t bytes;
        std::uint32_t length;
        std::uint64_t queued_bytes;
    };
    virtual void message_kept(const Arrival& arrival) = 0;
    // A wait of `duration_ns` in a call has ended.
    virtual void waited(std::uint32_t call, std::int32_t peer, std::int32_t tag,
                        std::uint64_t duration_ns) = 0;
    // A thread has waited so long for the rank's lock.
    virtual void lock_waited(std::uint64_t duration_ns) = 0;

    // Whether deliver() has something to do.
    bool has_news() const { return news_.load(std::memory_order_relaxed) != 0; }
    virtual void deliver() = 0;

  protected:
    ~Observer() = default;

    std::atomic<std::uint32_t> news_{0};
};

} // namespace warren
