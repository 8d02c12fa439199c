#include "mpi/message/foreign_cells.hpp"

#include "mpi/message/payload.hpp"

namespace warren::message {

namespace {

// The request that a token names; null: it has ended, so what is said of it comes late.
const Request* request_of(const Core& core, Token token) {
    return core.requests.of_token(token);
}

bool waits_for_space(Core& core, const Request& send) {
    const Outgoing* waiting = core.peers.of(send.peer).first;
    while (waiting != nullptr && waiting != &send) {
        waiting = waiting->next;
    }
    return waiting != nullptr;
}

// Whether a send has been announced to this peer, which has not asked for its data yet.
bool is_announced(Core& core, const Request& send, std::uint32_t peer) {
    return send.is_send() && !send.complete && send.peer == peer &&
           send.sending.answer_token == 0 && !waits_for_space(core, send);
}

// Whether a receive has asked this peer for data (Receiver::ask_for_rest).
bool has_asked(const Request& receive, std::uint32_t peer) {
    return receive.is_receive() && !receive.complete && receive.receiving.matched &&
           receive.peer == peer;
}

bool is_sound_done(Core& core, const DoneData& done, std::uint32_t peer) {
    const Request* const send = request_of(core, done.sender);
    if (send == nullptr) {
        return true;
    }
    const bool may_be_withdrawn =
        send->is_send() && (send->sending.withdrawal == Withdrawal::asked ||
                            send->sending.withdrawal == Withdrawal::left);
    return is_announced(core, *send, peer) && (done.withdrawn == 0 || may_be_withdrawn);
}

bool is_sound_want(Core& core, const WantedData& wanted, std::uint32_t peer) {
    const Request* const send = request_of(core, wanted.sender);
    return send == nullptr || (is_announced(core, *send, peer) && wanted.receiver != 0 &&
                               wanted.from <= wanted.to && wanted.to <= send->bytes);
}

// No stream begins before the last one of its sender has ended.
bool is_sound_answer(Core& core, const transport::Arrival& arrival) {
    const StreamHead head = head_of(arrival);
    const Request* const receive = request_of(core, head.token);
    return head.total >= arrival.bytes && core.peers.of(arrival.sender).inbound().left == 0 &&
           (receive == nullptr || has_asked(*receive, arrival.sender));
}

// A stream that arrives is not given up.
bool is_sound_end(Core& core, const GivenUpData& end, std::uint32_t peer) {
    const Request* const receive = request_of(core, end.receiver);
    return receive == nullptr ||
           (has_asked(*receive, peer) && core.peers.of(peer).inbound().receive != receive);
}

// Cells that cross both: messages, and what is said about them.
bool is_sound_message(Core& core, const transport::Arrival& arrival) {
    switch (arrival.header.kind) {
    case kind::eager:
    case kind::withdrawn:
        return true; // which believe nothing
    case kind::stream_head:
        return head_of(arrival).total >= arrival.block_bytes &&
               core.peers.of(arrival.sender).inbound().left == 0;
    case kind::stream_part:
        return core.peers.of(arrival.sender).inbound().left >= arrival.bytes;
    case kind::answer_head:
        return is_sound_answer(core, arrival);
    case kind::rendezvous:
        return payload_of<RendezvousData>(arrival).memory.address == 0;
    case kind::done:
        return is_sound_done(core, payload_of<DoneData>(arrival), arrival.sender);
    case kind::given_up:
        return is_sound_end(core, payload_of<GivenUpData>(arrival), arrival.sender);
    case kind::wanted:
        return is_sound_want(core, payload_of<WantedData>(arrival), arrival.sender);
    default:
        return false;
    }
}

// Streams come in blocks, with a head.
bool has_its_head(const transport::Arrival& arrival) {
    const transport::CellKind kind = arrival.header.kind;
    return arrival.extra != nullptr || (kind != kind::stream_head && kind != kind::answer_head);
}

} // namespace

bool may_cross_nodes(Core& core, const transport::Arrival& arrival) {
    switch (arrival.header.kind) {
    case kind::farewell:
    case kind::window_request:
    case kind::window_notice:
        return true; // which believe nothing
    default:
        return has_its_head(arrival) && is_sound_message(core, arrival);
    }
}

bool may_cross_worlds(Core& core, const transport::Arrival& arrival) {
    switch (arrival.header.kind) {
    case kind::port_request:
    case kind::port_answer:
        return true; // which believe nothing
    default:
        return has_its_head(arrival) && is_sound_message(core, arrival);
    }
}

} // namespace warren::message
