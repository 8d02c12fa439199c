#include "mpi/message/receiver.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "mpi/datatype/copy_blocks.hpp"
#include "mpi/message/payload.hpp"

namespace warren::message {

void no_memory_for_unexpected(const Rank& rank, std::uint64_t bytes) {
    char text[160];
    std::snprintf(text, sizeof text,
                  "no memory for an unexpected message of %llu bytes (post its receive earlier, or "
                  "raise the memory limit)",
                  static_cast<unsigned long long>(bytes));
    std::fprintf(stderr, "warren: rank %u: %s\n", rank.world_rank, text);
    rank.bootstrap().abort(node::JobEnd::fatal_error, 1, text);
    std::_Exit(1);
}

void Receiver::register_kinds(KindTable& kinds) {
    kinds.add<&Receiver::arrived_stream_head>(kind::stream_head, *this);
    kinds.add<&Receiver::arrived_stream_part>(kind::stream_part, *this);
    kinds.add<&Receiver::arrived_answer_head>(kind::answer_head, *this);
    kinds.add<&Receiver::arrived_rendezvous>(kind::rendezvous, *this);
    kinds.add<&Receiver::arrived_rendezvous_list>(kind::rendezvous_list, *this);
    kinds.add<&Receiver::arrived_direct>(kind::direct, *this);
    kinds.add<&Receiver::arrived_withdrawn>(kind::withdrawn, *this);
    kinds.add<&Receiver::arrived_given_up>(kind::given_up, *this);
}

void Receiver::judge_length(Request& receive) {
    message::Outcome& outcome = receive.outcome;
    if (outcome.bytes > static_cast<MPI_Count>(receive.bytes)) {
        outcome.bytes = static_cast<MPI_Count>(receive.bytes);
        outcome.error_class = MPI_ERR_TRUNCATE;
    } else if (receive.buffer.type->elements_in(outcome.bytes) == MPI_UNDEFINED) {
        outcome.error_class = MPI_ERR_TYPE; // no sequence of the type's elements is so long
    }
}

void Receiver::deliver_own(Request& receive, const Envelope& envelope, const Request& send) {
    accept(receive, envelope, send.bytes);
    datatype::copy_data(send.buffer, receive.buffer, 0, receive.outcome.bytes);
    core_.requests.complete(receive);
}

void Receiver::place(const Request& receive, std::uint64_t first, const std::byte* data,
                     std::uint64_t bytes) {
    if (receive.laid_out) {
        LaidOut(receive.buffer).take(first, data, bytes);
    } else if (receive.outcome.bytes >= datatype::cache_bytes) {
        datatype::stream_block(receive.data + first, data, bytes);
        datatype::stream_fence();
    } else {
        core_.transport.copy().get(receive.data + first, data, bytes, receive.kept());
    }
}

void Receiver::keep(Unexpected& message) {
    unexpected_.add(message);
    core_.rank.counts.unexpected.add(message.bytes);
    if (Observer* observer = core_.rank.lock.observer.load(std::memory_order_relaxed))
        [[unlikely]] {
        observer->message_kept({.source = message.sender,
                                .tag = message.envelope.tag,
                                .context = message.envelope.context,
                                .bytes = message.bytes,
                                .length = unexpected_.count(),
                                .queued_bytes = unexpected_.bytes()});
    }
}

void Receiver::arrived_unexpected(const transport::Arrival& arrival) {
    Unexpected* message = unexpected_.make(arrival.bytes);
    if (message == nullptr) {
        no_memory_for_unexpected(core_.rank, arrival.bytes);
    }
    message->envelope = envelope_of(arrival.header);
    message->sender = arrival.sender;
    std::memcpy(message->data, arrival.data, arrival.bytes);
    keep(*message);
}

Unexpected& Receiver::keep_announced(Unexpected::Form form, const Envelope& envelope,
                                     std::uint32_t sender, std::uint64_t bytes) {
    Unexpected* message = unexpected_.make_announced(0);
    if (message == nullptr) {
        no_memory_for_unexpected(core_.rank, sizeof(Unexpected));
    }
    message->form = form;
    message->envelope = envelope;
    message->sender = sender;
    message->bytes = bytes;
    keep(*message);
    return *message;
}

void Receiver::arrived_withdrawn(const transport::Arrival& arrival) {
    const auto data = payload_of<WithdrawnData>(arrival);
    Unexpected* message =
        unexpected_.find_announced(envelope_of(arrival.header), arrival.sender, data.send);
    if (message == nullptr) {
        return; // it has been received after all, and answered
    }
    unexpected_.remove(*message);
    unexpected_.destroy(*message);
    // Also for a rank of this address space: its send may no longer exist, if this rank had left
    // MPI and has come back.
    const DoneData done = {.sender = data.sender, .withdrawn = 1};
    core_.answer(arrival.sender, kind::done, &done, sizeof done);
}

void Receiver::receive_unexpected(Unexpected& message, Request& receive) {
    switch (message.form) {
    case Unexpected::Form::whole:
        take_whole(receive, message.envelope, message.data, message.bytes);
        core_.requests.complete(receive);
        break;
    case Unexpected::Form::arriving:
        accept(receive, message.envelope, message.bytes);
        message.announced.taker = &receive;
        return; // the stream's end comes back here, and destroys it
    case Unexpected::Form::head:
        receive_head(message, receive);
        break;
    case Unexpected::Form::rendezvous:
    case Unexpected::Form::listed:
        fetch(receive, message.envelope, message.sender,
              {.memory = message.announced.memory,
               .sender = message.announced.token,
               .bytes = message.bytes,
               .listed = message.form == Unexpected::Form::listed,
               .began = message.announced.began},
              true);
        break;
    case Unexpected::Form::direct:
        receive_direct(receive, message.envelope, message.sender,
                       {.send = message.announced.direct,
                        .bytes = message.bytes,
                        .began = message.announced.began},
                       true);
        break;
    case Unexpected::Form::own: {
        Request& send = *message.announced.own;
        deliver_own(receive, message.envelope, send);
        core_.requests.complete(send);
        break;
    }
    }
    unexpected_.destroy(message);
}

Error Receiver::send_to_self(Request& send) {
    core_.count_sent(core_.rank.counts.to_self, send.peer, send.envelope, send.bytes);
    if (Request* receive = posted_.match(send.envelope)) {
        deliver_own(*receive, send.envelope, send);
        core_.requests.complete(send);
        return {};
    }
    // A synchronous send waits for its receive, as does a large buffered send, whose data is
    // already in the attached buffer. All others leave a copy of their data and complete.
    const bool leaves_data =
        send.operation != Operation::synchronous &&
        (send.operation != Operation::buffered || send.bytes <= own_copy_limit);
    Unexpected* message =
        leaves_data ? unexpected_.make(send.bytes) : unexpected_.make_announced(0);
    if (message == nullptr) {
        return fail(MPI_ERR_NO_MEM, "no memory for a message of %llu bytes to the rank itself",
                    static_cast<unsigned long long>(send.bytes));
    }
    message->envelope = send.envelope;
    message->sender = core_.rank.index;
    message->bytes = send.bytes;
    if (leaves_data) {
        if (send.laid_out) {
            send.buffer.type->pack(send.buffer.base, send.buffer.count, message->data);
        } else if (send.bytes > 0) {
            std::memcpy(message->data, send.data, send.bytes);
        }
        keep(*message);
        core_.requests.complete(send);
    } else {
        message->form = Unexpected::Form::own;
        message->announced.own = &send;
        keep(*message);
        core_.rank.wake_threads(); // another thread may probe for it
    }
    return {};
}

bool Receiver::cancel_own(Request& send) {
    Unexpected* message = unexpected_.find_announced(send.envelope, send.peer,
                                                     reinterpret_cast<std::uint64_t>(&send));
    if (message == nullptr) {
        return false;
    }
    unexpected_.remove(*message);
    unexpected_.destroy(*message);
    return true;
}

} // namespace warren::message
