#include "mpi/coll/slot_pool.hpp"

#include <cstring>

#include "mpi/coll/slot_memory.hpp"
#include "mpi/coll/staging.hpp"
#include "mpi/job/context_ids.hpp"

namespace warren::coll::slot_pool {

void settle(const node::Segment& segment, comm::Communicator& communicator) {
    std::atomic<std::uint32_t>& chosen =
        node::ContextIds::entry(segment, communicator.context()).slot;
    // Acquire: pairs with the exchange below, of who has seen to the slot's memory.
    std::uint32_t slot = chosen.load(std::memory_order_acquire);
    if (slot == 0) {
        const std::uint32_t own = acquire(segment, communicator.size());
        const std::uint32_t choice = own == comm::CollectivePlace::none ? refused : own + 1;
        if (chosen.compare_exchange_strong(slot, choice, std::memory_order_acq_rel,
                                           std::memory_order_acquire)) {
            slot = choice;
        } else if (choice != refused) {
            give_back(segment, own); // another member was quicker
        }
    }
    communicator.place.slot = slot == refused ? comm::CollectivePlace::none : slot - 1;
}

std::uint32_t acquire(const node::Segment& segment, int members) {
    for (std::uint32_t slot = 0; slot < segment.units(collective_slots); ++slot) {
        const std::uint64_t bit = std::uint64_t{1} << (slot % 64);
        std::atomic<std::uint64_t>& word = segment.at(slot_map)->used[slot / 64];
        if ((word.load(std::memory_order_relaxed) & bit) != 0 ||
            // Acquire: pairs with give_back, whose zeros this user must see.
            (word.fetch_or(bit, std::memory_order_acquire) & bit) != 0) {
            continue;
        }
        if (!segment.commit_units(collective_slots, slot, 1)) {
            word.fetch_and(~bit, std::memory_order_relaxed);
            return comm::CollectivePlace::none;
        }
        // The members learn of the slot from this rank, which orders this before their use.
        SlotHead::of(segment.unit(collective_slots, slot)).members =
            static_cast<std::uint32_t>(members);
        return slot;
    }
    return comm::CollectivePlace::none;
}

void give_back(const node::Segment& segment, std::uint32_t slot) {
    std::byte* memory = segment.unit(collective_slots, slot);
    SlotHead& head = SlotHead::of(memory);
    for (StagingKind kind : {StagingKind::small, StagingKind::large, StagingKind::wide}) {
        staging::give_back(segment, head.staging_word(kind), kind, static_cast<int>(head.members));
    }
    std::memset(memory, 0, segment.unit_bytes(collective_slots));
    segment.at(slot_map)->used[slot / 64].fetch_and(~(std::uint64_t{1} << (slot % 64)),
                                                    std::memory_order_release);
}

} // namespace warren::coll::slot_pool
