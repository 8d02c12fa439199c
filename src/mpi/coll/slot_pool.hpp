// Slot pool: the node's collective slots, and which communicator has which.
//
// The world has slot 0. Another communicator takes a slot at its first collective operation, if one
// is free; the context's entry in the segment says which.
//
// Invariant: a slot's memory is zero when a communicator gets it. The last member of a communicator
// that ends clears it, and gives its staging areas back.
// Thread rule: any rank at any time.
#pragma once

#include <cstdint>

#include "mpi/comm/communicator.hpp"
#include "mpi/job/segment.hpp"

namespace warren::coll::slot_pool {

// In a context's entry: there was no slot for it.
inline constexpr std::uint32_t refused = 0xffffffff;

inline bool has_slot(const comm::Communicator& communicator) {
    return communicator.place.slot < comm::CollectivePlace::unknown;
}
[[gnu::cold]] void settle(const node::Segment& segment, comm::Communicator& communicator);
// As has_slot, after it has been found out: the first member that asks takes a slot for all.
inline bool find(const node::Segment& segment, comm::Communicator& communicator) {
    if (communicator.place.slot == comm::CollectivePlace::unknown) [[unlikely]] {
        settle(segment, communicator);
    }
    return has_slot(communicator);
}

// Takes a free slot for a communicator of `members` ranks; CollectivePlace::none when none is free,
// or memory is out; and gives it back, when all of them have ended their use.
std::uint32_t acquire(const node::Segment& segment, int members);
void give_back(const node::Segment& segment, std::uint32_t slot);

} // namespace warren::coll::slot_pool
