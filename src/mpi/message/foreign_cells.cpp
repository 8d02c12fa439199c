#include "mpi/message/foreign_cells.hpp"

#include "mpi/message/payload.hpp"

namespace warren::message {

namespace {

// Whether a token is of no request any more, or of one that a condition holds for.
template <typename Condition>
bool none_or(Core& core, Token token, Condition condition) {
    const Request* request = core.requests.of_token(token);
    return request == nullptr || condition(*request);
}

bool is_sound_want(const Request& send, const WantedData& wanted) {
    return send.is_send() && wanted.from <= wanted.to && wanted.to <= send.bytes;
}

} // namespace

namespace {

// Cells that cross both: messages, and what is said about them.
bool is_sound_message(Core& core, const transport::Arrival& arrival) {
    const auto receives = [](const Request& request) { return request.is_receive(); };
    const auto sends = [](const Request& request) { return request.is_send(); };
    switch (arrival.header.kind) {
    case kind::eager:
    case kind::withdrawn:
        return true; // which believe nothing
    case kind::stream_head:
        return head_of(arrival).total >= arrival.block_bytes;
    case kind::stream_part:
        return core.peers.of(arrival.sender).inbound().left >= arrival.bytes;
    case kind::answer_head:
        return head_of(arrival).total >= arrival.bytes &&
               none_or(core, head_of(arrival).token, receives);
    case kind::rendezvous:
        return payload_of<RendezvousData>(arrival).memory.address == 0;
    case kind::done:
        return none_or(core, payload_of<DoneData>(arrival).sender, sends);
    case kind::given_up:
        return none_or(core, payload_of<GivenUpData>(arrival).receiver, receives);
    case kind::wanted: {
        const auto wanted = payload_of<WantedData>(arrival);
        return none_or(core, wanted.sender,
                       [&](const Request& send) { return is_sound_want(send, wanted); });
    }
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
