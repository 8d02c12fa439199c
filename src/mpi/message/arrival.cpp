// The receiving half of the engine.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "mpi/datatype/copy_blocks.hpp"
#include "mpi/message/engine.hpp"
#include "mpi/message/laid_out.hpp"
#include "mpi/transport/shm/copy.hpp"

namespace warren::message {

namespace {
// Ends the job after a failed allocation that no call can report: the message has arrived, and MPI
// can't refuse it.
[[noreturn]] void out_of_memory(const Rank& rank, std::uint64_t bytes) {
    char text[160];
    std::snprintf(text, sizeof text,
                  "no memory for an unexpected message of %llu bytes (post its receive earlier, or "
                  "raise the memory limit)",
                  static_cast<unsigned long long>(bytes));
    std::fprintf(stderr, "warren: rank %u: %s\n", rank.world_rank, text);
    rank.bootstrap().abort(node::JobEnd::fatal_error, 1, text);
    std::_Exit(1);
}

Envelope envelope_of(const transport::Header& header) {
    return {.context = header.context, .source = header.source, .tag = header.tag};
}

// State of a message that is pushed, and looked at now.
Trial trial_of(std::uint64_t stamp, bool unexpected) {
    return {.began = Stamp::time(stamp),
            .looked = node_time_ns(),
            .ended = 0,
            .unexpected = unexpected,
            .resting = Stamp::resting(stamp),
            .method = Stamp::method(stamp)};
}

// State of a message that the receiver copies out of the sender's memory.
Trial trial_of_fetch(std::uint64_t stamp, bool unexpected) {
    Trial trial = trial_of(stamp, unexpected);
    trial.method = CopyMethod::fetch;
    return trial;
}

template <typename Data>
Data read_payload(const transport::Arrival& arrival) {
    Data data;
    std::memcpy(&data, arrival.data, sizeof data);
    return data;
}

StreamHead read_head(const transport::Arrival& arrival) {
    StreamHead head;
    std::memcpy(&head, arrival.extra, sizeof head);
    return head;
}

} // namespace

void Engine::prepare_receive(Request& request, const Buffer& buffer, const Envelope& envelope) {
    request.operation = Operation::receive;
    request.buffer = buffer;
    request.envelope = envelope;
}

Error Engine::receive(const Buffer& buffer, const Envelope& envelope, Outcome& outcome) {
    if (Request* plain = receive_later(buffer, envelope)) [[likely]] {
        wait(*plain);
        outcome = plain->outcome;
        requests_.remove(*plain);
        return {};
    }
    Request* request = make();
    if (request == nullptr) {
        return fail(MPI_ERR_NO_MEM, "no memory for one more request");
    }
    prepare_receive(*request, buffer, envelope);
    Error error = start(*request, true);
    if (!error) {
        // Another thread of the rank may free the datatype meanwhile.
        datatype::retain(*buffer.type);
        wait(*request);
        datatype::release(*buffer.type);
        outcome = request->outcome;
    }
    discard(*request);
    return error;
}

struct Engine::Arrivals {
    Engine& engine;

