// CopyChoice: how a message moves to a peer, by its size, its layout, the way there and what the
// pair has measured (copy_methods.hpp). Thread rule: under the rank's lock.
#pragma once

#include <cstdint>

#include "mpi/message/peers.hpp"
#include "mpi/message/request.hpp"
#include "mpi/message/tuning.hpp"
#include "mpi/transport/shm/node_transport.hpp"

namespace warren::message {

class CopyChoice {
  public:
    explicit CopyChoice(const transport::NodeTransport& transport) : transport_(transport) {}

    // Whether blocks can overlap on their way to a peer.
    bool is_streamed(const Peer& peer) const {
        return transport_.block_limit(peer) > transport_.whole_block_limit(peer);
    }
    // Whether the receiver fetches or directly copies the next message of this size without gaps.
    bool is_fetched(const Peer& peer, std::uint64_t bytes) const {
        if (bytes <= direct_limit) {
            return false;
        }
        if (peer.same_space && !is_streamed(peer)) {
            return true;
        }
        return peer.pair_ring && CopyMethodClass::has(bytes) &&
               method(peer, bytes) == CopyMethod::fetch;
    }
    // The method of the next message of this size.
    static CopyMethod method(const Peer& peer, std::uint64_t bytes);

    // For a send with a request, which has no choice in some cases. `chosen`: its method if it has
    // a choice, null otherwise.
    bool has_choice(const Peer& peer, const Request& send) const;
    static bool is_fetched(const Peer& peer, const Request& send, const CopyMethod* chosen);
    // Whether it is copied from buffer to buffer (direct.hpp).
    bool goes_direct(const Peer& peer, const Request& send, const CopyMethod* chosen) const;
    // Whether a message with gaps is streamed although it is large enough for that.
    bool streams_gaps(const Peer& peer, const Buffer& gaps) const;

    // stamp(): the stamp of a message with a choice that is about to be sent by `method`. used():
    // it has been sent.
    static std::uint64_t stamp(Peer& peer, std::uint64_t bytes, CopyMethod method);
    static void used(Peer& peer, std::uint64_t bytes);

  private:
    const transport::NodeTransport& transport_;
};

// Small pieces of memory far apart bring whole cache lines with them.
std::size_t piece_of(const Buffer& buffer);
bool has_small_pieces(const Buffer& buffer);

} // namespace warren::message
