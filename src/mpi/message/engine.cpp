#include "mpi/message/engine.hpp"

#include <cstdio>
#include <cstdlib>
#include <string>

#include "mpi/message/engine_view.hpp"
#include "mpi/message/foreign_cells.hpp"
#include "mpi/message/payload.hpp"

namespace warren::message {

Engine::Engine(Rank& rank, transport::fabric::Network* network, Senders senders)
    : core_(rank, network),
      withdrawals_(core_, direct_),
      receiver_(core_),
      sender_(core_, direct_, withdrawals_),
      lost_(core_, receiver_, withdrawals_, senders),
      stepping_(core_.requests),
      farewell_(core_),
      sent_(core_.requests.make()) {
    sent_->operation = Operation::send;
    sent_->sending.packed = nullptr;
    sent_->active = true;
    sent_->shared = true;
    receiver_.register_kinds(kinds_);
    sender_.register_kinds(kinds_);
    farewell_.register_kinds(kinds_);
    if (network != nullptr) {
        stepping_.never_empty();
    }
    if (rank.profile.on()) {
        EngineView(*this).observe(false);
    }
}

Engine::~Engine() {
    matched_.for_each(
        [this](Matched& matched) { receiver_.unexpected().destroy(*matched.message); });
}

// --- Operations

void Engine::prepare_send(Request& request, Operation mode, const Buffer& buffer,
                          std::uint32_t peer, const Envelope& envelope) {
    request.operation = mode;
    request.buffer = buffer;
    request.peer = peer;
    request.envelope = envelope;
    request.sending.packed = nullptr;
}

void Engine::prepare_receive(Request& request, const Buffer& buffer, const Envelope& envelope) {
    request.operation = Operation::receive;
    request.buffer = buffer;
    request.envelope = envelope;
}

Error Engine::start(Request& request, bool awaited) {
    request.awaited = awaited;
    request.active = true;
    request.complete = false;
    request.outcome = {};
    request.find_data();
    if (request.is_receive()) {
        receiver_.begin(request);
        return {};
    }
    request.sending.start();
    if (request.peer != core_.rank.index) [[likely]] {
        sender_.begin(request);
        return {};
    }
    Error error = receiver_.send_to_self(request);
    if (error) [[unlikely]] {
        request.complete = true;
        request.active = false;
    }
    return error;
}

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
        if (request->outcome.error_class != MPI_SUCCESS) [[unlikely]] {
            error = fail(request->outcome.error_class, "the process that it is sent to has ended");
        }
    }
    discard(*request);
    return error;
}

