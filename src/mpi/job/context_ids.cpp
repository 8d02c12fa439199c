#include "mpi/job/context_ids.hpp"

#include "base/page.hpp"
#include "mpi/job/node_map.hpp"

namespace warren::node {

namespace {

// The head of the free list: its first index below, above it a count of changes, by which a rank
// that was interrupted between look and exchange notices that the list is another one by now.
constexpr std::uint64_t changed(std::uint64_t head, std::uint32_t first) {
    return ((head >> 32) + 1) << 32 | first;
}

constexpr std::uint32_t contexts_per_page = page_bytes / sizeof(ContextEntry);

// Gives memory to the entries up to this one, and some more.
bool commit_up_to(const Segment& segment, ContextStock& stock, std::uint32_t index) {
    const std::uint32_t end = (index / contexts_per_page + 1) * contexts_per_page;
    std::uint32_t begin = stock.committed.load(std::memory_order_relaxed);
    // Two ranks may do the same here, which is harmless.
    if (begin < end && !segment.commit_units(contexts, begin, end - begin)) {
        return false;
    }
    while (begin < end &&
           !stock.committed.compare_exchange_weak(begin, end, std::memory_order_relaxed)) {
    }
    return true;
}

} // namespace

std::uint32_t ContextIds::take(const Segment& segment, std::uint32_t members) {
    ContextStock& stock = *segment.at(context_stock);
    std::uint32_t index;
    // Acquire: pairs with give_back, which has linked the entry.
    std::uint64_t head = stock.free.load(std::memory_order_acquire);
    do {
        index = static_cast<std::uint32_t>(head);
    } while (index != 0 &&
             !stock.free.compare_exchange_weak(
                 head,
                 changed(head, segment.at(contexts)[index].next.load(std::memory_order_relaxed)),
                 std::memory_order_acq_rel, std::memory_order_acquire));
    if (index == 0) {
        index = stock.next.fetch_add(1, std::memory_order_relaxed);
        if (index >= context_limit) {
            stock.next.fetch_sub(1, std::memory_order_relaxed);
            return 0;
        }
        if (index >= stock.committed.load(std::memory_order_relaxed) &&
            !commit_up_to(segment, stock, index)) {
            return 0;
        }
    }
    ContextEntry& entry = segment.at(contexts)[index];
    // The members learn of the number from this rank, which orders this before their use of it.
    entry.slot.store(0, std::memory_order_relaxed);
    entry.users.store(members, std::memory_order_relaxed);
    const std::uint32_t lives = entry.lives++;
    return lives << (index_bits + 1) | index << 1;
}

std::uint32_t ContextIds::take_spanning(const Segment& segment) {
    const NodePlace& place = *segment.at(node_place);
    const std::uint64_t taken =
        segment.at(context_stock)->spanning.fetch_add(1, std::memory_order_relaxed);
    const std::uint64_t number = taken * place.nodes + place.node;
    if (number >> 30 != 0) { // bits 31…21 and the lower ones of the index
        segment.at(context_stock)->spanning.fetch_sub(1, std::memory_order_relaxed);
        return 0;
    }
    return spanning(static_cast<std::uint32_t>(number));
}

std::uint32_t ContextIds::spanning(std::uint32_t number) {
    const std::uint32_t low = number & ((1u << low_bits) - 1);
    return number >> low_bits << (index_bits + 1) | (first_spanning | low) << 1;
}

std::uint32_t ContextIds::number_of(std::uint32_t context) {
    return context >> (index_bits + 1) << low_bits | (index_of(context) & ((1u << low_bits) - 1));
}

std::uint32_t ContextIds::give_back(const Segment& segment, std::uint32_t context) {
    const std::uint32_t index = index_of(context);
    if (index < first_dynamic || is_spanning(context)) {
        return 0;
    }
    ContextEntry& entry = segment.at(contexts)[index];
    if (entry.users.fetch_sub(1, std::memory_order_acq_rel) != 1) {
        return 0;
    }
    const std::uint32_t slot = entry.slot.load(std::memory_order_relaxed);
    ContextStock& stock = *segment.at(context_stock);
    std::uint64_t head = stock.free.load(std::memory_order_relaxed);
    do {
        entry.next.store(static_cast<std::uint32_t>(head), std::memory_order_relaxed);
    } while (!stock.free.compare_exchange_weak(
        head, changed(head, index), std::memory_order_acq_rel, std::memory_order_relaxed));
    return slot;
}

} // namespace warren::node
