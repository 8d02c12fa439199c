// Plans: how messages move to and from the ranks of the node: by their size and layout, by the way
// there, and by what the pair has measured (copy_methods.hpp).
//
// The sender asks for a plan, stamps the message's first cell if the plan is measured, and says
// when it has been sent. The receiver makes a Trial of the stamp, and gives it back when the
// message has arrived; from these it advises the sender. Thread rule: under the rank's lock; the
// two ranks communicate by messages and the word of advice.
#pragma once

#include <cstdint>

#include "mpi/transport/shm/channel.hpp"
#include "mpi/transport/shm/copy_methods.hpp"
#include "mpi/transport/shm/node_transport.hpp"
#include "mpi/transport/shm/peer_memory.hpp"
#include "mpi/transport/shm/tuning.hpp"
#include "mpi/transport/transport.hpp"

namespace warren::transport {

class Plans {
  public:
    Plans(NodeTransport& transport, const PeerMemory& memory)
        : transport_(transport), memory_(memory) {}

    // --- The sender's half

    // Plans a message that may take time, or has to.
    Plan plan(const Channel& channel, const Outline& outline) const {
        if (outline.meets && !CopyMethodClass::is_long(outline.bytes)) {
            return {.move = channel.same_space ? Move::direct : Move::get}; // nothing to choose
        }
        return plan_by_choice(channel, outline);
    }
    // Plans a message that fits a block: it is pushed whatever copy method has been chosen, so it
    // is counted but not measured. `choosable`: its data is in one piece.
    static Plan plan_block(const Channel& channel, std::uint64_t bytes, bool choosable);
    // Whether the receiver takes the next message of this size without gaps out of the sender's
    // memory.
    bool is_taken(const Channel& channel, std::uint64_t bytes) const {
        if (bytes <= transport_.limits.direct) {
            return false;
        }
        if (channel.same_space && !is_streamed(channel)) {
            return true;
        }
        return channel.pair_ring && CopyMethodClass::has(bytes) &&
               method(channel, bytes) == CopyMethod::fetch;
    }
    // Whether blocks can overlap on their way.
    bool is_streamed(const Channel& channel) const {
        return transport_.block_limit(channel) > transport_.whole_block_limit(channel);
    }
    // Whether a message with gaps is streamed although it is large enough for a direct copy.
    bool streams_gaps(const Channel& channel, bool small_pieces) const;

    // For the first cell of a message that is about to be sent.
    static std::uint64_t stamp(Channel& channel, const Plan& plan, std::uint64_t bytes) {
        if (plan.measured) {
            return time_stamp(channel, plan, bytes);
        }
        return plan.open ? Stamp::receivers_choice : 0;
    }
    // Counts a message of this plan that has been sent.
    static void sent(Channel& channel, const Plan& plan, std::uint64_t bytes) {
        if (plan.counts) {
            count(channel, bytes);
        }
    }

    // --- The receiver's half

    // The trial of a message whose first part is looked at now: that is pushed, or that the
    // receiver takes out of the sender's memory. `unexpected`: it has waited for its receive.
    static Trial trial(std::uint64_t stamp, bool unexpected);
    static Trial trial_of_taken(std::uint64_t stamp, bool unexpected);
    // A message that carried a time has arrived, or could not be fetched (trial.failed).
    void arrived(Channel& channel, std::uint64_t bytes, Trial trial);
    // One that was asked for never will.
    static void given_up(Channel& channel, Trial trial);
    // Whether the receiver of an offer may ask for a push instead, by its stamp.
    static bool is_open(std::uint64_t stamp) { return stamp == Stamp::receivers_choice; }
    // Whether an open offer should be pushed instead. `trial` receives its trial, if the receiver
    // has the choice.
    bool asks_for_push(Channel& channel, std::uint64_t bytes, Trial& trial);
    // Tells the sender that this rank may not get anything from its memory.
    void refuse_get(std::uint32_t sender) { transport_.advise(sender, no_fetching, no_fetching); }

    // Whether to push or pass large data that the peer reads piece by piece from shared memory (no
    // message is sent). The writer measures the time of the whole transfer. Null: no memory for the
    // measurements.
    static OwnCopyMethods* writing_for(Channel& channel);

  private:
    Plan plan_by_choice(const Channel& channel, const Outline& outline) const;
    // The method of the next message of this size.
    static CopyMethod method(const Channel& channel, std::uint64_t bytes);
    // Whether several methods are open to a message.
    bool has_choice(const Channel& channel, const Outline& outline) const;
    // `chosen`: its method if it has a choice, null otherwise.
    static bool is_fetched(const Channel& channel, const Outline& outline,
                           const CopyMethod* chosen);
    bool goes_direct(const Channel& channel, const Outline& outline,
                     const CopyMethod* chosen) const;
    static std::uint64_t time_stamp(Channel& channel, const Plan& plan, std::uint64_t bytes);
    static void count(Channel& channel, std::uint64_t bytes);

    NodeTransport& transport_;
    const PeerMemory& memory_;
};

} // namespace warren::transport
