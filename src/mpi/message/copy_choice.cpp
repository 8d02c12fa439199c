#include "mpi/message/copy_choice.hpp"

#include <new>

namespace warren::message {

std::size_t piece_of(const Buffer& buffer) {
    return static_cast<std::size_t>(buffer.type->size / buffer.type->block_count());
}

bool has_small_pieces(const Buffer& buffer) {
    return piece_of(buffer) < node::cache_line_bytes;
}

CopyMethod CopyChoice::method(const Peer& peer, std::uint64_t bytes) {
    const Advice advice = peer.pair_ring.advice();
    const std::uint32_t size_class = CopyMethodClass::of(bytes);
    const Bulk* bulk = peer.bulk_if_any();
    return bulk != nullptr && bulk->methods != nullptr
               ? bulk->methods->next(size_class, advice)
               : CopyMethodClass::advised(size_class, advice);
}

bool CopyChoice::has_choice(const Peer& peer, const Request& send) const {
    return peer.pair_ring && (!peer.same_space || is_streamed(peer)) && !send.laid_out &&
           !send.sending.without_blocks && send.operation != Operation::synchronous &&
           send.operation != Operation::buffered && CopyMethodClass::has(send.bytes) &&
           (send.awaited || !CopyMethodClass::is_long(send.bytes));
}

bool CopyChoice::is_fetched(const Peer& peer, const Request& send, const CopyMethod* chosen) {
    if (chosen != nullptr) {
        return *chosen == CopyMethod::fetch;
    }
    return peer.pair_ring && !peer.same_space && !send.laid_out &&
           send.operation != Operation::buffered && CopyMethodClass::is_long(send.bytes) &&
           (peer.pair_ring.advice() & no_fetching) == 0;
}

bool CopyChoice::streams_gaps(const Peer& peer, const Buffer& gaps) const {
    // A rank that reads small pieces of another's memory takes whole lines out of its caches, which
    // the owner soon needs for the data beside them. Then the owner should pack the data.
    return !peer.same_space || (is_streamed(peer) && has_small_pieces(gaps));
}

bool CopyChoice::goes_direct(const Peer& peer, const Request& send,
                             const CopyMethod* chosen) const {
    if (!peer.same_space) {
        return false;
    }
    if (send.operation == Operation::synchronous || send.sending.without_blocks) {
        return true;
    }
    if (send.bytes <= direct_limit) {
        return false;
    }
    if (send.laid_out) {
        // (Data that doesn't fit a block would need its sender again, which may be computing.)
        return !streams_gaps(peer, send.buffer) ||
               (send.bytes > transport_.block_limit(peer) && !send.awaited);
    }
    return chosen != nullptr ? *chosen == CopyMethod::fetch
                             : !is_streamed(peer) || CopyMethodClass::has(send.bytes);
}

std::uint64_t CopyChoice::stamp(Peer& peer, std::uint64_t bytes, CopyMethod method) {
    std::unique_ptr<CopyMethods>& methods = peer.bulk().methods;
    if (methods == nullptr) [[unlikely]] {
        // Without memory nothing is measured.
        methods.reset(new (std::nothrow) CopyMethods);
    }
    return methods != nullptr ? methods->stamp(CopyMethodClass::of(bytes), method) : 0;
}

void CopyChoice::used(Peer& peer, std::uint64_t bytes) {
    const Bulk* bulk = peer.bulk_if_any();
    if (bulk != nullptr && bulk->methods != nullptr) {
        bulk->methods->sent(CopyMethodClass::of(bytes), peer.pair_ring.advice());
    }
}

} // namespace warren::message
