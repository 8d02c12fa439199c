// Peers: what a rank knows of the others that it exchanges messages with, beside short ones.
//
// A rank may send one short message to each of thousands, so a Peer is small, and state of large
// messages is made with the first of them. Thread rule: under the rank's lock.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/sparse_array.hpp"
#include "mpi/message/matching.hpp"
#include "mpi/message/request.hpp"
#include "mpi/rank/rank.hpp"
#include "mpi/transport/shm/channel.hpp"

namespace warren::message {

// A stream that is arriving from a peer: into a receive, or into an unexpected message, which
// count what they have.
struct Inbound {
    Request* receive = nullptr;
    Unexpected* message = nullptr;
    std::uint64_t left = 0;
    Trial trial = {};
};

// Messages under way with another rank.
struct Peer : transport::Channel {
    Peer(const node::Segment& segment, std::uint32_t to) : Channel(segment, to) {}
    Peer(node::RankSlot& wall, std::uint32_t to) : Channel(wall, to) {}

    Inbound& inbound() {
        std::unique_ptr<transport::LargeData::Above>& above = large().above;
        if (above == nullptr) [[unlikely]] {
            above = std::make_unique<Arriving>();
        }
        return static_cast<Arriving&>(*above).inbound;
    }

    // Nothing is under way.
    bool is_idle() const {
        const transport::LargeData* const data = large_if_any();
        return first == nullptr &&
               (data == nullptr ||
                (data->offers == 0 &&
                 (data->above == nullptr ||
                  static_cast<const Arriving&>(*data->above).inbound.left == 0)));
    }

    Outgoing* first = nullptr; // waiting for space, in order
    Outgoing* last = nullptr;
    Peer* next_waiting = nullptr; // among the peers with something waiting (Outbox)
    Peer* next_made = nullptr;    // among all

  private:
    struct Arriving : transport::LargeData::Above {
        Inbound inbound;
    };
};
// malloc uses 8 bytes of the two cache lines itself.
static_assert(sizeof(Peer) <= 2 * node::cache_line_bytes - 8);

class Peers {
  public:
    explicit Peers(Rank& rank);
    ~Peers();
    Peers(const Peers&) = delete;
    Peers& operator=(const Peers&) = delete;

    // By endpoint (mpi/job/endpoints.hpp), made at first contact.
    Peer& of(std::uint32_t endpoint) {
        Peer* peer = peers_[endpoint];
        return peer != nullptr ? *peer : make(endpoint);
    }
    // Makes room for endpoints below `endpoints`, which are of other worlds.
    void grow(std::uint32_t endpoints) { peers_.grow(endpoints); }
    // Forgets these, of other worlds, and takes those out of the ordered list that are not idle.
    void forget(std::vector<std::uint32_t>& endpoints);
    // Null: there has been no contact.
    Peer* find(std::uint32_t endpoint) { return peers_[endpoint]; }

  private:
    Peer& make(std::uint32_t endpoint);

    Rank& rank_;
    SparseArray<Peer> peers_;
    Peer* made_ = nullptr;                 // the first of them
    std::unique_ptr<node::RankSlot> wall_; // of peers on other nodes
};

} // namespace warren::message
