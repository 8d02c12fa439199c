#include "mpi/message/outbox.hpp"

#include <cstring>
#include <utility>

namespace warren::message {

Outbox::~Outbox() {
    for (Peer* peer = waiting_; peer != nullptr; peer = peer->next_waiting) {
        while (peer->first != nullptr) {
            Outgoing* outgoing = std::exchange(peer->first, peer->first->next);
            if (outgoing->is_answer) {
                delete static_cast<Answer*>(outgoing);
            }
        }
    }
}

void Outbox::enqueue(Peer& peer, Outgoing& outgoing) {
    outgoing.next = nullptr;
    if (peer.first == nullptr) {
        peer.first = &outgoing;
        peer.next_waiting = waiting_;
        waiting_ = &peer;
    } else {
        peer.last->next = &outgoing;
    }
    peer.last = &outgoing;
    ++count_;
    rank_.wake_threads(); // a thread that sleeps for all has not asked for this space
}

bool Outbox::take_back(Peer& peer, Request& send) {
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
    --count_;
    if (peer.first == nullptr) {
        unlink(peer);
    }
    return true;
}

void Outbox::tell_later(Peer& peer, const transport::Header& header, const void* data,
                        std::size_t bytes) {
    auto* waiting = new Answer;
    waiting->header = header;
    waiting->length = static_cast<std::uint8_t>(bytes);
    std::memcpy(waiting->payload, data, bytes);
    enqueue(peer, *waiting);
}

bool Outbox::push_answer(Peer& peer, Answer* answer) {
    if (!transport_.send_inline(peer, answer->header, answer->payload, answer->length)) {
        return false;
    }
    delete answer;
    return true;
}

void Outbox::put_last(Peer& peer) {
    Outgoing* first = peer.first;
    if (first->next != nullptr) {
        peer.first = std::exchange(first->next, nullptr);
        peer.last->next = first;
        peer.last = first;
    }
}

void Outbox::unlink(const Peer& peer) {
    Peer** link = &waiting_;
    while (*link != &peer) {
        link = &(*link)->next_waiting;
    }
    *link = peer.next_waiting;
}

bool Outbox::waits_for_space() const {
    for (const Peer* peer = waiting_; peer != nullptr; peer = peer->next_waiting) {
        // A rank that has left MPI receives nothing and needs no answers. (They stay queued, since
        // it may open a session and come back.) Nor does one that has ended.
        const bool has_left =
            !peer->remote &&
            (rank_.segment.slot(peer->peer).state.load(std::memory_order_acquire) ==
                 node::RankStage::finalised ||
             rank_.has_ended(peer->peer));
        for (const Outgoing* outgoing = peer->first; outgoing != nullptr;
             outgoing = outgoing->next) {
            if (!has_left || !outgoing->is_answer) {
                return true;
            }
        }
    }
    return false;
}

void Outbox::ask_for_space() {
    for (Peer* peer = waiting_; peer != nullptr; peer = peer->next_waiting) {
        // Blocks that ranks outside MPI hold must not stop sends to others: from now on the
        // receiver fetches the data itself, or gets it in small pieces. (This starts only before a
        // sleep: while all ranks are in MPI, blocks come back soon, and a send through a block
        // doesn't depend on its receive.)
        if (!peer->first->is_answer) {
            auto* send = static_cast<Request*>(peer->first);
            send->sending.without_blocks = send->bytes > transport::inline_bytes;
        }
        transport_.ask_for_space(*peer);
    }
}

bool Outbox::asks_for_space() const {
    for (const Peer* peer = waiting_; peer != nullptr; peer = peer->next_waiting) {
        if (!transport_.asks_for_space(*peer)) {
            return false;
        }
    }
    return true;
}

} // namespace warren::message
