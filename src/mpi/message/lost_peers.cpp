#include "mpi/message/lost_peers.hpp"

#include "mpi.h"

namespace warren::message {

bool LostPeers::look_at(std::uint32_t ended) {
    if (ended != noted_) {
        note(ended);
        return true;
    }
    bool found = !settled_; // calls that look for messages have to look again
    settled_ = true;
    core_.requests.for_each([&](Request& request) {
        if (waits_in_vain(request)) {
            end(request); // which may discard it
            found = true;
        }
    });
    return found;
}

void LostPeers::note(std::uint32_t ended) {
    noted_ = ended;
    settled_ = false;
    ended_.resize(core_.rank.size);
    for (std::uint32_t rank = 0; rank < core_.rank.size; ++rank) {
        ended_[rank] = core_.rank.segment.has_ended(rank);
    }
}

bool LostPeers::waits_in_vain(const Request& request) const {
    if (request.complete) {
        return false;
    }
    if (request.is_send()) {
        return is_lost(request.peer);
    }
    if (!request.is_receive()) {
        return false; // the operations that it is made of are in the table, too
    }
    Envelope envelope = request.envelope;
    if (request.receiving.matched) {
        envelope.source = request.outcome.source;
    }
    // (A program that doesn't wait for it yet may still send the message itself.)
    return are_lost(envelope, !request.awaited);
}

void LostPeers::end(Request& request) {
    if (request.is_send()) {
        if (!core_.outbox.take_back(core_.peers.of(request.peer), request)) {
            withdrawals_.end(request);
            core_.end_offer(request);
        }
    } else if (!request.receiving.matched) {
        receiver_.withdraw(request);
        if (request.fate == Fate::abandoned) {
            core_.requests.abandoned_is_matched();
        }
        request.outcome.source = request.envelope.source;
        request.outcome.tag = request.envelope.tag;
    }
    request.outcome.bytes = 0;
    request.outcome.error_class = MPI_ERR_PROC_ABORTED;
    core_.requests.complete(request);
}

} // namespace warren::message
