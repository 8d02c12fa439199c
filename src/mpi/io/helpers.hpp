// Helpers: threads of the process that carry out nonblocking file accesses, so that these make
// progress while their rank computes. They are made when there is work, and sleep when there is
// none. Thread ranks have descriptor tables of their own, which a helper shares with the rank that
// has made it, so each rank has helpers of its own; fibres share theirs.
//
// Thread rule: start() by any thread; a job is run by one helper. Invariants
//  1. A helper never waits for MPI and takes no rank's lock.
//  2. A job's state only grows; whoever owns it may end it only when it is `left`, for until then
//     the helper uses the rank's doorbell.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/error.hpp"
#include "mpi/io/transfer.hpp"
#include "mpi/rank/rank.hpp"

namespace warren::io {

class Job {
  public:
    explicit Job(const Rank& rank)
        : header_(rank.header()),
          doorbell_(rank.slot.doorbell),
          pool_(fibres() != nullptr ? 0 : rank.index) {}
    Job(const Job&) = delete;
    Job& operator=(const Job&) = delete;
    virtual ~Job() = default;

    // Hands it to a helper; called by its rank. Without one (the system has no thread to spare) it
    // is run here.
    static void start(Job& job);

    bool finished() const { return state_.load(std::memory_order_acquire) >= is_finished; }
    // Waits for the helper's last step, which is short.
    void await_left() const;

  protected:
    virtual void perform(Scratch& scratch) = 0;

  private:
    friend class Helpers;
    enum : std::uint32_t { is_waiting, is_finished, is_left };

    void run(Scratch& scratch);

    const node::SegmentHeader& header_;
    std::atomic<std::uint32_t>& doorbell_;
    const std::uint32_t pool_; // of helpers
    std::atomic<std::uint32_t> state_{is_waiting};
    Job* next_ = nullptr; // under the helpers' mutex
};

} // namespace warren::io
