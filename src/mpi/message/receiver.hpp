// Receiver: the receives of a rank, and the messages that have come to it.
//
// A message is matched with a posted receive, or kept as unexpected until its receive is posted
// (matching.hpp). Whole messages are copied at once (receiver.cpp); of others the receiver asks for
// the rest (streams.cpp), fetches the data out of the sender's memory (fetching.cpp), or copies it
// directly (direct.hpp). Thread rule: under the rank's lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "mpi/message/core.hpp"
#include "mpi/message/kinds.hpp"
#include "mpi/message/laid_out.hpp"
#include "mpi/message/matching.hpp"
#include "mpi/message/protocol.hpp"
#include "mpi/transport/shm/copy.hpp"

namespace warren::message {

class Receiver {
  public:
    explicit Receiver(Core& core) : core_(core) {}

    // Nothing is posted, and nothing unexpected is here.
    bool idle() const { return (posted_.count() | unexpected_.count()) == 0; }
    std::uint32_t posted() const { return posted_.count(); }
    // How many receives match() would compare a message with.
    std::uint32_t attempts(const Envelope& message) const { return posted_.attempts(message); }
    UnexpectedMessages& unexpected() { return unexpected_; }
    const UnexpectedMessages& unexpected() const { return unexpected_; }

    // Begins a receive whose head has been started.
    void begin(Request& receive) {
        receive.receiving.start();
        if (Unexpected* message = unexpected_.find(receive.envelope)) {
            unexpected_.remove(*message);
            receive_unexpected(*message, receive);
        } else {
            posted_.post(receive);
        }
    }
    // As above, when nothing unexpected is here.
    void post(Request& receive) {
        receive.receiving.start();
        posted_.post(receive);
    }
    // Receives a message that has been taken out of the unexpected ones.
    void receive_unexpected(Unexpected& message, Request& receive);
    // Takes back a receive that nothing has matched.
    void withdraw(Request& receive) { posted_.remove(receive); }

    // --- Sends of the rank to itself
    Error send_to_self(Request& send);
    // False: a matched probe has taken it.
    bool cancel_own(Request& send);

    // --- Arrivals

    // The posted receive that a message belongs to, taken out; null: there is none.
    [[gnu::always_inline]] Request* match(const Envelope& message) {
        return posted_.match(message);
    }
    // Puts a whole message where a receive wants it. The receive has to be completed then.
    [[gnu::always_inline]] void take_whole(Request& receive, const Envelope& envelope,
                                           const std::byte* data, std::uint64_t bytes) {
        accept(receive, envelope, bytes);
        const auto kept = static_cast<std::size_t>(receive.outcome.bytes);
        if (receive.laid_out) [[unlikely]] {
            LaidOut(receive.buffer).take(0, data, kept);
        } else if (kept <= transport::inline_bytes) {
            transport::copy_small(receive.data, data, kept);
        } else {
            std::memcpy(receive.data, data, kept);
        }
    }
    void arrived_unexpected(const transport::Arrival& arrival);
    // Has the arrivals below handed to this object.
    void register_kinds(KindTable& kinds);
    void arrived_stream_head(const transport::Arrival& arrival);
    void arrived_stream_part(const transport::Arrival& arrival);
    void arrived_answer_head(const transport::Arrival& arrival);
    void arrived_rendezvous(const transport::Arrival& arrival);
    void arrived_rendezvous_list(const transport::Arrival& arrival);
    void arrived_direct(const transport::Arrival& arrival);
    void arrived_withdrawn(const transport::Arrival& arrival);
    void arrived_given_up(const transport::Arrival& arrival);

  private:
    // Notes that a message belongs to a receive.
    [[gnu::always_inline]] void accept(Request& receive, const Envelope& envelope,
                                       std::uint64_t available) {
        // A message that was still arriving when its receive matched it comes here twice.
        if (receive.fate == Fate::abandoned && !receive.receiving.matched) [[unlikely]] {
            core_.requests.abandoned_is_matched();
        }
        receive.receiving.matched = true;
        receive.outcome.source = envelope.source;
        receive.outcome.tag = envelope.tag;
        receive.outcome.available = static_cast<MPI_Count>(available);
        receive.outcome.bytes = static_cast<MPI_Count>(available);
        if (available != receive.bytes) [[unlikely]] {
            judge_length(receive);
        }
    }
    // For a message that is longer or shorter than the receive.
    static void judge_length(Request& receive);
    // Copies a message's bytes from `first` on to their place in the receive buffer.
    void place(const Request& receive, std::uint64_t first, const std::byte* data,
               std::uint64_t bytes);
    // From a send of the rank to itself.
    void deliver_own(Request& receive, const Envelope& envelope, const Request& send);
    // A message waits for its receive.
    void keep(Unexpected& message);
    // Records an unexpected message whose data its sender keeps.
    Unexpected& keep_announced(Unexpected::Form form, const Envelope& envelope,
                               std::uint32_t sender, std::uint64_t bytes);

    // Streams (streams.cpp)
    void take_inbound(Peer& peer, const std::byte* data, std::uint64_t bytes);
    void end_stream(const Inbound& inbound);
    // Asks the sender of a message, of which `there` bytes have come, for the rest of what the
    // receive has space for. False when nothing is missing (the sender is told so too).
    bool ask_for_rest(Request& receive, std::uint32_t sender, Token token, std::uint64_t there,
                      bool passes = false);
    void receive_head(Unexpected& message, Request& receive);

    // Rendezvous and direct copies (fetching.cpp). `unexpected`: the message has waited for its
    // receive.
    struct Offered {
        transport::RemoteMemory memory;
        Token sender;
        std::uint64_t bytes; // of data
        bool listed;         // at the memory is a list of its pieces
        std::uint64_t began; // the stamp
    };
    void take_offer(const transport::Arrival& arrival, const Offered& offered);
    void fetch(Request& receive, const Envelope& envelope, std::uint32_t sender,
               const Offered& offered, bool unexpected);
    // Whether an offered message should be pushed instead of fetched. `trial` receives its trial,
    // if the receiver has the choice.
    bool is_asked_for(const Request& receive, Peer& sender, const Offered& offered, Trial& trial);
    transport::PeerCopy read_offered(const Request& receive, std::uint32_t sender,
                                     const Offered& offered);
    transport::PeerCopy read_with_gaps(const Request& receive, std::uint32_t sender,
                                       const Offered& offered);
    void receive_direct(Request& receive, const Envelope& envelope, std::uint32_t sender,
                        const DirectData& data, bool unexpected);

    Core& core_;
    PostedReceives posted_;
    UnexpectedMessages unexpected_;
};

// Ends the job after a failed allocation that no call can report: the message has arrived, and MPI
// can't refuse it.
[[noreturn]] void no_memory_for_unexpected(const Rank& rank, std::uint64_t bytes);

} // namespace warren::message
