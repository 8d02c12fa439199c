// LostPeers: ends what waits for processes that have ended while others go on (mpiexec
// --keep-going), with MPI_ERR_PROC_ABORTED.
//
// mpiexec writes into the segment that a process has ended, and rings all ranks. What that process
// has sent stands in queues by then. So a look only notes new ends; when the next one comes, the
// rank has found nothing more to move since, and what still waits for those does so in vain.
// Invariant: a process counts as lost only if a look has noted its end, and progress has found
// nothing since then. Thread rule: under the rank's lock.
#pragma once

#include <cstdint>
#include <vector>

#include "mpi/message/core.hpp"
#include "mpi/message/receiver.hpp"
#include "mpi/message/withdrawals.hpp"

namespace warren::message {

class LostPeers;

// The room above knows communicators: whether all processes are lost that could send a message
// which a receive with this envelope takes; `by_own`: this process could, too. Null: nobody knows.
struct Senders {
    void* owner = nullptr;
    bool (*are_lost)(void* owner, const Envelope& envelope, bool by_own,
                     const LostPeers& lost) = nullptr;
};

class LostPeers {
  public:
    LostPeers(Core& core, Receiver& receiver, Withdrawals& withdrawals, Senders senders)
        : core_(core), receiver_(receiver), withdrawals_(withdrawals), senders_(senders) {}

    // After progress that has found nothing, and before a sleep. True: waits have ended, or may
    // end soon, and are to look again.
    bool look() {
        const std::uint32_t ended = core_.rank.header().ended_ranks.load(std::memory_order_acquire);
        return ended != 0 && look_at(ended);
    }
    // Whether a call that waits for this message does so in vain.
    bool never_comes(const Envelope& envelope) const {
        return settled_ && are_lost(envelope, false);
    }
    bool is_lost(std::uint32_t endpoint) const {
        return endpoint < ended_.size() && ended_[endpoint];
    }

  private:
    bool look_at(std::uint32_t ended);
    void note(std::uint32_t ended);
    bool are_lost(const Envelope& envelope, bool by_own) const {
        return senders_.are_lost != nullptr &&
               senders_.are_lost(senders_.owner, envelope, by_own, *this);
    }
    bool waits_in_vain(const Request& request) const;
    void end(Request& request);

    Core& core_;
    Receiver& receiver_;
    Withdrawals& withdrawals_;
    const Senders senders_;
    std::uint32_t noted_ = 0; // ends
    bool settled_ = false;    // progress has found nothing since
    std::vector<bool> ended_; // by endpoint: whose end has been noted
};

// Nothing is to be arranged for a sleep until something comes into the queue. Once a process has
// ended, which the sender may be, waits need more than that.
struct QueueOnly {
    const Rank& rank;
    bool& leaves;

    void operator()() const {}
    bool changed() const {
        leaves = rank.header().ended_ranks.load(std::memory_order_relaxed) != 0;
        return leaves;
    }
    bool stands() const { return !changed(); }
};

} // namespace warren::message
