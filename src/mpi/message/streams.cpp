// Streams that arrive at a Receiver: the blocks of one sender never mix, so that a peer has one
// stream at a time (Inbound).

#include <algorithm>
#include <utility>

#include "mpi/message/payload.hpp"
#include "mpi/message/receiver.hpp"

namespace warren::message {

void Receiver::arrived_stream_head(const transport::Arrival& arrival) {
    Peer& peer = core_.peers.of(arrival.sender);
    const Envelope envelope = envelope_of(arrival.header);
    const StreamHead stream = head_of(arrival);
    Inbound& inbound = peer.inbound();
    inbound = {.left = arrival.block_bytes};
    Request* receive = posted_.match(envelope);
    inbound.trial = transport::Plans::trial(stream.began, receive == nullptr);
    if (receive != nullptr) {
        accept(*receive, envelope, stream.total);
        receive->receiving.moved = 0;
        // Ask before copying the head, so that the rest is under way meanwhile.
        receive->receiving.streaming =
            stream.total > arrival.block_bytes &&
            ask_for_rest(*receive, arrival.sender, stream.token, arrival.block_bytes);
        if (receive->receiving.streaming) {
            // The message is complete with the last byte of the rest.
            receive->receiving.trial = std::exchange(inbound.trial, {});
        }
        inbound.receive = receive;
    } else {
        Unexpected* message = unexpected_.make_announced(arrival.block_bytes);
        if (message == nullptr) {
            no_memory_for_unexpected(core_.rank, arrival.block_bytes);
        }
        message->form = Unexpected::Form::arriving;
        message->envelope = envelope;
        message->sender = arrival.sender;
        message->bytes = stream.total;
        message->announced.head_bytes = arrival.block_bytes;
        message->announced.token = stream.token;
        if (stream.total > arrival.block_bytes) {
            message->announced.began = stream.began;
            inbound.trial = {};
        }
        keep(*message);
        inbound.message = message;
    }
    take_inbound(peer, arrival.data, arrival.bytes);
}

void Receiver::receive_head(Unexpected& message, Request& receive) {
    accept(receive, message.envelope, message.bytes);
    receive.receiving.moved = message.announced.head_bytes;
    receive.receiving.trial = transport::Plans::trial(message.announced.began, true);
    if (receive.outcome.bytes > 0) { // else there may be no memory at all
        place(receive, 0, message.data, std::min(message.announced.head_bytes, receive.kept()));
    }
    if (!ask_for_rest(receive, message.sender, message.announced.token,
                      message.announced.head_bytes)) {
        core_.requests.complete(receive);
    }
}

bool Receiver::ask_for_rest(Request& receive, std::uint32_t sender, Token token,
                            std::uint64_t there, bool passes) {
    const std::uint64_t wanted_bytes = receive.kept();
    if (wanted_bytes <= there) {
        const DoneData done = {.sender = token, .withdrawn = 0};
        core_.answer(sender, kind::done, &done, sizeof done);
        return false;
    }
    receive.peer = sender; // who may answer (foreign_cells.cpp)
    const WantedData wanted = {.sender = token,
                               .receiver = RequestTable::token_of(receive),
                               .from = there,
                               .to = wanted_bytes,
                               .passes = passes ? 1U : 0U};
    core_.answer(sender, kind::wanted, &wanted, sizeof wanted);
    return true;
}

// The sender of a message that has been asked for has given up.
void Receiver::arrived_given_up(const transport::Arrival& arrival) {
    Request* receive = core_.requests.of_token(payload_of<GivenUpData>(arrival).receiver);
    if (receive == nullptr) {
        return;
    }
    receive->outcome.error_class = MPI_ERR_OTHER;
    transport::Plans::given_up(core_.peers.of(arrival.sender), receive->receiving.trial);
    core_.requests.complete(*receive);
}

void Receiver::arrived_stream_part(const transport::Arrival& arrival) {
    take_inbound(core_.peers.of(arrival.sender), arrival.data, arrival.bytes);
}

void Receiver::arrived_answer_head(const transport::Arrival& arrival) {
    Peer& peer = core_.peers.of(arrival.sender);
    const StreamHead stream = head_of(arrival);
    Inbound& inbound = peer.inbound();
    inbound = {.receive = core_.requests.of_token(stream.token), .left = stream.total};
    if (Request* receive = inbound.receive) {
        // Each part of data with gaps comes as a stream of its own.
        ReceiveState& state = receive->receiving;
        state.streaming = state.moved + stream.total < receive->kept();
        if (!state.streaming) {
            inbound.trial = state.trial;
        }
    }
    take_inbound(peer, arrival.data, arrival.bytes);
}

void Receiver::take_inbound(Peer& peer, const std::byte* data, std::uint64_t bytes) {
    Inbound& inbound = peer.inbound();
    if (Request* receive = inbound.receive) {
        std::uint64_t& moved = receive->receiving.moved;
        const std::uint64_t limit = receive->kept();
        if (moved < limit) {
            const std::uint64_t room = limit - moved;
            place(*receive, moved, data, bytes < room ? bytes : room);
        }
        moved += bytes;
    } else if (Unexpected* message = inbound.message) {
        core_.transport.copy().get(message->data + message->announced.arrived, data, bytes,
                                   message->announced.head_bytes);
        message->announced.arrived += bytes;
    }
    inbound.left -= bytes;
    if (inbound.left == 0) {
        if (inbound.trial.began != 0) [[unlikely]] {
            core_.transport.plans().arrived(
                peer,
                inbound.message != nullptr
                    ? inbound.message->bytes
                    : static_cast<std::uint64_t>(inbound.receive->outcome.available),
                inbound.trial);
        }
        const Inbound ended = inbound;
        inbound = {};
        end_stream(ended);
    }
}

void Receiver::end_stream(const Inbound& inbound) {
    if (Request* receive = inbound.receive) {
        if (!receive->receiving.streaming) {
            core_.requests.complete(*receive);
        }
        return;
    }
    Unexpected* message = inbound.message;
    if (message == nullptr) {
        return;
    }
    message->form = message->announced.head_bytes == message->bytes ? Unexpected::Form::whole
                                                                    : Unexpected::Form::head;
    if (message->announced.taker != nullptr) {
        receive_unexpected(*message, *message->announced.taker);
    }
}

} // namespace warren::message
