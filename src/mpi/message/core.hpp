// Core: what the parts of a rank's engine share: the way to other ranks, and the requests.
// Thread rule: under the rank's lock.
#pragma once

#include <utility>

#include "mpi/message/outbox.hpp"
#include "mpi/message/peers.hpp"
#include "mpi/message/request_table.hpp"
#include "mpi/message/transport.hpp"
#include "mpi/rank/rank.hpp"

namespace warren::message {

struct Core {
    explicit Core(Rank& its, transport::fabric::Network* network = nullptr)
        : rank(its), transport(its, network), peers(its), requests(its), outbox(its, transport) {}

    // Sends a cell to a rank, now or when there is space.
    void answer(std::uint32_t to, transport::CellKind kind, const void* data, std::size_t bytes) {
        outbox.answer(peers.of(to), kind, data, bytes);
    }
    // Counts bytes per peer for the balancer (runtime/balance/load_table.hpp).
    void count(const Buffer& buffer, std::uint32_t peer) const {
        if (rank.load != nullptr) {
            balance::count_message(*rank.load, peer, static_cast<std::uint64_t>(buffer.bytes()));
        }
    }

    // Counts a message that has been sent at once, for tools.
    void count_whole(std::uint32_t peer, const Envelope& envelope, std::uint64_t bytes) {
        // (Longer ones are streams, which are counted where they begin.)
        if (bytes <= transport.whole_block_limit(peers.of(peer))) {
            count_sent(rank.counts.eager, peer, envelope, bytes);
        }
    }
    // …of a kind.
    void count_sent(MessageCount& kind, std::uint32_t peer, const Envelope& envelope,
                    std::uint64_t bytes) {
        kind.add(bytes);
        if (rank.profile.on()) [[unlikely]] {
            rank.profile.sent(peer, envelope.context, bytes);
        }
    }

    // The receiver of a send no longer fetches it, if it did (transport::Offers).
    void end_offer(Request& send) {
        if (std::exchange(send.sending.offered, false)) {
            transport.offers().end(peers.of(send.peer), std::exchange(send.awaited, false));
        }
    }

    Rank& rank;
    Transport transport;
    Peers peers;
    RequestTable requests;
    Outbox outbox; // ends before the peers
};

} // namespace warren::message
