#include "message/engine.hpp"

#include <cstdlib>

namespace warren::message {

Engine::Engine(Rank& rank)
    : rank_(rank),
      transport_(rank),
      peers_(new std::unique_ptr<Peer>[rank.size]),
      sent_(requests_.insert()) {
    sent_->active = true;
    sent_->shared = true;
}

Engine::~Engine() {
    requests_.for_each([](Request& request) { std::free(request.packed); });
    matched_.for_each([this](Matched& matched) { unexpected_.destroy(*matched.message); });
    for (std::uint32_t peer = 0; peer < rank_.size; ++peer) {
        while (peers_[peer] != nullptr && peers_[peer]->first != nullptr) {
            Outgoing* outgoing = peers_[peer]->first;
            peers_[peer]->first = outgoing->next;
            if (outgoing->is_answer) {
                delete static_cast<Answer*>(outgoing);
            }
        }
    }
}

Engine::Peer& Engine::make_peer(std::uint32_t world_rank) {
    peers_[world_rank] = std::make_unique<Peer>(rank_.segment, world_rank);
    return *peers_[world_rank];
}

bool Engine::progress() {
    bool moved = transport_.poll([this](const transport::Arrival& arrival) { arrived(arrival); });
    if (waiting_ != nullptr) [[unlikely]] {
        moved |= push_waiting();
    }
    if (stepping_ != nullptr) [[unlikely]] {
        moved |= run_steps();
    }
    return moved;
}

void Engine::start_stepping(Request& request) {
    request.active = true;
    request.complete = false;
    request.outcome = {};
    request.next_stepping = stepping_;
    stepping_ = &request;
}

bool Engine::run_steps() {
    bool moved = false;
    Request** link = &stepping_;
    while (*link != nullptr) {
        Request& request = **link;
        if (request.step(request)) {
            *link = request.next_stepping;
            moved = true;
            complete(request);
        } else {
            link = &request.next_stepping;
        }
    }
    return moved;
}

void Engine::wait(Request& request) {
    rank_.wait([&request] { return request.complete; }, [this] { return progress(); },
               [this] { arrange_sleep(); }, [&] { return reason_of(request); });
}

// The end of an abandoned request.
void Engine::bury(Request& request) {
    abandoned_sends_ -= request.operation != Operation::receive;
    discard(request);
}

void Engine::discard(Request& request) {
    if (!request.complete) {
        request.abandoned = true;
        abandoned_sends_ += request.operation != Operation::receive;
        return;
    }
    if (request.release != nullptr) {
        request.release(request);
    }
    std::free(request.packed);
    requests_.remove(request);
}

void Engine::cancel(Request& request) {
    if (request.complete) {
        return;
    }
    if (request.operation == Operation::receive && !request.matched) {
        posted_.remove(request);
        request.outcome.cancelled = true;
        complete(request);
    }
    // A send is on its way, or will be: the standard lets the cancellation of a send fail.
}

Unexpected* Engine::peek(const Envelope& envelope) {
    Unexpected* message = unexpected_.find(envelope);
    if (message == nullptr && progress()) {
        message = unexpected_.find(envelope);
    }
    return message;
}

Unexpected* Engine::wait_for_message(const Envelope& envelope) {
    Unexpected* message = nullptr;
    wait_until(
        [&] {
            message = unexpected_.find(envelope);
            return message != nullptr;
        },
        {.call = current_call,
         .peer = envelope.source,
         .tag = envelope.tag,
         .context = envelope.context});
    return message;
}

void Engine::flush() {
    wait_until([this] { return waiting_ == nullptr && abandoned_sends_ == 0; },
               {.call = current_call});
}

void Engine::arrange_sleep() {
    for (Peer* peer = waiting_; peer != nullptr; peer = peer->next_waiting) {
        transport_.ask_for_room(*peer);
    }
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
         .tag = request.envelope.tag,
         .context = request.envelope.context});
}

} // namespace warren::message
