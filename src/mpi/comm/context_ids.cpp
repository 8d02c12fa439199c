#include "mpi/comm/context_ids.hpp"

namespace warren::comm {

using node::ContextEntry;

namespace {

// The head of the free list: its first index below, above it a count of changes, by which a rank
// that was interrupted between look and exchange notices that the list is another one by now.
constexpr std::uint64_t changed(std::uint64_t head, std::uint32_t first) {
    return ((head >> 32) + 1) << 32 | first;
}

} // namespace

std::uint32_t ContextIds::take(const node::Segment& segment, std::uint32_t members) {
    node::SegmentHeader& header = segment.header();
    std::uint32_t index;
    // Acquire: pairs with give_back, which has linked the entry.
    std::uint64_t head = header.free_contexts.load(std::memory_order_acquire);
    do {
        index = static_cast<std::uint32_t>(head);
    } while (index != 0 &&
             !header.free_contexts.compare_exchange_weak(
                 head, changed(head, segment.context(index).next.load(std::memory_order_relaxed)),
                 std::memory_order_acq_rel, std::memory_order_acquire));
    if (index == 0) {
        index = header.next_context.fetch_add(1, std::memory_order_relaxed);
        if (index >= node::context_limit) {
            header.next_context.fetch_sub(1, std::memory_order_relaxed);
            return 0;
        }
        if (index >= header.committed_contexts.load(std::memory_order_relaxed) &&
            !segment.commit_contexts(index)) {
            return 0;
        }
    }
    ContextEntry& entry = segment.context(index);
    // The members learn of the number from this rank, which orders this before their use of it.
    entry.slot.store(0, std::memory_order_relaxed);
    entry.users.store(members, std::memory_order_relaxed);
    const std::uint32_t lives = entry.lives++;
    return lives << (index_bits + 1) | index << 1;
}

std::uint32_t ContextIds::give_back(const node::Segment& segment, std::uint32_t context) {
    const std::uint32_t index = index_of(context);
    if (index < first_dynamic) {
        return 0;
    }
    ContextEntry& entry = segment.context(index);
    if (entry.users.fetch_sub(1, std::memory_order_acq_rel) != 1) {
        return 0;
    }
    const std::uint32_t slot = entry.slot.load(std::memory_order_relaxed);
    node::SegmentHeader& header = segment.header();
    std::uint64_t head = header.free_contexts.load(std::memory_order_relaxed);
    do {
        entry.next.store(static_cast<std::uint32_t>(head), std::memory_order_relaxed);
    } while (!header.free_contexts.compare_exchange_weak(
        head, changed(head, index), std::memory_order_acq_rel, std::memory_order_relaxed));
    return slot;
}

} // namespace warren::comm
