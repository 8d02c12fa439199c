#include "mpi/message/sender.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "mpi/message/at_once.hpp"
#include "mpi/message/laid_out.hpp"
#include "mpi/message/offered_data.hpp"
#include "mpi/message/payload.hpp"
#include "mpi/message/tuning.hpp"

namespace warren::message {

namespace {
// The largest part of data with gaps that is sent at once. Memory beside small pieces is often
// needed next: the faces and halos of a grid, which are sent and received together, share cache
// lines. A part therefore has no more pieces than stay in the nearer caches. (Messages that fit a
// block are sent whole.)
std::size_t gap_part_limit(const Buffer& buffer, std::size_t limit) {
    return has_small_pieces(buffer)
               ? std::min(limit,
                          gap_pieces_at_once * std::max(piece_of(buffer), smallest_gap_piece))
               : limit;
}

transport::Outline outline_of(const Request& send) {
    return {.bytes = send.bytes,
            .awaited = send.awaited,
            .gaps = send.laid_out,
            .small_pieces = send.laid_out && has_small_pieces(send.buffer),
            .meets = send.operation == Operation::synchronous,
            .leaves = send.operation == Operation::buffered,
            .without_blocks = send.sending.without_blocks};
}
} // namespace

void Sender::register_kinds(KindTable& kinds) {
    kinds.add<&Sender::arrived_wanted>(kind::wanted, *this);
    kinds.add<&Sender::arrived_done>(kind::done, *this);
}

void Sender::begin(Request& send) {
    core_.count(send.buffer, send.peer);
    Peer& peer = core_.peers.of(send.peer);
    if (peer.first != nullptr || advance(peer, send) == Step::no_space) {
        core_.outbox.enqueue(peer, send);
    }
}

bool Sender::push() {
    return core_.outbox.push([this](Peer& peer, Request& send) { return advance(peer, send); });
}

Step Sender::advance(Peer& peer, Request& send) {
    if (send.sending.answer_token != 0) {
        return advance_stream(peer, send);
    }
    const transport::Plan plan = core_.transport.plan(peer, outline_of(send));
    switch (plan.move) {
    case transport::Move::direct:
        return advance_direct(peer, send, plan);
    case transport::Move::get:
        return advance_offer(peer, send, plan);
    case transport::Move::push:
        break;
    }
    const Step step = advance_push(peer, send, plan);
    return step == Step::no_space && is_kept_waiting(peer, send)
               ? advance_direct(peer, send, {.move = transport::Move::direct})
               : step;
}

// Whether a receiver outside MPI holds blocks for so long that this send goes direct instead, so
// that sends to others of this address space don't wait for blocks. (A sender that waits itself
// goes to sleep, and sends without blocks from then on.)
bool Sender::is_kept_waiting(const Peer& peer, Request& send) {
    if (!peer.same_space || send.awaited || send.bytes <= transport::direct_limit) {
        return false;
    }
    const std::uint64_t now = transport::node_time_ns();
    if (send.sending.waits_since == 0) {
        send.sending.waits_since = now;
    }
    return now - send.sending.waits_since > patience_ns;
}

Step Sender::advance_push(Peer& peer, Request& send, const transport::Plan& plan) {
    const std::uint64_t bytes = send.bytes;
    if (bytes <= core_.transport.block_limit(peer)) {
        const bool sent = send.laid_out ? send_gaps(core_, peer, send.envelope, send.buffer)
                                        : send_piece(core_, peer, send.envelope, send.data, bytes);
        if (!sent) {
            return Step::no_space;
        }
        if (core_.rank.lock.observed()) [[unlikely]] {
            core_.count_whole(send.peer, send.envelope, bytes);
        }
        core_.requests.complete(send);
        return Step::gone;
    }
    transport::Extra extra = {};
    send.sending.passes = plan.passes;
    const StreamHead stream = {.total = bytes,
                               .token = RequestTable::token_of(send),
                               .began = transport::Plans::stamp(peer, plan, bytes)};
    std::memcpy(extra, &stream, sizeof stream);
    const LaidOut data(send.buffer);
    if (!core_.transport.send_block(peer, header_of(kind::stream_head, send.envelope), extra,
                                    send.laid_out ? data.source(0) : pushed(send, 0),
                                    part_limit(peer, send), bytes)) {
        return Step::no_space;
    }
    transport::Plans::sent(peer, plan, bytes);
    core_.count_sent(core_.rank.counts.streams, send.peer, send.envelope, bytes);
    return Step::gone;
}

Step Sender::advance_offer(Peer& peer, Request& send, const transport::Plan& plan) {
    send.sending.passes = false;
    if (send.laid_out && send.sending.offer == Offer::none) {
        prepare_offer(core_, peer, send);
    }
    if (!send.awaited) {
        transport::Offers::say_not_awaited(peer); // before the receiver can see the offer
    }
    const transport::RemoteMemory memory = offered_memory(peer, send);
    const Token token = RequestTable::token_of(send);
    bool sent;
    if (send.sending.pieces != 0) {
        const RendezvousListData data = {.list = memory, .sender = token, .bytes = send.bytes};
        sent = core_.transport.send_inline(peer, header_of(kind::rendezvous_list, send.envelope),
                                           &data, sizeof data);
    } else {
        const RendezvousData data = {.memory = memory,
                                     .sender = token,
                                     .began = transport::Plans::stamp(peer, plan, send.bytes)};
        sent = core_.transport.send_inline(peer, header_of(kind::rendezvous, send.envelope), &data,
                                           sizeof data);
    }
    if (!sent) {
        return Step::no_space;
    }
    transport::Plans::sent(peer, plan, send.bytes);
    core_.count_sent(core_.rank.counts.rendezvous, send.peer, send.envelope, send.bytes);
    // Only data in one piece is fetched so that there is something to help with.
    if (!send.laid_out && transport::Offers::can_help(peer, send.bytes)) {
        send.sending.offered = true;
        core_.transport.offers().begin(peer, send.awaited);
    }
    return Step::gone;
}

Step Sender::advance_direct(Peer& peer, Request& send, const transport::Plan& plan) {
    SendState& state = send.sending;
    state.direct.announce(send.place());
    const DirectData data = {.send = reinterpret_cast<std::uint64_t>(&state.direct),
                             .bytes = send.bytes,
                             .began = transport::Plans::stamp(peer, plan, send.bytes)};
    if (!core_.transport.send_inline(peer, header_of(kind::direct, send.envelope), &data,
                                     sizeof data)) {
        return Step::no_space;
    }
    transport::Plans::sent(peer, plan, send.bytes);
    core_.count_sent(core_.rank.counts.direct, send.peer, send.envelope, send.bytes);
    state.offer = Offer::direct;
    direct_.add(send);
    return Step::gone;
}

std::size_t Sender::part_limit(const Peer& peer, const Request& send) const {
    const std::size_t limit = core_.transport.stream_block_limit(peer, send.bytes);
    return send.laid_out ? gap_part_limit(send.buffer, limit) : limit;
}

Step Sender::advance_stream(Peer& peer, Request& send) {
    const std::size_t limit = part_limit(peer, send);
    const std::uint32_t at_once = send.laid_out ? 1 : blocks_at_once;
    for (std::uint32_t blocks = 0; send.sending.moved < send.bytes; ++blocks) {
        // Let other sends take turns. This rank comes back whether there is space or not.
        if (blocks == at_once) {
            return Step::no_space;
        }
        // If no bounce buffer is free for long, use the pair's ring.
        if (!send_part(peer, send, limit) &&
            !(send.sending.without_blocks && send_part(peer, send, transport::ring_block_limit))) {
            return Step::no_space;
        }
    }
    core_.requests.complete(send);
    return Step::gone;
}

transport::Source Sender::pushed(const Request& send, std::uint64_t from) {
    return transport::Source(send.data + from).passing(send.sending.passes);
}

bool Sender::send_part(Peer& peer, Request& send, std::uint64_t limit) {
    SendState& state = send.sending;
    const std::uint64_t left = send.bytes - state.moved;
    const std::uint64_t bytes = left < limit ? left : limit;
    transport::Extra extra = {};
    transport::Header header = header_of(kind::stream_part, send.envelope);
    if (!state.streaming) {
        const StreamHead head = {
            .total = send.laid_out ? bytes : left, .token = state.answer_token, .began = 0};
        std::memcpy(extra, &head, sizeof head);
        header.kind = kind::answer_head;
    }
    const LaidOut data(send.buffer);
    if (!core_.transport.send_block(peer, header, extra,
                                    send.laid_out ? data.source(state.moved)
                                                  : pushed(send, state.moved),
                                    bytes, send.bytes)) {
        return false;
    }
    state.streaming = !send.laid_out; // of which each part is a stream of its own
    state.moved += bytes;
    return true;
}

void Sender::arrived_wanted(const transport::Arrival& arrival) {
    const auto data = payload_of<WantedData>(arrival);
    Request* send = core_.requests.of_token(data.sender);
    if (send == nullptr) {
        return;
    }
    withdrawals_.end(*send); // it comes too late
    if (send->fate == Fate::orphaned) {
        // There is nothing to send any more, nor to withdraw.
        const GivenUpData given_up = {.receiver = data.receiver};
        core_.answer(arrival.sender, kind::given_up, &given_up, sizeof given_up);
        core_.requests.complete(*send);
        return;
    }
    core_.end_offer(*send);
    SendState& state = send->sending;
    state.passes = state.passes || data.passes != 0;
    state.moved = data.from;
    send->bytes = data.to;
    state.answer_token = data.receiver;
    Peer& peer = core_.peers.of(arrival.sender);
    // (A send with gaps takes turns with others that are asked for next.)
    if (peer.first != nullptr || send->laid_out || advance(peer, *send) == Step::no_space) {
        core_.outbox.enqueue(peer, *send);
    }
}

void Sender::arrived_done(const transport::Arrival& arrival) {
    const auto data = payload_of<DoneData>(arrival);
    Request* send = core_.requests.of_token(data.sender);
    if (send == nullptr) {
        return;
    }
    if (data.withdrawn != 0) {
        withdrawals_.succeed(*send);
        return;
    }
    core_.end_offer(*send);
    withdrawals_.end(*send);
    core_.requests.complete(*send);
}

bool Sender::run_direct() {
    return direct_.run(core_.transport.copy(), [this](Request& send) {
        withdrawals_.end(send);
        core_.rank.profile.arrived(send.peer, false);
        core_.requests.complete(send);
    });
}

bool Sender::keep_rest(Request& send) {
    SendState& state = send.sending;
    const std::uint64_t left = send.bytes - state.moved;
    auto* rest = static_cast<std::byte*>(std::malloc(left));
    if (rest == nullptr) {
        return false;
    }
    if (send.laid_out) {
        send.buffer.type->pack_part(send.buffer.base, send.buffer.count,
                                    static_cast<MPI_Count>(state.moved),
                                    static_cast<MPI_Count>(left), rest);
    } else {
        std::memcpy(rest, send.data + state.moved, left);
    }
    std::free(state.packed);
    state.packed = rest;
    send.data = rest;
    send.laid_out = false;
    send.buffer = {rest, static_cast<MPI_Count>(left), &datatype::basic(MPI_BYTE)};
    send.bytes = left;
    state.moved = 0;
    return true;
}

} // namespace warren::message
