#include "mpi/message/at_once.hpp"

#include <cstring>

#include "mpi/message/laid_out.hpp"

namespace warren::message {

bool send_block(Core& core, Peer& peer, const Envelope& envelope, const transport::Source& source,
                std::uint64_t bytes) {
    transport::NodeTransport& transport = core.transport;
    if (bytes <= transport.whole_block_limit(peer)) {
        return transport.send_block(peer, header_of(kind::eager, envelope), {}, source, bytes);
    }
    if (bytes > transport.block_limit(peer)) {
        return false;
    }
    // If a message can't be fetched although that was chosen, it is pushed. It then counts in its
    // row but isn't measured.
    const bool counts = source.data() != nullptr && CopyMethodClass::has(bytes);
    const CopyMethod method = counts ? CopyChoice::method(peer, bytes) : CopyMethod::push;
    std::byte extra[transport::extra_bytes] = {};
    const StreamHead stream = {.total = bytes,
                               .token = 0,
                               .began = counts && method != CopyMethod::fetch
                                            ? CopyChoice::stamp(peer, bytes, method)
                                            : 0};
    std::memcpy(extra, &stream, sizeof stream);
    if (!transport.send_block(peer, header_of(kind::stream_head, envelope), extra,
                              source.passing(method == CopyMethod::pass), bytes, bytes)) {
        return false;
    }
    if (counts) {
        CopyChoice::used(peer, bytes);
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
    const CopyChoice choice(core.transport);
    if (const void* piece = buffer.type->one_piece(buffer.base, buffer.count)) {
        return !choice.is_fetched(peer, bytes) && send_block(core, peer, envelope, piece, bytes);
    }
    if (bytes > direct_limit && !choice.streams_gaps(peer, buffer)) {
        return false;
    }
    const LaidOut data(buffer);
    return send_block(core, peer, envelope, data.source(0), bytes);
}

} // namespace warren::message
