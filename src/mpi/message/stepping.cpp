#include "mpi/message/stepping.hpp"

namespace warren::message {

void Stepping::start(Request& request) {
    request.active = true;
    request.complete = false;
    request.outcome = {};
    request.stepping.next = first_;
    first_ = &request;
}

void Stepping::never_empty() {
    resident_ = std::make_unique<Request>();
    resident_->operation = Operation::combined;
    resident_->stepping.step = [](Request&) { return false; };
    start(*resident_);
}

bool Stepping::run() {
    // A step may run a function of the program, without the lock: other threads that come here
    // meanwhile, and the function's own calls, leave the list to this one. They may add to it.
    if (runs_) {
        return false;
    }
    runs_ = true;
    bool moved = false;
    Request** link = &first_;
    while (*link != nullptr) {
        Request& request = **link;
        if (request.stepping.step(request)) {
            if (*link != &request) {
                // Requests were added before what was the first.
                for (link = &first_; *link != &request; link = &(*link)->stepping.next) {
                }
            }
            *link = request.stepping.next;
            moved = true;
            requests_.complete(request);
        } else {
            link = &request.stepping.next;
        }
    }
    runs_ = false;
    return moved;
}

} // namespace warren::message
