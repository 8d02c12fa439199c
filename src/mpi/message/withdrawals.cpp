#include "mpi/message/withdrawals.hpp"

#include <atomic>

namespace warren::message {

Withdrawals::~Withdrawals() {
    if (first_ != nullptr) { // of those that were given up, whom nobody waits for
        core_.rank.bootstrap().add(node::JobCount::withdrawing, -1);
    }
}

bool Withdrawals::cancel(Request& send) {
    // Once its receiver has asked for it, it is too late.
    if (send.sending.answer_token != 0 || send.sending.withdrawal != Withdrawal::none) {
        return false;
    }
    if (core_.outbox.take_back(core_.peers.of(send.peer), send)) {
        return true;
    }
    announce(send);
    return false;
}

void Withdrawals::announce(Request& send) {
    if (first_ == nullptr) {
        // Before find_left(): pairs with the fence of who leaves.
        core_.rank.bootstrap().add(node::JobCount::withdrawing, 1);
    }
    SendState& state = send.sending;
    state.withdrawal = Withdrawal::asked;
    state.previous_withdrawn = nullptr;
    state.next_withdrawn = first_;
    if (first_ != nullptr) {
        first_->sending.previous_withdrawn = &send;
    }
    first_ = &send;
    core_.end_offer(send);
    const Token token = RequestTable::token_of(send);
    const WithdrawnData data = {.send = state.offer == Offer::direct
                                            ? reinterpret_cast<std::uint64_t>(&state.direct)
                                            : token,
                                .sender = token};
    core_.outbox.tell(core_.peers.of(send.peer), header_of(kind::withdrawn, send.envelope), &data,
                      sizeof data);
}

void Withdrawals::remove(Request& send) {
    SendState& state = send.sending;
    state.withdrawal = Withdrawal::over;
    Request* const next = state.next_withdrawn;
    Request* const previous = state.previous_withdrawn;
    (previous != nullptr ? previous->sending.next_withdrawn : first_) = next;
    if (next != nullptr) {
        next->sending.previous_withdrawn = previous;
    }
    if (first_ == nullptr) {
        core_.rank.bootstrap().add(node::JobCount::withdrawing, -1);
    }
}

void Withdrawals::succeed(Request& send) {
    end(send);
    if (send.sending.offer == Offer::direct) {
        direct_.remove(send);
    }
    send.outcome.cancelled = true;
    core_.requests.complete(send); // which may end it
}

bool Withdrawals::find_left() {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    bool found = false;
    for (Request* send = first_; send != nullptr; send = send->sending.next_withdrawn) {
        if (send->peer < core_.rank.size && // others leave after all answers (Farewell)
            core_.rank.segment.slot(send->peer).state.load(std::memory_order_acquire) ==
                node::RankStage::finalised) {
            send->sending.withdrawal = Withdrawal::left;
            found = true;
        }
    }
    return found;
}

void Withdrawals::succeed_left() {
    for (Request* send = first_; send != nullptr;) {
        Request* const next = send->sending.next_withdrawn;
        if (send->sending.withdrawal == Withdrawal::left) {
            succeed(*send);
        }
        send = next;
    }
}

} // namespace warren::message
