// Offers: the peers that may be fetching data out of this rank's memory, with its help
// (joint_copy.hpp).
//
// While this rank waits for all that it has offered to a peer, a word in the pair ring says so, and
// the peer may ask for a push instead. Thread rule: under the rank's lock.
#pragma once

#include <cstdint>

#include "mpi/transport/shm/channel.hpp"
#include "mpi/transport/shm/peer_memory.hpp"
#include "mpi/transport/shm/tuning.hpp"

namespace warren::transport {

class Offers {
  public:
    explicit Offers(PeerMemory& memory) : memory_(memory) {}

    // No peer may be fetching with help.
    bool empty() const { return first_ == nullptr; }

    // Something is about to be offered that nobody waits for.
    static void say_not_awaited(Channel& channel) {
        LargeData* large = channel.large_if_any();
        if (large != nullptr && large->told) {
            large->told = false;
            channel.pair_ring.set_awaits(false);
        }
    }
    // Whether this rank can help with data in one piece of this size.
    static bool can_help(const Channel& channel, std::uint64_t bytes) {
        return channel.pair_ring && bytes >= joint_limit;
    }
    // From here on this rank helps the peer with one more offer, or one less. `awaited`: it waits
    // for that one. await(): it does from now on.
    void begin(Channel& channel, bool awaited);
    void end(Channel& channel, bool awaited);
    static void await(Channel& channel);

    // Copies a block of what each peer fetches just now. False: there was none.
    bool help();

  private:
    // Tells the peer when all that it has been offered is awaited.
    static void tell_awaited(Channel& channel);

    PeerMemory& memory_;
    Channel* first_ = nullptr; // channels of peers that may be fetching
};

} // namespace warren::transport
