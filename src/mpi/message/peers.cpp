#include "mpi/message/peers.hpp"

#include <algorithm>
#include <utility>

namespace warren::message {

Peers::Peers(Rank& rank) : rank_(rank), peers_(rank.world_size) {}

Peers::~Peers() {
    while (made_ != nullptr) {
        const std::unique_ptr<Peer> peer(std::exchange(made_, made_->next_made));
    }
}

Peer& Peers::make(std::uint32_t endpoint) {
    std::unique_ptr<Peer> made;
    if (endpoint < rank_.size) {
        made = std::make_unique<Peer>(rank_.segment, endpoint);
        made->same_space = rank_.segment.slot(endpoint).process == rank_.slot.process;
    } else {
        if (wall_ == nullptr) {
            wall_ = std::make_unique<node::RankSlot>();
            transport::QueueSender::make_wall(*wall_);
        }
        made = std::make_unique<Peer>(*wall_, endpoint);
    }
    made->next_made = made_;
    made_ = peers_[endpoint] = made.release();
    return *made_;
}

void Peers::forget(std::vector<std::uint32_t>& endpoints) {
    std::erase_if(endpoints, [this](std::uint32_t endpoint) {
        return peers_[endpoint] != nullptr && !peers_[endpoint]->is_idle();
    });
    for (Peer** link = &made_; *link != nullptr;) {
        if (std::binary_search(endpoints.begin(), endpoints.end(), (*link)->peer)) {
            const std::unique_ptr<Peer> forgotten(std::exchange(*link, (*link)->next_made));
            peers_[forgotten->peer] = nullptr;
        } else {
            link = &(*link)->next_made;
        }
    }
}

} // namespace warren::message
