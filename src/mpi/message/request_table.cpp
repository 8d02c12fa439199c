#include "mpi/message/request_table.hpp"

#include <cstdlib>

namespace warren::message {

namespace {
void free_owned(Request& request) {
    if (request.is_send()) {
        std::free(request.sending.packed);
    }
}
} // namespace

RequestTable::~RequestTable() {
    table_.for_each([](Request& request) { free_owned(request); });
}

void RequestTable::discard(Request& request) {
    if (!request.complete) {
        if (request.is_receive() && !request.receiving.matched) {
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
    free_owned(request);
    table_.remove(request);
}

void RequestTable::leave(Request& request) {
    if (!request.complete) {
        request.fate = Fate::left;
        ++unattended_;
    }
}

void RequestTable::end_unattended(Request& request) {
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

} // namespace warren::message
