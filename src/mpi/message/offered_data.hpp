// Data that a sender offers to be fetched out of its memory.
//
// Data in one piece is offered by its address. Data of large blocks is offered as a list of them,
// which the receiver reads first: the kernel then copies from the sender's layout into the
// receiver's, and nobody packs. Small blocks cost the kernel more than packing them does.
// Thread rule: under the rank's lock.
#pragma once

#include <sys/uio.h>

#include "mpi/message/core.hpp"

namespace warren::message {

// Makes the data of a send with gaps ready to be fetched, if it can be. Once for each start.
void prepare_offer(const Core& core, const Peer& peer, Request& send);

// Memory where the data is, or, if there are pieces, their list.
// Without an address, the receiver has to ask for the data: it is on another node.
inline transport::RemoteMemory offered_memory(const Peer& peer, const Request& send) {
    const SendState& state = send.sending;
    const std::byte* data = peer.remote                     ? nullptr
                            : state.offer == Offer::fetched ? state.packed
                                                            : send.data;
    return {.address = reinterpret_cast<std::uint64_t>(data),
            .length = state.pieces != 0 ? state.pieces * sizeof(iovec) : send.bytes,
            .key = 0};
}

// Whether the kernel copies a type's blocks one by one, rather than that they are packed.
bool is_coarse(const datatype::Datatype& type);

} // namespace warren::message
