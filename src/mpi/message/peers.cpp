#include "mpi/message/peers.hpp"

#include <utility>

namespace warren::message {

Peers::Peers(Rank& rank) : rank_(rank), peers_(rank.size) {}

Peers::~Peers() {
    while (made_ != nullptr) {
        const std::unique_ptr<Peer> peer(std::exchange(made_, made_->next_made));
    }
}

Peer& Peers::make(std::uint32_t world_rank) {
    auto made = std::make_unique<Peer>(rank_.segment, world_rank);
    made->same_space = rank_.segment.slot(world_rank).process == rank_.slot.process;
    made->next_made = made_;
    made_ = peers_[world_rank] = made.release();
    return *made_;
}

} // namespace warren::message
