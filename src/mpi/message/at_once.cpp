#include "mpi/message/at_once.hpp"

#include <cstring>

#include "mpi/message/laid_out.hpp"

namespace warren::message {

bool send_block(Core& core, Peer& peer, const Envelope& envelope, const transport::Source& source,
                std::uint64_t bytes) {
    Transport& transport = core.transport;
    if (bytes <= transport.whole_block_limit(peer)) {
        return transport.send_block(peer, header_of(kind::eager, envelope), {}, source, bytes);
    }
    if (bytes > transport.block_limit(peer)) {
        return false;
    }
    const transport::Plan plan =
        transport::Plans::plan_block(peer, bytes, source.data() != nullptr);
    transport::Extra extra = {};
    const StreamHead stream = {
        .total = bytes, .token = 0, .began = transport::Plans::stamp(peer, plan, bytes)};
    std::memcpy(extra, &stream, sizeof stream);
    if (!transport.send_block(peer, header_of(kind::stream_head, envelope), extra,
                              source.passing(plan.passes), bytes, bytes)) {
        return false;
    }
    transport::Plans::sent(peer, plan, bytes);
    core.count_sent(core.rank.counts.streams, peer.peer, envelope, bytes);
    return true;
}

bool send_queued(Core& core, Peer& peer, const void* data, std::size_t bytes,
                 const Envelope& envelope) {
    if (!core.transport.send_inline(peer, header_of(kind::eager, envelope), data, bytes)) {
        return false;
    }
    if (core.rank.load != nullptr) {
        balance::count_message(*core.rank.load, peer.peer, bytes);
    }
    return true;
}

bool send_gaps(Core& core, Peer& peer, const Envelope& envelope, const Buffer& buffer) {
    const auto bytes = static_cast<std::uint64_t>(buffer.bytes());
    if (bytes <= transport::inline_bytes) {
        std::byte packed[transport::inline_bytes];
        buffer.type->pack(buffer.base, buffer.count, packed);
        return core.transport.send_inline(peer, header_of(kind::eager, envelope), packed, bytes);
    }
    const transport::Plans& plans = core.transport.plans();
    if (const void* piece = buffer.type->one_piece(buffer.base, buffer.count)) {
        return !plans.is_taken(peer, bytes) && send_block(core, peer, envelope, piece, bytes);
    }
    if (bytes > transport::direct_limit && !plans.streams_gaps(peer, has_small_pieces(buffer))) {
        return false;
    }
    const LaidOut data(buffer);
    return send_block(core, peer, envelope, data.source(0), bytes);
}

} // namespace warren::message
