// Withdrawals: the announced sends that are to be taken back, because they were cancelled or given
// up.
//
// The sender tells the receiver (kind::withdrawn), which answers if nobody has received the
// message. A receiver that has left MPI answers no more: ranks that leave while there are
// withdrawals on the node ring all others, and this rank looks then. Thread rule: under the rank's
// lock.
#pragma once

#include "mpi/message/core.hpp"
#include "mpi/message/direct_copies.hpp"

namespace warren::message {

class Withdrawals {
  public:
    Withdrawals(Core& core, DirectCopies& direct) : core_(core), direct_(direct) {}
    ~Withdrawals();
    Withdrawals(const Withdrawals&) = delete;
    Withdrawals& operator=(const Withdrawals&) = delete;

    bool empty() const { return first_ == nullptr; }

    // Takes a send to another rank back. True: it has not been announced, and is over. False: it
    // has not ended, and may still be received.
    bool cancel(Request& send);
    // Takes a send out, if it is here.
    void end(Request& send) {
        if (send.sending.withdrawal != Withdrawal::none &&
            send.sending.withdrawal != Withdrawal::over) [[unlikely]] {
            remove(send);
        }
    }
    // Completes one whose withdrawal has succeeded, as cancelled.
    void succeed(Request& send);

    // find_left(): marks those whose receiver has left MPI; false: there are none. All that these
    // have sent is in this rank's queue or pair rings then. succeed_left(): ends the marked ones,
    // when that has been looked at.
    bool find_left();
    void succeed_left();

  private:
    void announce(Request& send);
    void remove(Request& send);

    Core& core_;
    DirectCopies& direct_;
    Request* first_ = nullptr; // the newest
};

} // namespace warren::message
