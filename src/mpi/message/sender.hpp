// Sender: the sends of a rank that have a request, from their start until nothing is left to send.
// It carries out the transport's plan by a protocol (protocol.hpp), and streams what receivers ask
// for.
// Thread rule: under the rank's lock.
#pragma once

#include <cstddef>
#include <cstdint>

#include "mpi/message/core.hpp"
#include "mpi/message/direct_copies.hpp"
#include "mpi/message/kinds.hpp"
#include "mpi/message/withdrawals.hpp"
#include "mpi/transport/source.hpp"

namespace warren::message {

class Sender {
  public:
    Sender(Core& core, DirectCopies& direct, Withdrawals& withdrawals)
        : core_(core), direct_(direct), withdrawals_(withdrawals) {}

    // Begins a send to another rank, whose head has been started.
    void begin(Request& send);
    // Sends what waits for space, as far as there is some.
    bool push();

    // Answers of receivers: one wants the rest of a send; one has all of it, or nobody will receive
    // it.
    void register_kinds(KindTable& kinds);
    void arrived_wanted(const transport::Arrival& arrival);
    void arrived_done(const transport::Arrival& arrival);
    // Helps with direct copies, and completes those that have been made. Returns whether there was
    // anything to do.
    bool run_direct();

    // Copies the rest of a stream into the request's own memory. False: no memory.
    static bool keep_rest(Request& send);

  private:
    Step advance(Peer& peer, Request& send);
    Step advance_push(Peer& peer, Request& send, const transport::Plan& plan);
    Step advance_offer(Peer& peer, Request& send, const transport::Plan& plan);
    // Announces a send to a rank of the same address space.
    Step advance_direct(Peer& peer, Request& send, const transport::Plan& plan);
    Step advance_stream(Peer& peer, Request& send);
    static bool is_kept_waiting(const Peer& peer, Request& send);
    // Sends up to `limit` of the bytes that a receiver has asked for. False: no space now.
    bool send_part(Peer& peer, Request& send, std::uint64_t limit);
    std::size_t part_limit(const Peer& peer, const Request& send) const;
    // The data from there on, to be pushed or passed as the send is.
    static transport::Source pushed(const Request& send, std::uint64_t from);

    Core& core_;
    DirectCopies& direct_;
    Withdrawals& withdrawals_;
};

} // namespace warren::message
