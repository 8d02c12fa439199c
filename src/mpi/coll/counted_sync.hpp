// Counted synchronisation: many ranks, or more than processors. Contributions are in lines,
// arrivals are counted; the last to arrive combines and publishes. Each rank is scheduled once per
// operation, the minimum. Waiters yield first, then sleep, and wake each other as a tree. Fibres
// wait for an event instead of sleeping, and continue all at once (Rank::release_event).
//
// Invariants
//  1. Arrivals of a phase, modulo 2^32, are size · (operations of the phase that are complete) plus
//     those of the one under way. Above them ranks add up shares of their calls' signatures, which
//     make nothing if all are the same: the last to arrive finds out whether calls match, and tells
//     all (found_different). Published numbers of a phase only grow.
//  2. A waiter's bit is in a bitmap for its operation and what it waits for, "published" or
//     "arrived", and a bit is only taken by who knows that this has happened; so a waiter whose bit
//     was taken finds its condition true, leaves, and wakes the next ones.
// Thread rule: as SlotMember.
#pragma once

#include <atomic>
#include <cstdint>

#include "mpi/coll/call_agreement.hpp"

namespace warren::coll::counted {

// Wakes a few sleepers, who wake others.
void wake_some(const SlotMember& slot, std::atomic<std::uint64_t>* waiters);
inline void wake_arrived(const SlotMember& slot, std::uint64_t operation) {
    wake_some(slot, slot.arrived_waiters(operation));
    slot.node_rank.release_event(&slot.memory.arrivals(operation));
}

// Says that the operation's result, or a root's data, is there.
void publish(CallAgreement& call, std::uint64_t operation);

// Returns whether this rank is the last. (Not inline, like all of this: flat operations, which test
// for it, would lose registers.)
bool arrive(CallAgreement& call, std::uint64_t operation);

// Waits until the last to arrive, or a root, has published.
void wait_published(CallAgreement& call, std::uint64_t operation);
// Waits until all have arrived, whatever their calls are. False: the slot is broken, and all have
// left.
bool wait_arrived(CallAgreement& call, std::uint64_t operation);
// As above, for an operation of an earlier call. False: the wait was given up.
bool wait_arrived(CallAgreement& call, std::uint64_t operation, GivesUp gives_up);

// --- Operations in which a root reads what all others have written

// Signs this rank's line. The arrival, which follows, is a release.
inline void sign_line(CallAgreement& call, std::uint64_t operation) {
    call.slot()
        .memory.line(operation, call.slot().rank)
        .stamp.store(call.stamp(operation), std::memory_order_relaxed);
}
// Arrives; returns whether only the root is missing.
bool arrive_before_root(CallAgreement& call, std::uint64_t operation);
// The root waits until all others have arrived, then compares what they have signed.
void wait_for_others(CallAgreement& call, std::uint64_t operation);

} // namespace warren::coll::counted
