#include "mpi/message/offered_data.hpp"

#include <cstdlib>

#include "mpi/message/tuning.hpp"

namespace warren::message {

bool is_coarse(const datatype::Datatype& type) {
    return type.size / type.block_count() >= coarse_block_bytes;
}

void prepare_offer(const Core& core, const Peer& peer, Request& send) {
    SendState& state = send.sending;
    state.offer = Offer::streamed;
    // The receiver asks for a stream if blocks can overlap in transfer, or if it can't fetch.
    if (send.bytes == 0 || core.transport.plans().is_streamed(peer) ||
        !core.transport.abilities(peer).get) {
        return;
    }
    const Buffer& buffer = send.buffer;
    const bool listed = is_coarse(*buffer.type);
    const auto limit = static_cast<std::size_t>(buffer.count * buffer.type->block_count());
    if (state.packed == nullptr) {
        state.packed =
            static_cast<std::byte*>(std::malloc(listed ? limit * sizeof(iovec) : send.bytes));
    }
    if (state.packed == nullptr) {
        return; // without memory it has to be streamed as well
    }
    if (listed) {
        MPI_Count covered;
        state.pieces = buffer.type->pieces(buffer.base, buffer.count, 0, buffer.bytes(),
                                           reinterpret_cast<iovec*>(state.packed), limit, covered);
    } else {
        buffer.type->pack(buffer.base, buffer.count, state.packed);
    }
    state.offer = Offer::fetched;
}

} // namespace warren::message
