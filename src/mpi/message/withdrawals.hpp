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

    // Ends those whose receiver has left MPI, after poll(), which handles all that these have sent.
    // A rank that has left neither receives nor answers any more, and all its answers are in this
    // rank's queue or pair rings by the time its state is seen. poll() returns false if what is
    // looked for is not there yet: then this is asked again.
    template <typename Poll>
    bool look_for_left(Poll poll) {
        if (!find_left()) {
            return false;
        }
        if (!poll()) {
            core_.rank.wake_threads(); // something may have come
            return false;
        }
        succeed_left();
        return true;
    }

  private:
    // Marks those whose receiver has left MPI; false: there are none.
    bool find_left();
    // Ends the marked ones.
    void succeed_left();
    void announce(Request& send);
    void remove(Request& send);

    Core& core_;
    DirectCopies& direct_;
    Request* first_ = nullptr; // the newest
};

} // namespace warren::message
