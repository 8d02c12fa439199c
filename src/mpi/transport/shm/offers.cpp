#include "mpi/transport/shm/offers.hpp"

namespace warren::transport {

void Offers::begin(Channel& channel, bool awaited) {
    LargeData& large = channel.large();
    large.awaited += awaited ? 1 : 0;
    if (large.offers++ == 0) {
        large.next_offering = first_;
        first_ = &channel;
    }
    tell_awaited(channel);
}

void Offers::end(Channel& channel, bool awaited) {
    LargeData& large = channel.large();
    large.awaited -= awaited ? 1 : 0;
    if (--large.offers > 0) {
        tell_awaited(channel);
        return;
    }
    Channel** link = &first_;
    while (*link != &channel) {
        link = &(*link)->large().next_offering;
    }
    *link = large.next_offering;
}

void Offers::await(Channel& channel) {
    ++channel.large().awaited;
    tell_awaited(channel);
}

void Offers::tell_awaited(Channel& channel) {
    LargeData& large = channel.large();
    if (large.awaited == large.offers && !large.told) {
        large.told = true;
        channel.pair_ring.set_awaits(true);
    }
}

bool Offers::help() {
    bool moved = false;
    for (Channel* channel = first_; channel != nullptr; channel = channel->large().next_offering) {
        moved |= memory_.help(channel->peer, channel->pair_ring);
    }
    return moved;
}

} // namespace warren::transport
