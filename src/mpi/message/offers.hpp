// Offers: the sends whose receivers may be fetching them out of this rank's memory, with its help
// (mpi/transport/shm/joint_copy.hpp).
//
// Data in one piece is offered by its address. Data of large blocks is offered as a list of them,
// which the receiver reads first: the kernel then copies from the sender's layout into the
// receiver's, and nobody packs. Small blocks cost the kernel more than packing them does.
//
// While this rank waits for all that it has offered to a receiver, a word in the pair ring says so,
// and the receiver may ask for a stream instead. Thread rule: under the rank's lock.
#pragma once

#include <cstdint>

#include "mpi/message/core.hpp"
#include "mpi/message/protocol.hpp"

namespace warren::message {

class Offers {
  public:
    explicit Offers(Core& core) : core_(core) {}

    // No peer may be fetching with help.
    bool empty() const { return first_ == nullptr; }

    // Makes a send's data ready to be fetched, and describes it for a rendezvous.
    RendezvousData describe(const Peer& peer, Request& send);
    // A send is about to be offered that nobody waits for.
    static void say_not_awaited(Peer& peer);
    // From here on this rank helps the receiver of an offered send, until end().
    void begin(Peer& peer, Request& send);
    void end(Request& send) {
        if (send.sending.offered) {
            end_offered(send);
        }
    }
    // An offered send is waited for from now on.
    void await(const Request& send);

    // Copies a block of what each peer fetches just now. False: there was none.
    bool help();

  private:
    void prepare(const Peer& peer, Request& send);
    void end_offered(Request& send);
    // Tells the receiver when all that it has been offered is awaited.
    static void tell_awaited(Peer& peer);

    Core& core_;
    Peer* first_ = nullptr; // peers that may be fetching
};

// Whether the kernel copies a type's blocks one by one, rather than that they are packed.
bool is_coarse(const datatype::Datatype& type);

} // namespace warren::message