Error Engine::receive(const Buffer& buffer, const Envelope& envelope, Outcome& outcome) {
    if (Request* plain = receive_later(buffer, envelope)) [[likely]] {
        wait(*plain);
        outcome = plain->outcome;
        core_.requests.remove(*plain);
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

void Engine::orphan(Request& request) {
    cancel(request);
    if (request.complete) {
        discard(request);
        return;
    }
    if (request.is_send() && request.sending.answer_token != 0 && !Sender::keep_rest(request)) {
        wait(request); // its receiver, which has asked for it, takes it
        discard(request);
        return;
    }
    request.fate = Fate::orphaned;
    if (request.is_receive()) {
        // It is matched and data is under way, which is received and dropped.
        request.bytes = 0;
        request.outcome.bytes = 0;
        request.laid_out = false;
        request.buffer = {nullptr, 0, &datatype::basic(MPI_BYTE)};
        return;
    }
    // A send that its receiver has asked for continues from its own memory; others are withdrawn.
}

void Engine::cancel(Request& request) {
    if (request.complete) {
        return;
    }
    if (request.is_receive()) {
        if (request.receiving.matched) {
            return;
        }
        receiver_.withdraw(request);
    } else if (request.is_send()) {
        const bool over = request.peer == core_.rank.index ? receiver_.cancel_own(request)
                                                           : withdrawals_.cancel(request);
        if (!over) {
            return;
        }
    } else {
        return; // it has no single message that could be taken back
    }
    request.outcome.cancelled = true;
    core_.requests.complete(request);
}

// Nothing is under way, so there is no progress to make until something has come.
bool Engine::receive_queued(void* buffer, std::size_t capacity, std::size_t unit,
                            const Envelope& envelope, std::uint32_t call, std::size_t& bytes) {
    const transport::Cell* next = nullptr;
    const auto has_come = [&] {
        next = core_.transport.next_queued();
        return next != nullptr;
    };
    const auto reason = [&] {
        WaitReason its = with_counts({.call = call,
                                      .peer = envelope.source,
                                      .tag = envelope.tag,
                                      .context = envelope.context});
        ++its.posted;
        ++its.requests;
        return its;
    };
    if (call != no_call) {
        bool leaves = false;
        core_.rank.wait([&] { return has_come() || leaves; }, [] { return false; },
                        QueueOnly{core_.rank, leaves}, reason);
    } else {
        has_come();
    }
    return next != nullptr &&
           core_.transport.receive_queued(*next, header_of(kind::eager, envelope), buffer, capacity,
                                          unit, bytes);
}

// --- Probing

Unexpected* Engine::peek(const Envelope& envelope, bool& in_vain) {
    Unexpected* message = receiver_.unexpected().find(envelope);
    if (message == nullptr) {
        look<true>();
        message = receiver_.unexpected().find(envelope);
    }
    in_vain = message == nullptr && lost_.never_comes(envelope);
    return message;
}

Unexpected* Engine::wait_for_message(const Envelope& envelope) {
    while (true) {
        // A wait may let others have the lock at its end: another thread may take the message.
        if (Unexpected* message = receiver_.unexpected().find(envelope)) {
            return message;
        }
        if (lost_.never_comes(envelope)) [[unlikely]] {
            return nullptr;
        }
        wait_until(
            [&] {
                return receiver_.unexpected().find(envelope) != nullptr ||
                       lost_.never_comes(envelope);
            },
            {.call = current_call,
             .peer = envelope.source,
             .tag = envelope.tag,
             .context = envelope.context});
    }
}

void Engine::start_matched(Unexpected& message, Request& receive, bool awaited) {
    receive.awaited = awaited;
    receive.active = true;
    receive.complete = false;
    receive.outcome = {};
    receive.find_data();
    receive.receiving.start();
    receiver_.receive_unexpected(message, receive);
}

// --- Progress

struct Engine::Arrivals {
    Engine& engine;

    void operator()(const transport::Arrival& arrival) const {
        if (arrival.header.kind != kind::eager) [[unlikely]] {
            other(engine, arrival);
            return;
        }
        const Envelope envelope = envelope_of(arrival.header);
        if (Request* receive = engine.receiver_.match(envelope)) [[likely]] {
            engine.receiver_.take_whole(*receive, envelope, arrival.data, arrival.bytes);
            engine.core_.requests.complete(*receive);
        } else {
            engine.receiver_.arrived_unexpected(arrival);
        }
    }
    // As above, for a cell that has its data with it, mostly a short message whose receive is
    // posted.
    [[gnu::always_inline]] void cell(const transport::Cell& cell, std::uint32_t sender) const {
        const Envelope envelope = {.context = cell.context, .source = cell.source, .tag = cell.tag};
        if (cell.kind != kind::eager) [[unlikely]] {
            other(engine, transport::arrival_of(cell, sender));
        } else if (Request* receive = engine.receiver_.match(envelope)) [[likely]] {
            engine.receiver_.take_whole(*receive, envelope, cell.payload, cell.length);
            engine.core_.requests.complete(*receive);
        } else {
            engine.receiver_.arrived_unexpected(transport::arrival_of(cell, sender));
        }
    }

  private:
    friend Engine;
    // A cell that is no eager message.
    static void other(Engine& engine, const transport::Arrival& arrival);
    // The part of progress() behind its poll, which has brought something if `moved` says so.
    [[gnu::noinline]] static bool go_on(Engine& engine, bool moved);
};

void Engine::Arrivals::other(Engine& engine, const transport::Arrival& arrival) {
    if (engine.kinds_.handle(arrival)) [[likely]] {
        return;
    }
    const Rank& rank = engine.core_.rank;
    std::fprintf(stderr, "warren: rank %u: a cell of unknown kind %u from rank %u\n",
                 rank.world_rank, arrival.header.kind, arrival.sender);
    rank.bootstrap().abort(node::JobEnd::fatal_error, 1,
                           "the node segment is damaged: a cell of unknown kind");
    std::_Exit(1);
}

namespace {

// The bytes of the message that an arrival begins; false: it is a part of one, or about one.
bool message_bytes(const transport::Arrival& arrival, std::uint64_t& bytes) {
    switch (arrival.header.kind) {
    case kind::eager:
        bytes = arrival.bytes;
        return true;
    case kind::stream_head:
        bytes = head_of(arrival).total;
        return true;
    case kind::rendezvous:
        bytes = payload_of<RendezvousData>(arrival).memory.length;
        return true;
    case kind::rendezvous_list:
        bytes = payload_of<RendezvousListData>(arrival).bytes;
        return true;
    case kind::direct:
        bytes = payload_of<DirectData>(arrival).bytes;
        return true;
    default:
        return false;
    }
}

} // namespace

// As above, while a tool observes the rank.
struct Engine::CountedArrivals {
    Engine& engine;

    void operator()(const transport::Arrival& arrival) const {
        count(arrival);
        const std::uint32_t kept = engine.receiver_.unexpected().count();
        Arrivals{engine}(arrival);
        tell_profile(arrival.sender, kept);
    }
    void cell(const transport::Cell& cell, std::uint32_t sender) const {
        count(transport::arrival_of(cell, sender));
        const std::uint32_t kept = engine.receiver_.unexpected().count();
        Arrivals{engine}.cell(cell, sender);
        tell_profile(sender, kept);
    }

    // progress()'s look at the transport when sends take turns, or a tool observes the rank.
    [[gnu::noinline]] static bool poll(Engine& engine) {
        Outbox& outbox = engine.core_.outbox;
        Transport& transport = engine.core_.transport;
        if (!outbox.observed()) {
            return transport.poll(Arrivals{engine}, frames_per_turn);
        }
        const bool moved = outbox.takes_turns()
                               ? transport.poll(CountedArrivals{engine}, frames_per_turn)
                               : transport.poll(CountedArrivals{engine});
        // The observer may make progress, and end what this rank waits for.
        return tell_observer(engine.core_.rank.lock) || moved;
    }

  private:
    void count(const transport::Arrival& arrival) const {
        std::uint64_t bytes;
        if (message_bytes(arrival, bytes)) {
            Counts& counts = engine.core_.rank.counts;
            counts.received.add(bytes);
            if (engine.core_.rank.lock.observed_by_tool()) {
                counts.posted_attempts.add(engine.receiver_.attempts(envelope_of(arrival.header)));
            }
        }
    }
    // `kept`: messages without a receive before the arrival.
    void tell_profile(std::uint32_t sender, std::uint32_t kept) const {
        engine.core_.rank.profile.arrived(sender, engine.receiver_.unexpected().count() > kept);
    }
    static bool tell_observer(RankLock& lock) {
        Observer* const observer = lock.observer.load(std::memory_order_relaxed);
        if (observer == nullptr || !observer->has_news()) {
            return false;
        }
        lock.unlock();
        observer->deliver();
        lock.lock();
        return true;
    }
};

// As above, of cells of other nodes.
struct Engine::ForeignArrivals {
    Engine& engine;

    void operator()(const transport::Arrival& arrival) const {
        if (!may_cross_nodes(engine.core_, arrival)) [[unlikely]] {
            refuse(arrival);
        }
        if (engine.core_.outbox.observed()) [[unlikely]] {
            CountedArrivals{engine}(arrival);
        } else {
            Arrivals{engine}(arrival);
        }
    }

  private:
    [[noreturn]] void refuse(const transport::Arrival& arrival) const {
        Core& core = engine.core_;
        const std::string text =
            "rank " +
            std::to_string(core.transport.network()->endpoints().world_rank(arrival.sender)) +
            " of another node has sent a damaged cell, of kind " +
            std::to_string(arrival.header.kind);
        std::fprintf(stderr, "warren: rank %u: %s\n", core.rank.world_rank, text.c_str());
        core.rank.bootstrap().abort(node::JobEnd::fatal_error, 1, text.c_str());
        std::_Exit(1);
    }
};

// As above, of cells of other worlds. False: it is damaged, and nothing has been done.
struct Engine::StrangeArrivals {
    Engine& engine;

    bool operator()(const transport::Arrival& arrival) const {
        if (!may_cross_worlds(engine.core_, arrival)) [[unlikely]] {
            return false;
        }
        if (engine.core_.outbox.observed()) [[unlikely]] {
            CountedArrivals{engine}(arrival);
        } else {
            Arrivals{engine}(arrival);
        }
        return true;
    }
};

bool Engine::progress() {
    const bool moved = core_.outbox.is_plain() ? core_.transport.poll(Arrivals{*this})
                                               : CountedArrivals::poll(*this);
    // Most calls have nothing else to do. The rest is out of line, so that they save few registers.
    if (!core_.outbox.empty() || !direct_.empty() || !core_.transport.offers().empty() ||
        !stepping_.empty() || !withdrawals_.empty()) [[unlikely]] {
        return Arrivals::go_on(*this, moved);
    }
    if (moved) {
        core_.rank.wake_threads();
    }
    return moved;
}

bool Engine::Arrivals::go_on(Engine& engine, bool moved) {
    Outbox& outbox = engine.core_.outbox;
    Sender& sender = engine.sender_;
    auto& transport = engine.core_.transport;
    if (!outbox.empty()) {
        moved |= sender.push();
        // Data with gaps is sent and received in alternating parts (Sender::part_limit).
        for (std::uint32_t turn = 1; outbox.takes_turns() && turn < turns_at_once; ++turn) {
            CountedArrivals::poll(engine);
            sender.push();
        }
    }
    if (!engine.direct_.empty()) {
        moved |= sender.run_direct();
    }
    if (!transport.offers().empty()) {
        moved |= transport.offers().help();
    }
    if (!engine.stepping_.empty()) {
        moved |= engine.stepping_.run();
        if (transport.network() != nullptr) {
            moved |= transport.poll_network(ForeignArrivals{engine});
        }
        if (transport.bridge() != nullptr) {
            moved |= transport.poll_bridge(StrangeArrivals{engine});
        }
    }
    if (!engine.withdrawals_.empty()) {
        moved |= engine.withdrawals_.look_for_left([&] {
            if (!transport.poll_what_is_sent(Arrivals{engine})) {
                return false;
            }
            sender.run_direct();
            return true;
        });
    }
    if (moved) {
        engine.core_.rank.wake_threads();
    }
    return moved;
}

// --- Waiting

void Engine::wait_long(Request& request) {
    await(request);
    core_.rank.wait([&request] { return request.complete; }, [this] { return progress(); },
                    Arrangement<>{core_.outbox, lost_}, [&] { return reason_of(request); });
}

struct Engine::Leaving {
    Engine& engine;

    // From when on nobody waits for a message of this rank, it takes as long as the network and the
    // launcher need, and nobody rings.
    void turn() {
        engine.progress();
        engine.core_.rank.lock.unlock();
        give_way();
        engine.core_.rank.lock.lock();
    }

    void leave_with_others() {
        Core& core = engine.core_;
        Farewell& farewell = engine.farewell_;
        transport::fabric::Network& network = *core.transport.network();
        const std::uint32_t rounds = farewell.begin();
        for (std::uint32_t round = 0; round < rounds; ++round) {
            farewell.say(round);
            engine.wait_until([&] { return farewell.heard(round); }, {.call = engine.current_call});
        }
        while (!core.outbox.empty() || !network.is_idle()) {
            turn();
        }
        node::Bootstrap& bootstrap = core.rank.bootstrap();
        bootstrap.add(node::JobCount::finishing, 1); // counted down if it comes back
        network.leave();
        // The last rounds have arrived everywhere when all have come here.
        const std::uint32_t fence = bootstrap.enter_fence();
        while (!bootstrap.fence_is_over(fence)) {
            turn();
        }
    }
};

void Engine::flush() {
    const auto all_gone = [this] {
        return core_.requests.unattended() == 0 && !core_.outbox.waits_for_space();
    };
    wait_until(all_gone, {.call = current_call});
    if (transport::bridge::Bridge* const its = core_.transport.bridge()) {
        wait_until([its] { return its->is_idle(); }, {.call = current_call});
        its->leave();
        wait_until([its] { return its->is_idle(); }, {.call = current_call});
    }
    if (core_.transport.network() != nullptr) {
        Leaving{*this}.leave_with_others();
        return;
    }
    Rank& rank = core_.rank;
    node::Bootstrap& bootstrap = rank.bootstrap();
    // When this rank looks whether all are here, others may have come back already (sessions): it
    // looks whether all have been here since. They can't have been before it is counted itself.
    const std::uint32_t finishes = bootstrap.read(node::JobCount::finishes);
    if (bootstrap.add(node::JobCount::finishing, 1) == rank.world_size) {
        for (std::uint32_t other = 0; other < rank.size; ++other) {
            rank.ring(other);
        }
    }
    if (core_.requests.abandoned_receives() == 0) [[likely]] {
        return;
    }
    const auto nothing_comes = [&] {
        if (bootstrap.read(node::JobCount::finishes) != finishes) {
            // The others' messages stand in the queues by now.
            while (progress()) {
            }
            return all_gone();
        }
        return core_.requests.abandoned_receives() == 0 && all_gone();
    };
    wait_until(nothing_comes, {.call = current_call}, BroughtBy::others);
}

WaitReason Engine::with_counts(WaitReason reason) const {
    reason.posted = receiver_.posted();
    reason.unexpected = receiver_.unexpected().count();
    reason.pending_sends = core_.outbox.count();
    reason.requests = static_cast<std::uint32_t>(core_.requests.live());
    return reason;
}

WaitReason Engine::reason_of(const Request& request) const {
    const bool is_receive = request.is_receive();
    const auto* const network = core_.transport.network();
    const std::uint32_t peer = network != nullptr && !is_receive
                                   ? network->endpoints().world_rank(request.peer)
                                   : request.peer;
    return with_counts(
        {.call = current_call,
         .peer = is_receive ? request.envelope.source : static_cast<std::int32_t>(peer),
         .peer_in_world = !is_receive,
         .tag = request.envelope.tag,
         .context = request.envelope.context});
}

} // namespace warren::message
