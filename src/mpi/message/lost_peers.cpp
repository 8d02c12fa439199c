#include "mpi/message/lost_peers.hpp"

#include "mpi.h"

namespace warren::message {

bool LostPeers::look_at(std::uint32_t ended) {
    if (ended != noted_) {
        noted_ = ended;
        return true;
    }
    bool found = false;
    core_.requests.for_each([&](Request& request) {
        if (waits_in_vain(request)) {
            end(request); // which may discard it
            found = true;
        }
    });
    return found;
}

bool LostPeers::waits_in_vain(const Request& request) const {
    if (request.complete) {
        return false;
    }
    if (request.is_send()) {
        return core_.rank.has_ended(request.peer);
    }
    if (!request.is_receive()) {
        return false; // the operations that it is made of are in the table, too
    }
    Envelope envelope = request.envelope;
    if (request.receiving.matched) {
        envelope.source = request.outcome.source;
    }
    return never_comes(envelope);
}

void LostPeers::end(Request& request) {
    if (request.is_send()) {
        if (!core_.outbox.take_back(core_.peers.of(request.peer), request)) {
            withdrawals_.end(request);
            core_.end_offer(request);
        }
    } else if (!request.receiving.matched) {
        receiver_.withdraw(request);
        request.outcome.source = request.envelope.source;
        request.outcome.tag = request.envelope.tag;
    }
    request.outcome.bytes = 0;
    request.outcome.error_class = MPI_ERR_PROC_ABORTED;
    core_.requests.complete(request);
}

} // namespace warren::message
