// ShmTransport: the transport of a rank (mpi/transport/transport.hpp): cells and blocks through
// shared memory or the network (NodeTransport), their plans (Plans), and copies out of the memory
// of other processes of the node (PeerMemory), with their help (Offers). Thread rule: under the
// rank's lock.
#pragma once

#include "mpi/transport/shm/node_transport.hpp"
#include "mpi/transport/shm/offers.hpp"
#include "mpi/transport/shm/peer_memory.hpp"
#include "mpi/transport/shm/plans.hpp"

namespace warren::transport {

class ShmTransport : public NodeTransport {
  public:
    using Channel = transport::Channel;

    explicit ShmTransport(Rank& rank, fabric::Network* network = nullptr)
        : NodeTransport(rank, network), memory_(rank), plans_(*this, memory_), offers_(memory_) {}
    ShmTransport(const ShmTransport&) = delete;
    ShmTransport& operator=(const ShmTransport&) = delete;

    Abilities abilities(const Channel& channel) const {
        return {.inline_bytes = inline_bytes,
                .block_bytes = block_limit(channel),
                .get = !channel.remote && !memory_.refused(),
                .put = false}; // a block of a joint copy is the only one
    }
    Plan plan(const Channel& channel, const Outline& outline) const {
        return plans_.plan(channel, outline);
    }
    // Copies data in one piece out of memory that the channel's peer has offered. The peer does a
    // part of it if it waits in MPI.
    PeerCopy get(const Channel& channel, const RemoteMemory& memory, void* to) {
        if (channel.remote) {
            return PeerCopy::failed;
        }
        return memory_.fetch(channel.peer, pair_ring_from(channel.peer), memory.address, to,
                             memory.length, channel.is_offered_some());
    }
    // Waits a while for a cell from a rank that has a pair ring here, and helps those that may be
    // fetching. False: none has come, or something else has.
    bool await_helping(std::uint32_t sender) {
        return await_cell(sender, [this] { offers_.help(); });
    }

    PeerMemory& memory() { return memory_; }
    Plans& plans() { return plans_; }
    const Plans& plans() const { return plans_; }
    Offers& offers() { return offers_; }
    const Offers& offers() const { return offers_; }

  private:
    PeerMemory memory_;
    Plans plans_;
    Offers offers_;
};
static_assert(IsTransport<ShmTransport>);

} // namespace warren::transport
