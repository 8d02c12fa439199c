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
    std::uint32_t context = 0;       // 0: there is none left, or no memory for it
    std::uint32_t local_context = 0; // of an intercommunicator's local intracommunicators
    std::uint32_t slot = comm::CollectivePlace::none;
};

enum class Kind : bool { intra, inter };

// Taken by the first rank of the new communicator, which has so many members in all.
NewCommunicator take_new(Rank& rank, int members, Kind kind);
// Gives up this rank's share of what it does not come to use.
void give_back(Rank& rank, const NewCommunicator& agreed);

// From rank 0 of the parent to all of its ranks.
Error agree_on_duplicate(message::Engine& engine, comm::Communicator& parent, Kind kind,
                         NewCommunicator& agreed);

// From the first of `members` (ranks of the channel's communicator, this one among them) to the
// others; nobody else takes part.
Error agree_among(const Channel& channel, const std::vector<int>& members, Kind kind,
                  NewCommunicator& agreed);

// The ranks of the parent that chose this rank's colour, ordered by key, then rank; empty for
// MPI_UNDEFINED. All ranks of the parent call it.
Error find_members(message::Engine& engine, comm::Communicator& parent, int colour, int key,
                   std::vector<int>& members);

} // namespace warren::coll
