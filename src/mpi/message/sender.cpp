#include "mpi/message/sender.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "mpi/message/at_once.hpp"
#include "mpi/message/laid_out.hpp"
#include "mpi/message/payload.hpp"

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
} // namespace

void Sender::register_kinds(KindTable& kinds) {
    kinds.add<&Sender::arrived_wanted>(kind::wanted, *this);
    kinds.add<&Sender::arrived_done>(kind::done, *this);
}

void Sender::begin(Request& send) {
    core_.count(send.buffer, send.peer);
    Peer& peer = core_.peers.of(send.peer);
    if (peer.first != nullptr || advance(peer, send) == Step::no_room) {
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
    // Read once: the receiver may change its advice at any time.
    const bool chooses = choice_.has_choice(peer, send);
    const CopyMethod method = chooses ? CopyChoice::method(peer, send.bytes) : CopyMethod::push;
    const CopyMethod* const chosen = chooses ? &method : nullptr;
    if (choice_.goes_direct(peer, send, chosen)) {
        return advance_direct(peer, send, chooses);
    }
    // A buffered send should leave the program's buffer, whoever is late.
    if (send.operation == Operation::synchronous || send.sending.without_blocks ||
        CopyChoice::is_fetched(peer, send, chosen)) {
        return advance_offer(peer, send, chooses);
    }
    if (send.bytes > core_.transport.block_limit(peer) && !choice_.is_streamed(peer)) {
        return advance_offer(peer, send, false);
    }
    const Step step = advance_push(peer, send, chosen);
    return step == Step::no_room && is_kept_waiting(peer, send) ? advance_direct(peer, send, false)
                                                                : step;
}

// Whether a receiver outside MPI holds blocks for so long that this send goes direct instead, so
// that sends to others of this address space don't wait for blocks. (A sender that waits itself
// goes to sleep, and sends without blocks from then on.)
bool Sender::is_kept_waiting(const Peer& peer, Request& send) {
    if (!peer.same_space || send.awaited || send.bytes <= direct_limit) {
        return false;
    }
    const std::uint64_t now = node_time_ns();
    if (send.sending.waits_since == 0) {
        send.sending.waits_since = now;
    }
    return now - send.sending.waits_since > patience_ns;
}

Step Sender::advance_push(Peer& peer, Request& send, const CopyMethod* chosen) {
    const std::uint64_t bytes = send.bytes;
    if (bytes <= core_.transport.block_limit(peer)) {
        const bool sent = send.laid_out ? send_gaps(core_, peer, send.envelope, send.buffer)
                                        : send_piece(core_, peer, send.envelope, send.data, bytes);
        if (!sent) {
            return Step::no_room;
        }
        core_.requests.complete(send);
        return Step::gone;
    }
    std::byte extra[transport::extra_bytes] = {};
    send.sending.passes = chosen != nullptr && *chosen == CopyMethod::pass;
    const StreamHead stream = {.total = bytes,
                               .token = RequestTable::token_of(send),
                               .began =
                                   chosen != nullptr ? CopyChoice::stamp(peer, bytes, *chosen) : 0};
    std::memcpy(extra, &stream, sizeof stream);
    const LaidOut data(send.buffer);
    if (!core_.transport.send_block(peer, header_of(kind::stream_head, send.envelope), extra,
                                    send.laid_out ? data.source(0) : pushed(send, 0),
                                    part_limit(peer, send), bytes)) {
        return Step::no_room;
    }
    if (chosen != nullptr) {
        CopyChoice::used(peer, bytes);
    }
    return Step::gone;
}

Step Sender::advance_offer(Peer& peer, Request& send, bool counts) {
    send.sending.passes = false;
    RendezvousData data = offers_.describe(peer, send);
    const bool open = !counts && choice_.is_streamed(peer) && !send.laid_out &&
                      !send.sending.without_blocks && CopyMethodClass::is_long(send.bytes);
    data.began = counts ? CopyChoice::stamp(peer, send.bytes, CopyMethod::fetch)
                 : open ? Stamp::receivers_choice
                        : 0;
    if (!send.awaited) {
        Offers::say_not_awaited(peer); // before the receiver can see the offer
    }
    if (!core_.transport.send_inline(peer, header_of(kind::rendezvous, send.envelope), &data,
                                     sizeof data)) {
        return Step::no_room;
    }
    if (counts) {
        CopyChoice::used(peer, send.bytes);
    }
    offers_.begin(peer, send);
    return Step::gone;
}

Step Sender::advance_direct(Peer& peer, Request& send, bool counts) {
    SendState& state = send.sending;
    state.direct.announce(send.place());
    const DirectData data = {
        .send = reinterpret_cast<std::uint64_t>(&state.direct),
        .bytes = send.bytes,
        .began = counts ? CopyChoice::stamp(peer, send.bytes, CopyMethod::fetch) : 0};
    if (!core_.transport.send_inline(peer, header_of(kind::direct, send.envelope), &data,
                                     sizeof data)) {
        return Step::no_room;
    }
    if (counts) {
        CopyChoice::used(peer, send.bytes);
    }
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
        // Let other sends take turns. This rank comes back whether there is room or not.
        if (blocks == at_once) {
            return Step::no_room;
        }
        // If no bounce buffer is free for long, use the pair's ring.
        if (!send_part(peer, send, limit) &&
            !(send.sending.without_blocks && send_part(peer, send, transport::ring_block_limit))) {
            return Step::no_room;
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
    std::byte extra[transport::extra_bytes] = {};
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
    offers_.end(*send);
    SendState& state = send->sending;
    state.passes = state.passes || data.passes != 0;
    state.moved = data.from;
    send->bytes = data.to;
    state.answer_token = data.receiver;
    Peer& peer = core_.peers.of(arrival.sender);
    // (A send with gaps takes turns with others that are asked for next.)
    if (peer.first != nullptr || send->laid_out || advance(peer, *send) == Step::no_room) {
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
    offers_.end(*send);
    withdrawals_.end(*send);
    core_.requests.complete(*send);
}

void Sender::copied(Request& send) {
    withdrawals_.end(send);
    core_.requests.complete(send);
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
