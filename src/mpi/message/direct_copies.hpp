// DirectCopies: the sends that have been announced to ranks of this address space (direct.hpp).
// Thread rule: under the rank's lock.
#pragma once

#include "mpi/message/request.hpp"
#include "mpi/transport/shm/copy_large.hpp"

namespace warren::message {

class DirectCopies {
  public:
    bool empty() const { return first_ == nullptr; }

    void add(Request& send) {
        send.sending.next_direct = first_;
        first_ = &send;
    }
    // One that is here.
    void remove(const Request& send);

    // Helps with all, and calls finished(send) for those that have been copied, which are here no
    // longer. Returns whether anything has been done.
    template <typename Finished>
    bool run(const transport::LargeCopy& copy, Finished finished) {
        bool moved = false;
        for (Request** link = &first_; *link != nullptr;) {
            Request& send = **link;
            if (send.sending.direct.has_finished()) {
                *link = send.sending.next_direct;
                finished(send); // which may end it
                moved = true;
            } else {
                moved |= send.sending.direct.help(copy);
                link = &send.sending.next_direct;
            }
        }
        return moved;
    }

  private:
    Request* first_ = nullptr; // the newest
};

} // namespace warren::message
