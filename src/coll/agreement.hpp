// Agreement on a new communicator: its context and its collective slot, which its first rank takes
// from the node's and the other members learn by messages inside the parent; and the allgather of
// colours and keys by which a split finds out who the members are.
//
// Cost: O(log P) messages per rank for the spread. Thread rule: under the rank's lock.
#pragma once

#include <vector>

#include "base/error.hpp"
#include "coll/channel.hpp"
#include "comm/communicator.hpp"

namespace warren::coll {

// What the members of a new communicator share. Plain memory: it travels as bytes.
struct NewCommunicator {
    std::uint32_t context = 0;
    std::uint32_t slot = comm::CollectivePlace::none;
};

// Taken by the first rank of the new communicator.
NewCommunicator take_new(Rank& rank, int members);

// From rank 0 of the parent to all of its ranks.
Error agree_on_duplicate(message::Engine& engine, comm::Communicator& parent,
                         NewCommunicator& agreed);

// From the first of `members` (ranks of the channel's communicator, this one among them) to the
// others; nobody else takes part.
Error agree_among(const Channel& channel, const std::vector<int>& members, NewCommunicator& agreed);

// The ranks of the parent that chose this rank's colour, ordered by key, then rank; empty for
// MPI_UNDEFINED. All ranks of the parent call it.
Error find_members(message::Engine& engine, comm::Communicator& parent, int colour, int key,
                   std::vector<int>& members);

} // namespace warren::coll
