// Messages that leave at once, without a request: those that fit a cell or a block, if there is
// space for them. Each function returns false when it has sent nothing: no space now, or the
// message doesn't fit, or is not to be sent so. Thread rule: under the rank's lock.
#pragma once

#include <cstddef>
#include <cstdint>

#include "mpi/message/core.hpp"

namespace warren::message {

// From a source of any kind, larger than a cell holds.
bool send_block(Core& core, Peer& peer, const Envelope& envelope, const transport::Source& source,
                std::uint64_t bytes);
// From a buffer whose type isn't contiguous.
bool send_gaps(Core& core, Peer& peer, const Envelope& envelope, const Buffer& buffer);
// From contiguous memory.
inline bool send_piece(Core& core, Peer& peer, const Envelope& envelope, const void* data,
                       std::uint64_t bytes) {
    return bytes <= transport::inline_bytes
               ? core.transport.send_inline(peer, header_of(kind::eager, envelope), data, bytes)
               : send_block(core, peer, envelope, data, bytes);
}

// Up to inline_bytes of a short message, to a peer without a pair ring.
bool send_queued(Core& core, Peer& peer, const void* data, std::size_t bytes,
                 const Envelope& envelope);

// From any buffer to any rank but this one.
inline bool send_at_once(Core& core, const Buffer& buffer, std::uint32_t peer_rank,
                         const Envelope& envelope) {
    if (peer_rank == core.rank.index) [[unlikely]] {
        return false;
    }
    Peer& peer = core.peers.of(peer_rank);
    if (peer.first != nullptr) [[unlikely]] {
        return false;
    }
    if (!buffer.type->contiguous) [[unlikely]] {
        return send_gaps(core, peer, envelope, buffer);
    }
    const auto bytes = static_cast<std::uint64_t>(buffer.bytes());
    if (bytes <= transport::inline_bytes) [[likely]] {
        return core.transport.send_inline(peer, header_of(kind::eager, envelope), buffer.base,
                                          bytes);
    }
    if (core.transport.plans().is_taken(peer, bytes)) [[unlikely]] {
        return false;
    }
    return send_block(core, peer, envelope, buffer.base, bytes);
}

// --- Data with gaps

// Small pieces of memory far apart bring whole cache lines with them.
inline std::size_t piece_of(const Buffer& buffer) {
    return static_cast<std::size_t>(buffer.type->size / buffer.type->block_count());
}
inline bool has_small_pieces(const Buffer& buffer) {
    return piece_of(buffer) < node::cache_line_bytes;
}

} // namespace warren::message
