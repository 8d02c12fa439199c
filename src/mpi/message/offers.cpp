#include "mpi/message/offers.hpp"

#include <cstdlib>
#include <sys/uio.h>
#include <utility>

#include "mpi/message/copy_choice.hpp"

namespace warren::message {

bool is_coarse(const datatype::Datatype& type) {
    return type.size / type.block_count() >= coarse_block_bytes;
}

RendezvousData Offers::describe(const Peer& peer, Request& send) {
    if (send.laid_out && send.sending.offer == Offer::none) {
        prepare(peer, send);
    }
    const std::byte* data = send.sending.offer == Offer::fetched ? send.sending.packed : send.data;
    return {.address = reinterpret_cast<std::uint64_t>(data),
            .bytes = send.bytes,
            .sender = RequestTable::token_of(send),
            .pieces = send.sending.pieces,
            .began = 0};
}

void Offers::prepare(const Peer& peer, Request& send) {
    SendState& state = send.sending;
    state.offer = Offer::streamed;
    // The receiver asks for a stream if blocks can overlap in transfer, or if it can't fetch.
    if (send.bytes == 0 || CopyChoice(core_.transport).is_streamed(peer) ||
        core_.transport.peer_copy_refused()) {
        return;
    }
    const Buffer& buffer = send.buffer;
    const bool listed = is_coarse(*buffer.type);
    const auto limit = static_cast<std::size_t>(buffer.count * buffer.type->block_count());
    if (state.packed == nullptr) {
        state.packed =
            static_cast<std::byte*>(std::malloc(listed ? limit * sizeof(iovec) : send.bytes));
    }
    if (state.packed == nullptr) {
        return; // without memory it has to be streamed as well
    }
    if (listed) {
        MPI_Count covered;
        state.pieces = buffer.type->pieces(buffer.base, buffer.count, 0, buffer.bytes(),
                                           reinterpret_cast<iovec*>(state.packed), limit, covered);
    } else {
        buffer.type->pack(buffer.base, buffer.count, state.packed);
    }
    state.offer = Offer::fetched;
}

void Offers::say_not_awaited(Peer& peer) {
    Bulk* bulk = peer.bulk_if_any();
    if (bulk != nullptr && bulk->told) {
        bulk->told = false;
        peer.pair_ring.set_awaits(false);
    }
}

void Offers::begin(Peer& peer, Request& send) {
    // Only data in one piece is fetched so that there is something to help with.
    if (!peer.pair_ring || send.laid_out || send.bytes < transport::joint_limit) {
        return;
    }
    send.sending.offered = true;
    Bulk& bulk = peer.bulk();
    bulk.awaited += send.awaited ? 1 : 0;
    if (bulk.offers++ == 0) {
        bulk.next_offering = first_;
        first_ = &peer;
    }
    tell_awaited(peer);
}

void Offers::end_offered(Request& send) {
    send.sending.offered = false;
    Peer& peer = core_.peers.of(send.peer);
    Bulk& bulk = peer.bulk();
    if (std::exchange(send.awaited, false)) {
        --bulk.awaited;
    }
    if (--bulk.offers > 0) {
        tell_awaited(peer);
        return;
    }
    Peer** link = &first_;
    while (*link != &peer) {
        link = &(*link)->bulk().next_offering;
    }
    *link = bulk.next_offering;
}

void Offers::await(const Request& send) {
    Peer& peer = core_.peers.of(send.peer);
    ++peer.bulk().awaited;
    tell_awaited(peer);
}

void Offers::tell_awaited(Peer& peer) {
    Bulk& bulk = peer.bulk();
    if (bulk.awaited == bulk.offers && !bulk.told) {
        bulk.told = true;
        peer.pair_ring.set_awaits(true);
    }
}

bool Offers::help() {
    bool moved = false;
    for (Peer* peer = first_; peer != nullptr; peer = peer->bulk().next_offering) {
        moved |= core_.transport.help_peer(*peer);
    }
    return moved;
}

} // namespace warren::message
