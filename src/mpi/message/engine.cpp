#include "mpi/message/engine.hpp"

#include <cstdlib>
#include <utility>

namespace warren::message {

Engine::Engine(Rank& rank)
    : rank_(rank), transport_(rank), peers_(rank.size), sent_(requests_.insert()) {
    sent_->active = true;
    sent_->shared = true;
}

Engine::~Engine() {
    if (withdrawn_ != nullptr) { // of those that were given up, whom nobody waits for
        rank_.bootstrap().add(node::JobCount::withdrawing, -1);
    }
    requests_.for_each([](Request& request) { std::free(request.packed); });
    matched_.for_each([this](Matched& matched) { unexpected_.destroy(*matched.message); });
    while (made_ != nullptr) {
        const std::unique_ptr<Peer> peer(std::exchange(made_, made_->next_made));
        while (peer->first != nullptr) {
            Outgoing* outgoing = std::exchange(peer->first, peer->first->next);
            if (outgoing->is_answer) {
                delete static_cast<Answer*>(outgoing);
            }
        }
    }
}

OwnCopyMethods* Engine::writing_for(std::uint32_t peer_rank) {
    Bulk& bulk = bulk_of(peer_of(peer_rank));
    if (bulk.writing == nullptr) {
        bulk.writing.reset(new (std::nothrow) OwnCopyMethods(false));
    }
    return bulk.writing.get();
}

Engine::Peer& Engine::make_peer(std::uint32_t world_rank) {
    auto made = std::make_unique<Peer>(rank_.segment, world_rank);
    made->same_space = rank_.segment.slot(world_rank).process == rank_.slot.process;
    made->next_made = made_;
    made_ = peers_[world_rank] = made.release();
    return *made_;
}

void Engine::start_stepping(Request& request) {
    request.active = true;
    request.complete = false;
    request.outcome = {};
    request.next_stepping = stepping_;
    stepping_ = &request;
}

bool Engine::run_steps() {
    // A step may run a function of the program, without the lock: other threads that come here
    // meanwhile, and the function's own calls, leave the list to this one. They may add to it.
    if (running_steps_) {
        return false;
    }
    running_steps_ = true;
    bool moved = false;
    Request** link = &stepping_;
    while (*link != nullptr) {
        Request& request = **link;
        if (request.step(request)) {
            if (*link != &request) {
                // Requests were added before what was the first.
                for (link = &stepping_; *link != &request; link = &(*link)->next_stepping) {
                }
            }
            *link = request.next_stepping;
            moved = true;
            complete(request);
        } else {
            link = &request.next_stepping;
        }
    }
    running_steps_ = false;
    return moved;
}

bool Engine::send_queued(Peer& peer, const void* data, std::size_t bytes,
                         const Envelope& envelope) {
    if (!transport_.send_inline(peer, header_of(kind::eager, envelope), data, bytes)) {
        return false;
    }
    if (rank_.load != nullptr) {
        balance::count_message(*rank_.load, peer.peer, bytes);
    }
    return true;
}

// Nothing is under way, so there is no progress to make until something has come.
bool Engine::receive_queued(void* buffer, std::size_t room, std::size_t unit,
                            const Envelope& envelope, std::uint32_t call, std::size_t& bytes) {
    const transport::Cell* next = nullptr;
    const auto has_come = [&] {
        next = transport_.next_queued();
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
        rank_.wait(
            has_come, [] { return false; }, [] {}, reason);
    } else if (!has_come()) {
        return false;
    }
    return transport_.receive_queued(*next, header_of(kind::eager, envelope), buffer, room, unit,
                                     bytes);
}

void Engine::wait_long(Request& request) {
    await(request);
    rank_.wait([&request] { return request.complete; }, [this] { return progress(); },
               Arrangement<>{*this}, [&] { return reason_of(request); });
}

void Engine::leave(Request& request) {
    if (!request.complete) {
        request.fate = Fate::left;
        ++unattended_;
    }
}

void Engine::end_unattended(Request& request) {
    if (request.fate == Fate::orphaned) {
        discard(request);
        return;
    }
    --unattended_;
    if (request.fate == Fate::abandoned) {
        discard(request);
        return;
    }
    request.fate = Fate::attended;
    rank_.wake_threads();
}

void Engine::discard(Request& request) {
    if (!request.complete) {
        if (request.operation == Operation::receive && !request.matched) {
            ++abandoned_receives_;
        } else if (request.fate == Fate::attended) {
            ++unattended_;
        }
        request.fate = Fate::abandoned;
        return;
    }
    if (request.release != nullptr) {
        request.release(request);
    }
    WARREN_INVARIANT(request.complete, "request 2: a request leaves the table when it is complete");
    std::free(request.packed);
    requests_.remove(request);
}

void Engine::orphan(Request& request) {
    cancel(request);
    if (request.complete) {
        discard(request);
        return;
    }
    if (request.operation != Operation::receive && request.answer_token != 0 &&
        !keep_rest(request)) {
        wait(request); // its receiver, which has asked for it, takes it
        discard(request);
        return;
    }
    request.fate = Fate::orphaned;
    if (request.operation == Operation::receive) {
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
    switch (request.operation) {
    case Operation::receive:
        if (request.matched) {
            return;
        }
        posted_.remove(request);
        break;
    case Operation::send:
    case Operation::buffered:
    case Operation::synchronous:
    case Operation::ready:
        if (!cancel_send(request)) {
            return;
        }
        break;
    default:
        return; // they have no single message that could be taken back
    }
    request.outcome.cancelled = true;
    complete(request);
}

bool Engine::cancel_send(Request& send) {
    if (send.peer == rank_.index) {
        // (A matched probe may have taken it.)
        Unexpected* message = unexpected_.find_announced(send.envelope, send.peer,
                                                         reinterpret_cast<std::uint64_t>(&send));
        if (message == nullptr) {
            return false;
        }
        unexpected_.remove(*message);
        unexpected_.destroy(*message);
        return true;
    }
    // Once its receiver has asked for it, it is too late.
    if (send.answer_token != 0 || send.withdrawal != Withdrawal::none) {
        return false;
    }
    if (take_back(peer_of(send.peer), send)) {
        return true;
    }
    withdraw(send);
    return false;
}

Unexpected* Engine::peek(const Envelope& envelope) {
    Unexpected* message = unexpected_.find(envelope);
    if (message == nullptr) {
        look();
        message = unexpected_.find(envelope);
    }
    return message;
}

Unexpected* Engine::wait_for_message(const Envelope& envelope) {
    while (true) {
        // A wait may let others have the lock at its end: another thread may take the message.
        if (Unexpected* message = unexpected_.find(envelope)) {
            return message;
        }
        wait_until([&] { return unexpected_.find(envelope) != nullptr; },
                   {.call = current_call,
                    .peer = envelope.source,
                    .tag = envelope.tag,
                    .context = envelope.context});
    }
}

bool Engine::waits_for_room() const {
    for (const Peer* peer = waiting_; peer != nullptr; peer = peer->next_waiting) {
        // A rank that has left MPI receives nothing and needs no answers. (They stay queued, since
        // it may open a session and come back.)
        const bool has_left =
            rank_.segment.slot(peer->peer).state.load(std::memory_order_acquire) ==
            node::RankStage::finalised;
        for (const Outgoing* outgoing = peer->first; outgoing != nullptr;
             outgoing = outgoing->next) {
            if (!has_left || !outgoing->is_answer) {
                return true;
            }
        }
    }
    return false;
}

void Engine::flush() {
    const auto all_gone = [this] { return unattended_ == 0 && !waits_for_room(); };
    wait_until(all_gone, {.call = current_call});
    node::Bootstrap& bootstrap = rank_.bootstrap();
    if (bootstrap.add(node::JobCount::finishing, 1) == rank_.world_size) {
        for (std::uint32_t other = 0; other < rank_.size; ++other) {
            rank_.ring(other);
        }
    }
    if (abandoned_receives_ == 0) [[likely]] {
        return;
    }
    const auto nothing_comes = [&] {
        if (bootstrap.read(node::JobCount::finishing) == rank_.world_size) {
            // The others' messages stand in the queues by now.
            while (progress()) {
            }
            return all_gone();
        }
        return abandoned_receives_ == 0 && all_gone();
    };
    wait_until(nothing_comes, {.call = current_call}, BroughtBy::others);
}

void Engine::arrange_sleep() {
    for (Peer* peer = waiting_; peer != nullptr; peer = peer->next_waiting) {
        // Blocks that ranks outside MPI hold must not stop sends to others: from now on the
        // receiver fetches the data itself, or gets it in small pieces. (This starts only before a
        // sleep: while all ranks are in MPI, blocks come back soon, and a send through a block
        // doesn't depend on its receive.)
        if (!peer->first->is_answer) {
            auto* send = static_cast<Request*>(peer->first);
            send->fetched = send->bytes > transport::inline_bytes;
        }
        transport_.ask_for_room(*peer);
    }
}

bool Engine::sleep_is_arranged() const {
    for (const Peer* peer = waiting_; peer != nullptr; peer = peer->next_waiting) {
        if (!transport_.asks_for_room(*peer)) {
            return false;
        }
    }
    return true;
}

WaitReason Engine::with_counts(WaitReason reason) const {
    reason.posted = posted_.count();
    reason.unexpected = unexpected_.count();
    reason.pending_sends = waiting_sends_;
    reason.requests = static_cast<std::uint32_t>(live_requests());
    return reason;
}

WaitReason Engine::reason_of(const Request& request) const {
    const bool is_receive = request.operation == Operation::receive;
    return with_counts(
        {.call = current_call,
         .peer = is_receive ? request.envelope.source : static_cast<std::int32_t>(request.peer),
         .peer_in_world = !is_receive,
         .tag = request.envelope.tag,
         .context = request.envelope.context});
}

} // namespace warren::message
