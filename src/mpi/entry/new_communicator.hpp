// Making communicators that their members have agreed on: what the files of the chapters on
// communicators and topologies share.
//
// Thread rule: under the rank's lock.
#pragma once

#include <vector>

#include "base/error.hpp"
#include "mpi/coll/agreement.hpp"
#include "mpi/entry/context.hpp"

namespace warren::mpi {

// The object of a communicator that its members have agreed on.
Error make_agreed(Context& context, const comm::RankMap& map, const coll::NewCommunicator& agreed,
                  comm::Communicator*& made);

Error make_agreed_inter(Context& context, const comm::RankMap& local, const comm::RankMap& remote,
                        bool first, const coll::NewCommunicator& agreed, comm::Communicator*& made);

// MPI_Intercomm_create between intracommunicators whose leaders are both in `peer` (null at a
// leader: it has found none).
Error connect(Context& context, comm::Communicator& local_comm, int local_leader,
              const comm::Communicator* peer, int remote_leader, int tag,
              comm::Communicator*& made);

// The end of a communicator's handle; requests may hold on to the rest.
void give_up(Context& context, comm::Communicator& comm);

// MPI_Comm_split of an intercommunicator.
Error split_inter(Context& context, comm::Communicator& comm, int color, int key,
                  MPI_Comm* newcomm);

// Ranks of the parent, this one among them, agree and make a communicator that has the parent's
// error handler. Nobody else takes part.
Error make_of_members(Context& context, const comm::Communicator& parent,
                      const std::vector<int>& members, const coll::Channel& channel,
                      comm::Communicator*& made);
// The first `count` ranks of the parent; called by them, or more.
Error make_of_first(Context& context, comm::Communicator& parent, int count,
                    comm::Communicator*& made);
// The ranks of one colour, in the order of keys, then ranks. All ranks of the parent call it; those
// with the colour MPI_UNDEFINED get null.
Error make_of_colour(Context& context, comm::Communicator& parent, int colour, int key,
                     comm::Communicator*& made);

} // namespace warren::mpi
