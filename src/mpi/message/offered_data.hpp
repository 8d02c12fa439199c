// Data that a sender offers to be fetched out of its memory.
//
// Data in one piece is offered by its address. Data of large blocks is offered as a list of them,
// which the receiver reads first: the kernel then copies from the sender's layout into the
// receiver's, and nobody packs. Small blocks cost the kernel more than packing them does.
// Thread rule: under the rank's lock.
#pragma once

#include "mpi/message/core.hpp"

namespace warren::message {

// Makes a send's data ready to be fetched, if it can be.
void prepare_offer(const Core& core, const Peer& peer, Request& send);

// Memory where the data is, or, if there are pieces, their list.
transport::RemoteMemory offered_memory(const Request& send);

// Whether the kernel copies a type's blocks one by one, rather than that they are packed.
bool is_coarse(const datatype::Datatype& type);

} // namespace warren::message
