// Agreement on a new communicator: its context, and for a split, who its members are.
//
// A parent on one node agrees in its collective slot: each rank writes its colour and key there,
// and the last to arrive assigns contexts and places for all, so that each rank is scheduled once
// (SmallCollectives::split). Otherwise the first rank of the new communicator takes the context,
// and the others receive it by messages: O(log P) per rank. The collective slot of a new
// communicator is taken from the node's at its first collective operation, by whoever comes first
// (slot_pool.hpp): most communicators never need one. Thread rule: under the rank's lock.
#pragma once

#include <cstdint>
#include <vector>

#include "base/error.hpp"
#include "mpi/coll/channel.hpp"
#include "mpi/comm/communicator.hpp"

namespace warren::coll {

// Values that the members of a new communicator share. Plain memory: it travels as bytes.
struct NewCommunicator {
    std::uint32_t context = 0;       // 0: there is none left, or no memory for it
    std::uint32_t local_context = 0; // of an intercommunicator's local intracommunicators
};

enum class Kind : bool { intra, inter };

// Whether some of these ranks are on other nodes, or of other worlds.
bool spans_nodes(const Rank& rank, const comm::RankMap& members);
// Taken by the first rank of the new communicator, which has so many members in all.
NewCommunicator take_new(Rank& rank, int members, Kind kind, bool spans);
// Gives up this rank's share, with the communicator's end or because it does not come to use it.
void give_back(Rank& rank, const NewCommunicator& agreed);
// As above, of communicators of several worlds, by whoever knows that no member uses the contexts
// any more. Nothing happens at ranks that have not taken them, and to other communicators.
void give_back_connecting(Rank& rank, const NewCommunicator& agreed);
// A communicator of one node that has its context from take_new() may find itself a collective
// slot.
void expect_place(const Rank& rank, comm::Communicator& made);

// From rank 0 of the parent to all of its ranks.
Error agree_on_duplicate(message::Engine& engine, comm::Communicator& parent, Kind kind,
                         NewCommunicator& agreed);

// From the first of `members` (ranks of the channel's communicator, this one among them) to the
// others; nobody else takes part.
Error agree_among(const Channel& channel, const std::vector<int>& members, Kind kind,
                  NewCommunicator& agreed);

// The new communicator of this rank's colour, and its members as ranks of the parent, ordered by
// key, then rank; none for MPI_UNDEFINED. All ranks of the parent call it.
Error agree_on_split(message::Engine& engine, comm::Communicator& parent, int colour, int key,
                     std::vector<int>& members, NewCommunicator& agreed);

// The ranks of the parent that chose this rank's colour, ordered by key, then rank; empty for
// MPI_UNDEFINED. All ranks of the parent call it.
Error find_members(message::Engine& engine, comm::Communicator& parent, int colour, int key,
                   std::vector<int>& members);

} // namespace warren::coll
