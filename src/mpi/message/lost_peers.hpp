// LostPeers: ends what waits for processes that have ended while others go on (mpiexec
// --keep-going), with MPI_ERR_PROC_ABORTED.
//
// mpiexec writes into the segment that a process has ended, and rings all ranks. What that process
// has sent stands in queues by then. So who is about to sleep only notes an end that is new; when
// it comes here again it has made progress since, and what still waits does so in vain.
// Thread rule: under the rank's lock.
#pragma once

#include <cstdint>

#include "mpi/message/core.hpp"
#include "mpi/message/receiver.hpp"
#include "mpi/message/withdrawals.hpp"

namespace warren::message {

// The room above knows communicators: whether all processes have ended that could send a message
// which a receive with this envelope takes. Null: nobody knows.
struct Senders {
    void* owner = nullptr;
    bool (*have_ended)(void* owner, const Envelope& envelope) = nullptr;
};

class LostPeers {
  public:
    LostPeers(Core& core, Receiver& receiver, Withdrawals& withdrawals, Senders senders)
        : core_(core), receiver_(receiver), withdrawals_(withdrawals), senders_(senders) {}

    // Before a sleep. True: waits have ended, or may end soon, and are to look again.
    bool look() {
        const std::uint32_t ended = core_.rank.header().ended_ranks.load(std::memory_order_acquire);
        return ended != 0 && look_at(ended);
    }
    // Whether a wait for this message is in vain.
    bool never_comes(const Envelope& envelope) const {
        return noted_ != 0 && senders_.have_ended != nullptr &&
               senders_.have_ended(senders_.owner, envelope);
    }

  private:
    bool look_at(std::uint32_t ended);
    bool waits_in_vain(const Request& request) const;
    void end(Request& request);

    Core& core_;
    Receiver& receiver_;
    Withdrawals& withdrawals_;
    const Senders senders_;
    std::uint32_t noted_ = 0; // processes whose ends have been noted
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
