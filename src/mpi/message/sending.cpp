// The sending half of the engine.

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "mpi/message/engine.hpp"
#include "mpi/message/laid_out.hpp"

namespace warren::message {

namespace {
// Small pieces of memory far apart bring whole cache lines with them.
std::size_t piece_of(const Buffer& buffer) {
    return static_cast<std::size_t>(buffer.type->size / buffer.type->block_count());
}
bool has_small_pieces(const Buffer& buffer) {
    return piece_of(buffer) < node::cache_line_bytes;
}

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

Error Engine::send(Operation mode, const Buffer& buffer, std::uint32_t peer_rank,
                   const Envelope& envelope) {
    if (mode != Operation::synchronous && send_now(buffer, peer_rank, envelope)) [[likely]] {
        return {};
    }
    Request* request = make();
    if (request == nullptr) {
        return fail(MPI_ERR_NO_MEM, "no memory for one more request");
    }
    prepare_send(*request, mode, buffer, peer_rank, envelope);
    Error error = start(*request, true);
    if (!error) {
        // Another thread of the rank may free the datatype meanwhile.
        datatype::retain(*buffer.type);
        wait(*request);
        datatype::release(*buffer.type);
    }
    discard(*request);
    return error;
}

bool Engine::send_block_at_once(Peer& peer, const Envelope& envelope,
                                const transport::Source& source, std::uint64_t bytes) {
    if (bytes <= transport_.whole_block_limit(peer)) {
        return transport_.send_block(peer, header_of(kind::eager, envelope), {}, source, bytes);
    }
    if (bytes > transport_.block_limit(peer)) {
        return false;
    }
    // If a message can't be fetched although that was chosen, it is pushed. It then counts in its
    // row but isn't measured.
    const bool counts = source.data() != nullptr && CopyMethodClass::has(bytes);
    const CopyMethod method = counts ? chosen_method(peer, bytes) : CopyMethod::push;
    std::byte extra[transport::extra_bytes] = {};
    const StreamHead stream = {
        .total = bytes,
        .token = 0,
        .began = counts && method != CopyMethod::fetch ? method_stamp(peer, bytes, method) : 0};
    std::memcpy(extra, &stream, sizeof stream);
    if (!transport_.send_block(peer, header_of(kind::stream_head, envelope), extra,
                               source.passing(method == CopyMethod::pass), bytes, bytes)) {
        return false;
    }
    if (counts) {
        method_used(peer, bytes);
    }
    return true;
}

CopyMethod Engine::chosen_method(const Peer& peer, std::uint64_t bytes) {
    const Advice advice = peer.pair_ring.advice();
    const std::uint32_t size_class = CopyMethodClass::of(bytes);
    return peer.bulk != nullptr && peer.bulk->methods != nullptr
               ? peer.bulk->methods->next(size_class, advice)
               : CopyMethodClass::advised(size_class, advice);
}

bool Engine::has_choice(const Peer& peer, const Request& send) const {
    return peer.pair_ring && (!peer.same_space || is_streamed(peer)) && !send.laid_out &&
           !send.fetched && send.operation != Operation::synchronous &&
           send.operation != Operation::buffered && CopyMethodClass::has(send.bytes) &&
           (send.awaited || !CopyMethodClass::is_long(send.bytes));
}

bool Engine::is_fetched(const Peer& peer, const Request& send, const CopyMethod* chosen) {
    if (chosen != nullptr) {
        return *chosen == CopyMethod::fetch;
    }
    return peer.pair_ring && !peer.same_space && !send.laid_out &&
           send.operation != Operation::buffered && CopyMethodClass::is_long(send.bytes) &&
           (peer.pair_ring.advice() & no_fetching) == 0;
}

std::uint64_t Engine::method_stamp(Peer& peer, std::uint64_t bytes, CopyMethod method) {
    std::unique_ptr<CopyMethods>& methods = bulk_of(peer).methods;
    if (methods == nullptr) [[unlikely]] {
        // Without memory nothing is measured.
        methods.reset(new (std::nothrow) CopyMethods);
    }
    return methods != nullptr ? methods->stamp(CopyMethodClass::of(bytes), method) : 0;
}

void Engine::method_used(Peer& peer, std::uint64_t bytes) {
    if (peer.bulk != nullptr && peer.bulk->methods != nullptr) {
        peer.bulk->methods->sent(CopyMethodClass::of(bytes), peer.pair_ring.advice());
    }
}

bool Engine::send_gaps_at_once(Peer& peer, const Envelope& envelope, const Buffer& buffer) {
    const auto bytes = static_cast<std::uint64_t>(buffer.bytes());
    if (bytes <= transport::inline_bytes) {
        std::byte packed[transport::inline_bytes];
        buffer.type->pack(buffer.base, buffer.count, packed);
        return transport_.send_inline(peer, header_of(kind::eager, envelope), packed, bytes);
    }
    if (const void* piece = buffer.type->one_piece(buffer.base, buffer.count)) {
        return !is_fetched(peer, bytes) && send_block_at_once(peer, envelope, piece, bytes);
    }
    if (bytes > direct_limit && !streams_gaps(peer, buffer)) {
        return false;
    }
    const LaidOut data(buffer);
    return send_block_at_once(peer, envelope, data.source(0), bytes);
}

bool Engine::streams_gaps(const Peer& peer, const Buffer& gaps) const {
    // A rank that reads small pieces of another's memory takes whole lines out of its caches, which
    // the owner soon needs for the data beside them. Then the owner should pack the data.
    return !peer.same_space || (is_streamed(peer) && has_small_pieces(gaps));
}

bool Engine::goes_direct(const Peer& peer, const Request& send, const CopyMethod* chosen) const {
    if (!peer.same_space) {
        return false;
    }
    if (send.operation == Operation::synchronous || send.fetched) {
        return true;
    }
    if (send.bytes <= direct_limit) {
        return false;
    }
    if (send.laid_out) {
        // (Data that doesn't fit a block would need its sender again, which may be computing.)
        return !streams_gaps(peer, send.buffer) ||
               (send.bytes > transport_.block_limit(peer) && !send.awaited);
    }
    return chosen != nullptr ? *chosen == CopyMethod::fetch
                             : !is_streamed(peer) || CopyMethodClass::has(send.bytes);
}

void Engine::prepare_send(Request& request, Operation mode, const Buffer& buffer,
                          std::uint32_t peer, const Envelope& envelope) {
    request.operation = mode;
    request.buffer = buffer;
    request.peer = peer;
    request.envelope = envelope;
}

Error Engine::start(Request& request, bool awaited) {
    request.awaited = awaited;
    Error error = begin(request);
    if (error) [[unlikely]] {
        request.complete = true;
        request.active = false;
    }
    return error;
}

Error Engine::begin(Request& request) {
    request.active = true;
    request.complete = false;
    request.moved = 0;
    request.streaming = false;
    request.passes = false;
    request.matched = false;
    request.fetched = false;
    request.answer_token = 0;
    request.offer = Offer::none;
    request.waits_since = 0;
    request.pieces = 0;
    request.offered = false;
    request.withdrawal = Withdrawal::none;
    request.outcome = {};
    request.find_data();
    if (request.operation == Operation::receive) {
        if (Unexpected* message = unexpected_.find(request.envelope)) {
            unexpected_.remove(*message);
            match_unexpected(*message, request);
        } else {
            posted_.post(request);
        }
        return {};
    }
    return begin_send(request);
}

Error Engine::begin_send(Request& request) {
    if (request.peer == rank_.index) [[unlikely]] {
        return send_to_self(request);
    }
    count(request.buffer, request.peer);
    Peer& peer = peer_of(request.peer);
    if (peer.first != nullptr || advance(peer, request) == Step::no_room) {
        enqueue(peer, request);
    }
    return {};
}

Engine::Step Engine::advance(Peer& peer, Request& send) {
    if (send.answer_token != 0) {
        return advance_stream(peer, send);
    }
    // Read once: the receiver may change its advice at any time.
    const bool chooses = has_choice(peer, send);
    const CopyMethod method = chooses ? chosen_method(peer, send.bytes) : CopyMethod::push;
    const CopyMethod* const chosen = chooses ? &method : nullptr;
    if (goes_direct(peer, send, chosen)) {
        return advance_direct(peer, send, chooses);
    }
    // A buffered send should leave the program's buffer, whoever is late.
    if (send.operation == Operation::synchronous || send.fetched ||
        is_fetched(peer, send, chosen)) {
        return advance_offer(peer, send, chooses);
    }
    if (send.bytes > transport_.block_limit(peer) && !is_streamed(peer)) {
        return advance_offer(peer, send, false);
    }
    const Step step = advance_push(peer, send, chosen);
    return step == Step::no_room && is_kept_waiting(peer, send) ? advance_direct(peer, send, false)
                                                                : step;
}

// Whether a receiver outside MPI holds blocks for so long that this send goes direct instead, so
// that sends to others of this address space don't wait for blocks. (A sender that waits itself
// goes to sleep, and sends without blocks from then on.)
bool Engine::is_kept_waiting(const Peer& peer, Request& send) {
    if (!peer.same_space || send.awaited || send.bytes <= direct_limit) {
        return false;
    }
    const std::uint64_t now = node_time_ns();
    if (send.waits_since == 0) {
        send.waits_since = now;
    }
    return now - send.waits_since > patience_ns;
}

Engine::Step Engine::advance_push(Peer& peer, Request& send, const CopyMethod* chosen) {
    const std::uint64_t bytes = send.bytes;
    if (bytes <= transport_.block_limit(peer)) {
        const bool sent = send.laid_out ? send_gaps_at_once(peer, send.envelope, send.buffer)
                                        : send_at_once(peer, send.envelope, send.data, bytes);
        if (!sent) {
            return Step::no_room;
        }
        complete(send);
        return Step::gone;
    }
    std::byte extra[transport::extra_bytes] = {};
    send.passes = chosen != nullptr && *chosen == CopyMethod::pass;
    const StreamHead stream = {.total = bytes,
                               .token = token_of(send),
                               .began = chosen != nullptr ? method_stamp(peer, bytes, *chosen) : 0};
    std::memcpy(extra, &stream, sizeof stream);
    const LaidOut data(send.buffer);
    if (!transport_.send_block(peer, header_of(kind::stream_head, send.envelope), extra,
                               send.laid_out ? data.source(0) : pushed(send, 0),
                               part_limit(peer, send), bytes)) {
        return Step::no_room;
    }
    if (chosen != nullptr) {
        method_used(peer, bytes);
    }
    return Step::gone;
}

Engine::Step Engine::advance_offer(Peer& peer, Request& send, bool counts) {
    send.passes = false;
    RendezvousData data = offer(peer, send);
    const bool open = !counts && is_streamed(peer) && !send.laid_out && !send.fetched &&
                      CopyMethodClass::is_long(send.bytes);
    data.began = counts ? method_stamp(peer, send.bytes, CopyMethod::fetch)
                 : open ? Stamp::receivers_choice
                        : 0;
    if (peer.bulk != nullptr && peer.bulk->told && !send.awaited) {
        // Before the receiver can see the offer.
        peer.bulk->told = false;
        peer.pair_ring.set_awaits(false);
    }
    if (!transport_.send_inline(peer, header_of(kind::rendezvous, send.envelope), &data,
                                sizeof data)) {
        return Step::no_room;
    }
    if (counts) {
        method_used(peer, send.bytes);
    }
    start_helping(peer, send);
    return Step::gone;
}

std::size_t Engine::part_limit(const Peer& peer, const Request& send) const {
    const std::size_t limit = transport_.stream_block_limit(peer, send.bytes);
    return send.laid_out ? gap_part_limit(send.buffer, limit) : limit;
}

Engine::Step Engine::advance_stream(Peer& peer, Request& send) {
    const std::size_t limit = part_limit(peer, send);
    const std::uint32_t at_once = send.laid_out ? 1 : blocks_at_once;
    for (std::uint32_t blocks = 0; send.moved < send.bytes; ++blocks) {
        // Let other sends take turns. This rank comes back whether there is room or not.
        if (blocks == at_once) {
            return Step::no_room;
        }
        // If no bounce buffer is free for long, use the pair's ring.
        if (!send_part(peer, send, limit) &&
            !(send.fetched && send_part(peer, send, transport::ring_block_limit))) {
            return Step::no_room;
        }
    }
    complete(send);
    return Step::gone;
}

Engine::Step Engine::advance_direct(Peer& peer, Request& send, bool counts) {
    send.direct.announce(send.place());
    const DirectData data = {.send = reinterpret_cast<std::uint64_t>(&send.direct),
                             .bytes = send.bytes,
                             .began =
                                 counts ? method_stamp(peer, send.bytes, CopyMethod::fetch) : 0};
    if (!transport_.send_inline(peer, header_of(kind::direct, send.envelope), &data, sizeof data)) {
        return Step::no_room;
    }
    if (counts) {
        method_used(peer, send.bytes);
    }
    send.offer = Offer::direct;
    send.next_direct = direct_;
    direct_ = &send;
    return Step::gone;
}

bool Engine::run_direct() {
    bool moved = false;
    for (Request** link = &direct_; *link != nullptr;) {
        Request& send = **link;
        if (send.direct.has_finished()) {
            *link = send.next_direct;
            end_withdrawal(send);
            complete(send); // which may end it
            moved = true;
        } else {
            moved |= send.direct.help(transport_.copy());
            link = &send.next_direct;
        }
    }
    return moved;
}

transport::Source Engine::pushed(const Request& send, std::uint64_t from) {
    return transport::Source(send.data + from).passing(send.passes);
}

bool Engine::send_part(Peer& peer, Request& send, std::uint64_t limit) {
    const std::uint64_t left = send.bytes - send.moved;
    const std::uint64_t bytes = left < limit ? left : limit;
    std::byte extra[transport::extra_bytes] = {};
    transport::Header header = header_of(kind::stream_part, send.envelope);
    if (!send.streaming) {
        const StreamHead head = {
            .total = send.laid_out ? bytes : left, .token = send.answer_token, .began = 0};
        std::memcpy(extra, &head, sizeof head);
        header.kind = kind::answer_head;
    }
    const LaidOut data(send.buffer);
    if (!transport_.send_block(peer, header, extra,
                               send.laid_out ? data.source(send.moved) : pushed(send, send.moved),
                               bytes, send.bytes)) {
        return false;
    }
    send.streaming = !send.laid_out; // of which each part is a stream of its own
    send.moved += bytes;
    return true;
}

void Engine::enqueue(Peer& peer, Outgoing& outgoing) {
    outgoing.next = nullptr;
    if (peer.first == nullptr) {
        peer.first = &outgoing;
        peer.next_waiting = waiting_;
        waiting_ = &peer;
    } else {
        peer.last->next = &outgoing;
    }
    peer.last = &outgoing;
    ++waiting_sends_;
    rank_.wake_threads(); // a thread that sleeps for all has not asked for this room
}

bool Engine::push_waiting() {
    bool moved = false;
    takes_turns_ = false;
    Peer** link = &waiting_;
    while (*link != nullptr) {
        Peer& peer = **link;
        moved |= push_peer(peer);
        if (peer.first == nullptr) {
            *link = peer.next_waiting;
        } else {
            link = &peer.next_waiting;
        }
    }
    return moved;
}

bool Engine::push_peer(Peer& peer) {
    bool moved = false;
    std::uint32_t parts = 0;
    while (peer.first != nullptr) {
        Outgoing* outgoing = peer.first;
        // Taken out before it may complete: whoever completes it may free it.
        Outgoing* next = outgoing->next;
        if (outgoing->is_answer) {
            auto* answer = static_cast<Answer*>(outgoing);
            if (!transport_.send_inline(peer, answer->header, answer->payload, answer->length)) {
                return moved;
            }
            delete answer;
        } else {
            auto* send = static_cast<Request*>(outgoing);
            const std::uint64_t before = send->moved;
            if (advance(peer, *send) == Step::no_room) {
                if (!send->laid_out || send->moved == before) {
                    return moved || send->moved != before;
                }
                moved = true;
                put_last(peer);
                if (++parts < parts_per_turn) {
                    continue;
                }
                takes_turns_ = true;
                return true;
            }
        }
        peer.first = next;
        --waiting_sends_;
        moved = true;
    }
    return moved;
}

void Engine::put_last(Peer& peer) {
    Outgoing* first = peer.first;
    if (first->next != nullptr) {
        peer.first = std::exchange(first->next, nullptr);
        peer.last->next = first;
        peer.last = first;
    }
}

bool Engine::take_back(Peer& peer, Request& send) {
    Outgoing* before = nullptr;
    Outgoing* found = peer.first;
    while (found != nullptr && found != &send) {
        before = found;
        found = found->next;
    }
    if (found == nullptr) {
        return false;
    }
    (before != nullptr ? before->next : peer.first) = send.next;
    if (peer.last == &send) {
        peer.last = before;
    }
    --waiting_sends_;
    if (peer.first == nullptr) {
        unlink_waiting(peer);
    }
    return true;
}

bool Engine::keep_rest(Request& send) {
    const std::uint64_t left = send.bytes - send.moved;
    auto* rest = static_cast<std::byte*>(std::malloc(left));
    if (rest == nullptr) {
        return false;
    }
    if (send.laid_out) {
        send.buffer.type->pack_part(send.buffer.base, send.buffer.count,
                                    static_cast<MPI_Count>(send.moved),
                                    static_cast<MPI_Count>(left), rest);
    } else {
        std::memcpy(rest, send.data + send.moved, left);
    }
    std::free(send.packed);
    send.packed = rest;
    send.data = rest;
    send.laid_out = false;
    send.buffer = {rest, static_cast<MPI_Count>(left), &datatype::basic(MPI_BYTE)};
    send.bytes = left;
    send.moved = 0;
    return true;
}

void Engine::withdraw(Request& send) {
    if (withdrawn_ == nullptr) {
        // Before look_for_left(): pairs with the fence of who leaves.
        rank_.bootstrap().add(node::JobCount::withdrawing, 1);
    }
    send.withdrawal = Withdrawal::asked;
    send.previous_withdrawn = nullptr;
    send.next_withdrawn = withdrawn_;
    if (withdrawn_ != nullptr) {
        withdrawn_->previous_withdrawn = &send;
    }
    withdrawn_ = &send;
    stop_helping(send);
    const Token token = token_of(send);
    const WithdrawnData data = {
        .send = send.offer == Offer::direct ? reinterpret_cast<std::uint64_t>(&send.direct) : token,
        .sender = token};
    tell(send.peer, header_of(kind::withdrawn, send.envelope), &data, sizeof data);
}

void Engine::end_withdrawal(Request& send) {
    if (send.withdrawal == Withdrawal::none || send.withdrawal == Withdrawal::over) [[likely]] {
        return;
    }
    send.withdrawal = Withdrawal::over;
    Request* const next = send.next_withdrawn;
    Request* const previous = send.previous_withdrawn;
    (previous != nullptr ? previous->next_withdrawn : withdrawn_) = next;
    if (next != nullptr) {
        next->previous_withdrawn = previous;
    }
    if (withdrawn_ == nullptr) {
        rank_.bootstrap().add(node::JobCount::withdrawing, -1);
    }
}

void Engine::end_withdrawn(Request& send) {
    end_withdrawal(send);
    if (send.offer == Offer::direct) {
        Request** link = &direct_;
        while (*link != &send) {
            link = &(*link)->next_direct;
        }
        *link = send.next_direct;
    }
    send.outcome.cancelled = true;
    complete(send); // which may end it
}

void Engine::unlink_waiting(const Peer& peer) {
    Peer** link = &waiting_;
    while (*link != &peer) {
        link = &(*link)->next_waiting;
    }
    *link = peer.next_waiting;
}

void Engine::tell(std::uint32_t to, const transport::Header& header, const void* data,
                  std::size_t bytes) {
    Peer& peer = peer_of(to);
    if (peer.first == nullptr && transport_.send_inline(peer, header, data, bytes)) {
        return;
    }
    auto* waiting = new Answer;
    waiting->header = header;
    waiting->length = static_cast<std::uint8_t>(bytes);
    std::memcpy(waiting->payload, data, bytes);
    enqueue(peer, *waiting);
}

Error Engine::send_to_self(Request& request) {
    if (Request* receive = posted_.match(request.envelope)) {
        deliver_own(*receive, request.envelope, request);
        complete(request);
        return {};
    }
    // A synchronous send waits for its receive, as does a large buffered send, whose data is
    // already in the attached buffer. All others leave a copy of their data and complete.
    const bool leaves_data =
        request.operation != Operation::synchronous &&
        (request.operation != Operation::buffered || request.bytes <= own_copy_limit);
    Unexpected* message =
        leaves_data ? unexpected_.make(request.bytes) : unexpected_.make_announced(0);
    if (message == nullptr) {
        return fail(MPI_ERR_NO_MEM, "no memory for a message of %llu bytes to the rank itself",
                    static_cast<unsigned long long>(request.bytes));
    }
    message->envelope = request.envelope;
    message->sender = rank_.index;
    message->bytes = request.bytes;
    if (leaves_data) {
        if (request.laid_out) {
            request.buffer.type->pack(request.buffer.base, request.buffer.count, message->data);
        } else if (request.bytes > 0) {
            std::memcpy(message->data, request.data, request.bytes);
        }
        unexpected_.add(*message);
        complete(request);
    } else {
        message->form = Unexpected::Form::own;
        message->announced.own = &request;
        unexpected_.add(*message);
        rank_.wake_threads(); // another thread may probe for it
    }
    return {};
}

} // namespace warren::message
