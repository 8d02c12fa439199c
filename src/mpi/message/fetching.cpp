// Rendezvous: what a sender offers, and how the receiver fetches it from the sender's memory.
//
// Data in one piece is offered by its address. Data of large blocks is offered as a list of them,
// which the receiver reads first: the kernel then copies from the sender's layout into the
// receiver's, and nobody packs. Small blocks cost the kernel more than packing them does.

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>
#include <utility>

#include "mpi/message/engine.hpp"
#include "mpi/message/laid_out.hpp"

namespace warren::message {

namespace {

bool is_coarse(const datatype::Datatype& type) {
    return type.size / type.block_count() >= coarse_block_bytes;
}

using Pieces = std::array<iovec, transport::NodeTransport::pieces_per_read>;

// Takes `bytes` off the front of a list.
std::span<iovec> without_front(std::span<iovec> pieces, std::uint64_t bytes) {
    while (!pieces.empty() && pieces.front().iov_len <= bytes) {
        bytes -= pieces.front().iov_len;
        pieces = pieces.subspan(1);
    }
    if (bytes > 0) {
        iovec& front = pieces.front();
        front.iov_base = static_cast<std::byte*>(front.iov_base) + bytes;
        front.iov_len -= bytes;
    }
    return pieces;
}

std::uint64_t bytes_of(std::span<const iovec> pieces) {
    std::uint64_t sum = 0;
    for (const iovec& piece : pieces) {
        sum += piece.iov_len;
    }
    return sum;
}

} // namespace

RendezvousData Engine::offer(const Peer& peer, Request& send) {
    if (send.laid_out && send.offer == Offer::none) {
        prepare_offer(peer, send);
    }
    const std::byte* data = send.offer == Offer::fetched ? send.packed : send.data;
    return {.address = reinterpret_cast<std::uint64_t>(data),
            .bytes = send.bytes,
            .sender = token_of(send),
            .pieces = send.pieces,
            .began = 0};
}

void Engine::start_helping(Peer& peer, Request& send) {
    // Only data in one piece is fetched so that there is something to help with.
    if (!peer.pair_ring || send.laid_out || send.bytes < transport::joint_limit) {
        return;
    }
    send.offered = true;
    Bulk& bulk = bulk_of(peer);
    bulk.awaited += send.awaited ? 1 : 0;
    if (bulk.offers++ == 0) {
        bulk.next_offering = offering_;
        offering_ = &peer;
    }
    tell_awaited(peer);
}

void Engine::stop_helping(Request& send) {
    if (!send.offered) {
        return;
    }
    send.offered = false;
    Peer& peer = peer_of(send.peer);
    Bulk& bulk = *peer.bulk;
    if (std::exchange(send.awaited, false)) {
        --bulk.awaited;
    }
    if (--bulk.offers > 0) {
        tell_awaited(peer);
        return;
    }
    Peer** link = &offering_;
    while (*link != &peer) {
        link = &(*link)->bulk->next_offering;
    }
    *link = bulk.next_offering;
}

void Engine::await_offered(const Request& send) {
    Peer& peer = peer_of(send.peer);
    ++peer.bulk->awaited;
    tell_awaited(peer);
}

void Engine::tell_awaited(Peer& peer) {
    Bulk& bulk = *peer.bulk;
    if (bulk.awaited == bulk.offers && !bulk.told) {
        bulk.told = true;
        peer.pair_ring.set_awaits(true);
    }
}

bool Engine::is_asked_for(const Request& receive, std::uint32_t sender,
                          const RendezvousData& offered, Trial& trial) {
    // (A receiver that leaves MPI again would hold up the sender and its buffers.)
    if (offered.began != Stamp::receivers_choice || !receive.awaited || receive.laid_out ||
        static_cast<std::uint64_t>(receive.outcome.bytes) != offered.bytes ||
        !transport_.awaits(sender)) {
        return false;
    }
    Bulk& bulk = bulk_of(peer_of(sender));
    std::unique_ptr<Asking>& asking = bulk.asking;
    if (asking == nullptr) {
        asking.reset(new (std::nothrow) Asking);
    }
    return asking != nullptr && asking->next(offered.bytes, trial, !transport_.peer_copy_refused(),
                                             bulk.offers > 0) != CopyMethod::fetch;
}

bool Engine::help_peers() {
    bool moved = false;
    for (Peer* peer = offering_; peer != nullptr; peer = peer->bulk->next_offering) {
        moved |= transport_.help_peer(*peer);
    }
    return moved;
}

bool Engine::await_helping(std::uint32_t peer_rank) {
    return transport_.await_cell(peer_rank, [this] { help_peers(); });
}

void Engine::prepare_offer(const Peer& peer, Request& send) {
    send.offer = Offer::streamed;
    // The receiver asks for a stream if blocks can overlap in transfer, or if it can't fetch.
    if (send.bytes == 0 || is_streamed(peer) || transport_.peer_copy_refused()) {
        return;
    }
    const Buffer& buffer = send.buffer;
    const bool listed = is_coarse(*buffer.type);
    const auto limit = static_cast<std::size_t>(buffer.count * buffer.type->block_count());
    if (send.packed == nullptr) {
        send.packed =
            static_cast<std::byte*>(std::malloc(listed ? limit * sizeof(iovec) : send.bytes));
    }
    if (send.packed == nullptr) {
        return; // without memory it has to be streamed as well
    }
    if (listed) {
        MPI_Count covered;
        send.pieces = buffer.type->pieces(buffer.base, buffer.count, 0, buffer.bytes(),
                                          reinterpret_cast<iovec*>(send.packed), limit, covered);
    } else {
        buffer.type->pack(buffer.base, buffer.count, send.packed);
    }
    send.offer = Offer::fetched;
}

transport::PeerCopy Engine::read_offered(const Request& receive, std::uint32_t sender,
                                         const RendezvousData& offered, std::uint64_t kept) {
    using transport::PeerCopy;
    if (offered.pieces == 0 && !receive.laid_out) {
        const Peer& peer = peer_of(sender);
        return transport_.fetch_from_peer(sender, offered.address, receive.data, kept,
                                          peer.bulk != nullptr && peer.bulk->offers > 0);
    }
    const Buffer& buffer = receive.buffer;
    const bool in_place = !receive.laid_out || is_coarse(*buffer.type);
    const std::unique_ptr<std::byte[]> window(
        in_place ? nullptr : new (std::nothrow) std::byte[fetch_window_bytes]);
    if (!in_place && window == nullptr) {
        return PeerCopy::failed;
    }
    Pieces their_list;
    Pieces own_list;
    std::span<iovec> theirs;
    std::uint64_t listed = 0; // of the sender's pieces, read so far
    for (std::uint64_t done = 0; done < kept;) {
        if (theirs.empty() && offered.pieces == 0) {
            their_list[0] = {.iov_base = reinterpret_cast<void*>(offered.address + done),
                             .iov_len = kept - done};
            theirs = {their_list.data(), 1};
        } else if (theirs.empty()) {
            const std::uint64_t count =
                std::min<std::uint64_t>(offered.pieces - listed, their_list.size());
            const PeerCopy result =
                transport_.read_peer(sender, offered.address + listed * sizeof(iovec),
                                     their_list.data(), count * sizeof(iovec));
            if (count == 0 || result != PeerCopy::done) {
                return count == 0 ? PeerCopy::failed : result;
            }
            listed += count;
            theirs = {their_list.data(), count};
        }
        const std::uint64_t there = std::min(bytes_of(theirs), kept - done);
        std::size_t own_count = 1;
        if (!in_place) {
            own_list[0] = {.iov_base = window.get(),
                           .iov_len = std::min<std::uint64_t>(there, fetch_window_bytes)};
        } else if (!receive.laid_out) {
            own_list[0] = {.iov_base = receive.data + done, .iov_len = there};
        } else {
            MPI_Count covered;
            own_count = buffer.type->pieces(buffer.base, buffer.count, static_cast<MPI_Count>(done),
                                            static_cast<MPI_Count>(there), own_list.data(),
                                            own_list.size(), covered);
        }
        std::uint64_t copied;
        const PeerCopy result =
            transport_.read_peer(sender, theirs, {own_list.data(), own_count}, copied);
        if (result != PeerCopy::done) {
            return result;
        }
        if (!in_place) {
            LaidOut(buffer).take(done, window.get(), copied);
        }
        theirs = without_front(theirs, copied);
        done += copied;
    }
    return PeerCopy::done;
}

} // namespace warren::message