    void operator()(const transport::Arrival& arrival) const {
        if (arrival.header.kind == kind::eager) [[likely]] {
            engine.arrived_eager(arrival);
        } else {
            engine.arrived(arrival);
        }
    }
    // As above, for a cell that has its data with it, mostly a short message whose receive is
    // posted.
    [[gnu::always_inline]] void cell(const transport::Cell& cell, std::uint32_t sender) const {
        const Envelope envelope = {.context = cell.context, .source = cell.source, .tag = cell.tag};
        if (cell.kind != kind::eager) [[unlikely]] {
            engine.arrived(transport::arrival_of(cell, sender));
        } else if (Request* receive = engine.posted_.match(envelope)) [[likely]] {
            engine.deliver(*receive, envelope, cell.payload, cell.length);
        } else {
            engine.arrived_unexpected(transport::arrival_of(cell, sender));
        }
    }
};

bool Engine::progress() {
    bool moved = takes_turns_ ? transport_.poll(Arrivals{*this}, frames_per_turn)
                              : transport_.poll(Arrivals{*this});
    if (waiting_ != nullptr) [[unlikely]] {
        moved |= push_waiting();
        // Data with gaps is sent and received in alternating parts (gap_part_limit).
        for (std::uint32_t turn = 1; takes_turns_ && turn < turns_at_once; ++turn) {
            transport_.poll(Arrivals{*this}, frames_per_turn);
            push_waiting();
        }
    }
    if (direct_ != nullptr) [[unlikely]] {
        moved |= run_direct();
    }
    if (offering_ != nullptr) [[unlikely]] {
        moved |= help_peers();
    }
    if (stepping_ != nullptr) [[unlikely]] {
        moved |= run_steps();
    }
    if (withdrawn_ != nullptr) [[unlikely]] {
        moved |= look_for_left();
    }
    if (moved) {
        rank_.wake_threads();
    }
    return moved;
}

// A rank that has left MPI neither receives nor answers any more. All its answers to sends are in
// this rank's queue or pair ring by the time its state is seen.
bool Engine::look_for_left() {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    bool found = false;
    for (Request* send = withdrawn_; send != nullptr; send = send->next_withdrawn) {
        if (rank_.segment.slot(send->peer).state.load(std::memory_order_acquire) ==
            node::RankStage::finalised) {
            send->withdrawal = Withdrawal::left;
            found = true;
        }
    }
    if (!found) {
        return false;
    }
    if (!transport_.poll_what_is_sent(Arrivals{*this})) {
        rank_.wake_threads(); // something may have come
        return false;         // but what is looked for is not there yet: this is asked again
    }
    run_direct();
    for (Request* send = withdrawn_; send != nullptr;) {
        Request* const next = send->next_withdrawn;
        if (send->withdrawal == Withdrawal::left) {
            end_withdrawn(*send);
        }
        send = next;
    }
    return true;
}

void Engine::arrived(const transport::Arrival& arrival) {
    switch (arrival.header.kind) {
    case kind::stream_head:
        return arrived_stream_head(arrival);
    case kind::stream_part:
        return arrived_stream_part(arrival);
    case kind::rendezvous:
        return arrived_rendezvous(arrival);
    case kind::direct:
        return arrived_direct(arrival);
    case kind::done:
        return arrived_done(arrival);
    case kind::withdrawn:
        return arrived_withdrawn(arrival);
    case kind::wanted:
        return arrived_wanted(arrival);
    case kind::answer_head:
        return arrived_answer_head(arrival);
    default:
        std::fprintf(stderr, "warren: rank %u: a cell of unknown kind %u from rank %u\n",
                     rank_.world_rank, arrival.header.kind, arrival.sender);
        rank_.bootstrap().abort(node::JobEnd::fatal_error, 1,
                                "the node segment is damaged: a cell of unknown kind");
        std::_Exit(1);
    }
}

[[gnu::always_inline]] inline void Engine::accept(Request& receive, const Envelope& envelope,
                                                  std::uint64_t available) {
    // A message that was still arriving when its receive matched it comes here twice.
    if (receive.fate == Fate::abandoned && !receive.matched) [[unlikely]] {
        --abandoned_receives_;
        ++unattended_;
    }
    receive.matched = true;
    receive.outcome.source = envelope.source;
    receive.outcome.tag = envelope.tag;
    receive.outcome.available = static_cast<MPI_Count>(available);
    receive.outcome.bytes = static_cast<MPI_Count>(available);
    if (available != receive.bytes) [[unlikely]] {
        judge_length(receive);
    }
}

// For a message that is longer or shorter than the receive.
void Engine::judge_length(Request& receive) {
    message::Outcome& outcome = receive.outcome;
    if (outcome.bytes > static_cast<MPI_Count>(receive.bytes)) {
        outcome.bytes = static_cast<MPI_Count>(receive.bytes);
        outcome.error_class = MPI_ERR_TRUNCATE;
    } else if (receive.buffer.type->elements_in(outcome.bytes) == MPI_UNDEFINED) {
        outcome.error_class = MPI_ERR_TYPE; // no sequence of the type's elements is so long
    }
}

[[gnu::always_inline]] inline void Engine::deliver(Request& receive, const Envelope& envelope,
                                                   const std::byte* data, std::uint64_t bytes) {
    accept(receive, envelope, bytes);
    const auto kept = static_cast<std::size_t>(receive.outcome.bytes);
    if (receive.laid_out) [[unlikely]] {
        LaidOut(receive.buffer).take(0, data, kept);
    } else if (kept <= transport::inline_bytes) {
        transport::copy_small(receive.data, data, kept);
    } else {
        std::memcpy(receive.data, data, kept);
    }
    complete(receive);
}

void Engine::deliver_whole(Request& receive, const Envelope& envelope, const std::byte* data,
                           std::uint64_t bytes) {
    deliver(receive, envelope, data, bytes);
}

void Engine::deliver_own(Request& receive, const Envelope& envelope, const Request& send) {
    accept(receive, envelope, send.bytes);
    datatype::copy_data(send.buffer, receive.buffer, 0, receive.outcome.bytes);
    complete(receive);
}

void Engine::place(const Request& receive, std::uint64_t first, const std::byte* data,
                   std::uint64_t bytes) {
    if (receive.laid_out) {
        LaidOut(receive.buffer).take(first, data, bytes);
    } else if (receive.outcome.bytes >= datatype::cache_bytes) {
        datatype::stream_block(receive.data + first, data, bytes);
        datatype::stream_fence();
    } else {
        transport_.copy().get(receive.data + first, data, bytes,
                              static_cast<std::uint64_t>(receive.outcome.bytes));
    }
}

[[gnu::always_inline]] inline void Engine::arrived_eager(const transport::Arrival& arrival) {
    const Envelope envelope = envelope_of(arrival.header);
    if (Request* receive = posted_.match(envelope)) [[likely]] {
        deliver(*receive, envelope, arrival.data, arrival.bytes);
    } else {
        arrived_unexpected(arrival);
    }
}

void Engine::arrived_unexpected(const transport::Arrival& arrival) {
    const Envelope envelope = envelope_of(arrival.header);
    Unexpected* message = unexpected_.make(arrival.bytes);
    if (message == nullptr) {
        out_of_memory(rank_, arrival.bytes);
    }
    message->envelope = envelope;
    message->sender = arrival.sender;
    std::memcpy(message->data, arrival.data, arrival.bytes);
    unexpected_.add(*message);
}

void Engine::arrived_stream_head(const transport::Arrival& arrival) {
    Peer& peer = peer_of(arrival.sender);
    const Envelope envelope = envelope_of(arrival.header);
    const StreamHead stream = read_head(arrival);
    Inbound& inbound = bulk_of(peer).inbound;
    inbound = {.left = arrival.block_bytes};
    Request* receive = posted_.match(envelope);
    if (stream.began != 0) [[unlikely]] {
        inbound.trial = trial_of(stream.began, receive == nullptr);
    }
    if (receive != nullptr) {
        accept(*receive, envelope, stream.total);
        receive->moved = 0;
        // Ask before copying the head, so that the rest is under way meanwhile.
        receive->streaming =
            stream.total > arrival.block_bytes &&
            ask_for_rest(*receive, arrival.sender, stream.token, arrival.block_bytes);
        if (receive->streaming) {
            // The message is complete with the last byte of the rest.
            receive->trial = std::exchange(inbound.trial, {});
        }
        inbound.receive = receive;
    } else {
        Unexpected* message = unexpected_.make_announced(arrival.block_bytes);
        if (message == nullptr) {
            out_of_memory(rank_, arrival.block_bytes);
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
        unexpected_.add(*message);
        inbound.message = message;
    }
    take_inbound(peer, arrival.data, arrival.bytes);
}

bool Engine::ask_for_rest(Request& receive, std::uint32_t sender, Token token, std::uint64_t there,
                          bool passes) {
    const auto wanted_bytes = static_cast<std::uint64_t>(receive.outcome.bytes);
    if (wanted_bytes <= there) {
        const DoneData done = {.request = token, .withdrawn = 0};
        answer(sender, kind::done, &done, sizeof done);
        return false;
    }
    const WantedData wanted = {.sender = token,
                               .receiver = token_of(receive),
                               .from = there,
                               .to = wanted_bytes,
                               .passes = passes ? 1U : 0U};
    answer(sender, kind::wanted, &wanted, sizeof wanted);
    return true;
}

void Engine::arrived_stream_part(const transport::Arrival& arrival) {
    take_inbound(peer_of(arrival.sender), arrival.data, arrival.bytes);
}

void Engine::arrived_answer_head(const transport::Arrival& arrival) {
    Peer& peer = peer_of(arrival.sender);
    const StreamHead stream = read_head(arrival);
    Inbound& inbound = bulk_of(peer).inbound;
    inbound = {.receive = find(stream.token), .left = stream.total};
    if (Request* receive = inbound.receive) {
        // Each part of data with gaps comes as a stream of its own.
        receive->streaming =
            receive->moved + stream.total < static_cast<std::uint64_t>(receive->outcome.bytes);
        if (!receive->streaming) {
            inbound.trial = receive->trial;
        }
    }
    take_inbound(peer, arrival.data, arrival.bytes);
}

void Engine::take_inbound(Peer& peer, const std::byte* data, std::uint64_t bytes) {
    Inbound& inbound = peer.bulk->inbound;
    if (Request* receive = inbound.receive) {
        const auto limit = static_cast<std::uint64_t>(receive->outcome.bytes);
        if (receive->moved < limit) {
            const std::uint64_t room = limit - receive->moved;
            place(*receive, receive->moved, data, bytes < room ? bytes : room);
        }
        receive->moved += bytes;
    } else if (Unexpected* message = inbound.message) {
        transport_.copy().get(message->data + message->announced.arrived, data, bytes,
                              message->announced.head_bytes);
        message->announced.arrived += bytes;
    }
    inbound.left -= bytes;
    if (inbound.left == 0) {
        if (inbound.trial.began != 0) [[unlikely]] {
            inbound.trial.ended = node_time_ns();
            judge(peer,
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

void Engine::judge(Peer& peer, std::uint64_t bytes, const Trial& trial) {
    Bulk& bulk = bulk_of(peer);
    if (trial.asked) {
        bulk.asking->end(bytes, trial);
        return;
    }
    if (bulk.judge == nullptr) {
        bulk.judge = std::make_unique<CopyMethodJudge>();
    }
    const std::uint32_t size_class = CopyMethodClass::of(bytes);
    if (trial.resting) {
        Advice again;
        if (bulk.judge->drifts(size_class, trial, bytes, again)) {
            transport_.advise(peer.peer, CopyMethodClass::again(size_class), again);
        }
        return;
    }
    CopyMethod best;
    const bool may_fetch = peer.same_space || !transport_.peer_copy_refused();
    if (bulk.judge->add(size_class, trial, bytes, may_fetch, best, peer.same_space)) {
        transport_.advise(peer.peer, CopyMethodClass::mask(size_class),
                          CopyMethodClass::advice(size_class, best));
    }
}

void Engine::end_stream(const Inbound& inbound) {
    if (Request* receive = inbound.receive) {
        if (!receive->streaming) {
            complete(*receive);
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
        match_unexpected(*message, *message->announced.taker);
    }
}

Unexpected& Engine::keep_announced(Unexpected::Form form, const Envelope& envelope,
                                   std::uint32_t sender, std::uint64_t bytes) {
    Unexpected* message = unexpected_.make_announced(0);
    if (message == nullptr) {
        out_of_memory(rank_, sizeof(Unexpected));
    }
    message->form = form;
    message->envelope = envelope;
    message->sender = sender;
    message->bytes = bytes;
    unexpected_.add(*message);
    return *message;
}

void Engine::arrived_rendezvous(const transport::Arrival& arrival) {
    const auto data = read_payload<RendezvousData>(arrival);
    const Envelope envelope = envelope_of(arrival.header);
    if (Request* receive = posted_.match(envelope)) {
        fetch(*receive, envelope, arrival.sender, data, false);
        return;
    }
    Unexpected& message =
        keep_announced(Unexpected::Form::rendezvous, envelope, arrival.sender, data.bytes);
    message.announced.address = data.address;
    message.announced.pieces = data.pieces;
    message.announced.token = data.sender;
    message.announced.began = data.began;
}

void Engine::arrived_direct(const transport::Arrival& arrival) {
    const auto data = read_payload<DirectData>(arrival);
    const Envelope envelope = envelope_of(arrival.header);
    if (Request* receive = posted_.match(envelope)) {
        receive_direct(*receive, envelope, arrival.sender, data, false);
        return;
    }
    Unexpected& message =
        keep_announced(Unexpected::Form::direct, envelope, arrival.sender, data.bytes);
    message.announced.address = data.send;
    message.announced.began = data.began;
}

void Engine::receive_direct(Request& receive, const Envelope& envelope, std::uint32_t sender,
                            const DirectData& data, bool unexpected) {
    accept(receive, envelope, data.bytes);
    Trial trial = {};
    if (data.began != 0) {
        trial = trial_of_fetch(data.began, unexpected);
    }
    reinterpret_cast<DirectSend*>(data.send)->receive(
        receive.place(), static_cast<std::uint64_t>(receive.outcome.bytes), transport_.copy());
    rank_.ring(sender);
    if (trial.began != 0) {
        trial.ended = node_time_ns();
        judge(peer_of(sender), data.bytes, trial);
    }
    complete(receive);
}

void Engine::fetch(Request& receive, const Envelope& envelope, std::uint32_t sender,
                   const RendezvousData& offered, bool unexpected) {
    accept(receive, envelope, offered.bytes);
    Trial trial = {};
    if (is_asked_for(receive, sender, offered, trial)) {
        receive.moved = 0;
        receive.trial = trial;
        ask_for_rest(receive, sender, offered.sender, 0, trial.method == CopyMethod::pass);
        return;
    }
    if (!trial.asked && Stamp::time(offered.began) != 0) {
        trial = trial_of_fetch(offered.began, unexpected);
    }
    const auto kept = static_cast<std::uint64_t>(receive.outcome.bytes);
    const transport::PeerCopy result = kept == 0 ? transport::PeerCopy::done
                                       : offered.address == 0
                                           ? transport::PeerCopy::failed
                                           : read_offered(receive, sender, offered, kept);
    if (result == transport::PeerCopy::done) {
        const DoneData done = {.request = offered.sender, .withdrawn = 0};
        answer(sender, kind::done, &done, sizeof done);
        if (trial.began != 0) [[unlikely]] {
            trial.ended = node_time_ns();
            judge(peer_of(sender), offered.bytes, trial);
        }
        complete(receive);
        return;
    }
    if (result == transport::PeerCopy::refused) {
        transport_.advise(sender, no_fetching, no_fetching);
    } else if (trial.began != 0) {
        // Count a failed fetch, so that it is not tried again and again for want of a measurement.
        trial.ended = node_time_ns();
        trial.failed = true;
        judge(peer_of(sender), offered.bytes, trial);
    }
    receive.moved = 0;
    receive.trial = {};
    ask_for_rest(receive, sender, offered.sender, 0);
}

void Engine::arrived_done(const transport::Arrival& arrival) {
    const auto data = read_payload<DoneData>(arrival);
    Request* request = find(data.request);
    if (request == nullptr) {
        return;
    }
    if (request->operation == Operation::receive) { // its sender has given up
        request->outcome.error_class = MPI_ERR_OTHER;
        if (request->trial.asked) {
            request->trial.ignored = true;
            peer_of(arrival.sender).bulk->asking->end(0, request->trial);
        }
    } else if (data.withdrawn != 0) {
        return end_withdrawn(*request);
    } else {
        stop_helping(*request);
        end_withdrawal(*request);
    }
    complete(*request);
}

void Engine::arrived_withdrawn(const transport::Arrival& arrival) {
    const auto data = read_payload<WithdrawnData>(arrival);
    Unexpected* message =
        unexpected_.find_announced(envelope_of(arrival.header), arrival.sender, data.send);
    if (message == nullptr) {
        return; // it has been received after all, and answered
    }
    unexpected_.remove(*message);
    unexpected_.destroy(*message);
    // Also for a rank of this address space: its send may no longer exist, if this rank had left
    // MPI and has come back.
    const DoneData done = {.request = data.sender, .withdrawn = 1};
    answer(arrival.sender, kind::done, &done, sizeof done);
}

void Engine::arrived_wanted(const transport::Arrival& arrival) {
    const auto data = read_payload<WantedData>(arrival);
    Request* send = find(data.sender);
    if (send == nullptr) {
        return;
    }
    end_withdrawal(*send); // it comes too late
    if (send->fate == Fate::orphaned) {
        // There is nothing to send any more, nor to withdraw.
        const DoneData done = {.request = data.receiver, .withdrawn = 0};
        answer(arrival.sender, kind::done, &done, sizeof done);
        complete(*send);
        return;
    }
    stop_helping(*send);
    send->passes = send->passes || data.passes != 0;
    send->moved = data.from;
    send->bytes = data.to;
    send->answer_token = data.receiver;
    Peer& peer = peer_of(arrival.sender);
    // (A send with gaps takes turns with others that are asked for next.)
    if (peer.first != nullptr || send->laid_out || advance(peer, *send) == Step::no_room) {
        enqueue(peer, *send);
    }
}

Error Engine::start_matched(Unexpected& message, Request& receive, bool awaited) {
    receive.awaited = awaited;
    receive.active = true;
    receive.complete = false;
    receive.outcome = {};
    receive.find_data();
    match_unexpected(message, receive);
    return {};
}

void Engine::match_unexpected(Unexpected& message, Request& receive) {
    switch (message.form) {
    case Unexpected::Form::whole:
        deliver_whole(receive, message.envelope, message.data, message.bytes);
        break;
    case Unexpected::Form::arriving:
        accept(receive, message.envelope, message.bytes);
        message.announced.taker = &receive;
        return; // the stream's end comes back here, and destroys it
    case Unexpected::Form::head:
        accept(receive, message.envelope, message.bytes);
        receive.moved = message.announced.head_bytes;
        receive.trial = {};
        if (message.announced.began != 0) [[unlikely]] {
            receive.trial = trial_of(message.announced.began, true);
        }
        if (receive.outcome.bytes > 0) { // else there may be no memory at all
            place(receive, 0, message.data,
                  std::min(message.announced.head_bytes,
                           static_cast<std::uint64_t>(receive.outcome.bytes)));
        }
        if (!ask_for_rest(receive, message.sender, message.announced.token,
                          message.announced.head_bytes)) {
            complete(receive);
        }
        break;
    case Unexpected::Form::rendezvous:
        fetch(receive, message.envelope, message.sender,
              {.address = message.announced.address,
               .bytes = message.bytes,
               .sender = message.announced.token,
               .pieces = message.announced.pieces,
               .began = message.announced.began},
              true);
        break;
    case Unexpected::Form::direct:
        receive_direct(receive, message.envelope, message.sender,
                       {.send = message.announced.address,
                        .bytes = message.bytes,
                        .began = message.announced.began},
                       true);
        break;
    case Unexpected::Form::own: {
        Request& send = *message.announced.own;
        deliver_own(receive, message.envelope, send);
        complete(send);
        break;
    }
    }
    unexpected_.destroy(message);
}

} // namespace warren::message
