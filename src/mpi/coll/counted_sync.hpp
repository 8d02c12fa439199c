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

#include "base/invariant.hpp"
#include "mpi/coll/call_agreement.hpp"

namespace warren::coll::counted {

// What this rank's arrival adds: 1 in the lower half; above it, its share of the calls' signatures:
// its weight times a number made of the signature. The first rank's weight is minus all others'. So
// the sum is 0 of calls that match; of calls that differ once in millions.
inline std::uint64_t arrival(const CallAgreement& call) {
    const auto ranks = static_cast<std::uint64_t>(call.slot().size);
    const auto rank = static_cast<std::uint64_t>(call.slot().rank);
    const std::uint64_t weight = rank == 0 ? 1 - ranks * ranks : 2 * rank + 1;
    std::uint64_t mixed = call.signature() * 0x9e3779b97f4a7c15;
    mixed = (mixed ^ mixed >> 32) * 0xd6e8feb86659fd93 >> 32;
    return (weight * mixed << 32) + 1;
}
// The phase's arrivals once all have arrived in the operation, if their calls match.
inline std::uint64_t arrivals_after(const SlotMember& slot, std::uint64_t operation) {
    return (operation / node::collective_phases + 1) * static_cast<std::uint64_t>(slot.size);
}
// Arrivals beyond `expected`, modulo 2^32; negative: arrivals that are missing.
inline std::int32_t beyond(std::uint64_t arrived, std::uint64_t expected) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(arrived) -
                                     static_cast<std::uint32_t>(expected));
}

// Wakes a few sleepers, who wake others.
void wake_some(const SlotMember& slot, std::atomic<std::uint64_t>* waiters);
inline void wake_arrived(const SlotMember& slot, std::uint64_t operation) {
    wake_some(slot, slot.arrived_waiters(operation));
    Rank::release_event(&slot.memory.arrivals(operation));
}

inline void publish(CallAgreement& call, std::uint64_t operation) {
    const SlotMember& slot = call.slot();
    Line& published = slot.memory.published(operation);
    // There is one who publishes, unless calls don't match.
    call.note_unequal(published.stamp.load(std::memory_order_relaxed), operation);
    WARREN_INVARIANT(
        call.unequal() ||
            !CallAgreement::has_come(published.stamp.load(std::memory_order_relaxed), operation),
        "counted synchronisation 1: published numbers of a phase only grow");
    published.stamp.store(call.unequal() ? CallAgreement::differing_stamp(operation)
                                         : call.stamp(operation),
                          std::memory_order_release);
    wake_some(slot, slot.published_waiters(operation));
    Rank::release_event(&published);
}

// All have arrived, in calls that differ; `excess`: of the arrivals' upper half.
[[gnu::cold]] void found_different(CallAgreement& call, std::uint64_t operation,
                                   std::uint64_t excess);

// Returns whether this rank is the last.
inline bool arrive(CallAgreement& call, std::uint64_t operation) {
    const SlotMember& slot = call.slot();
    // Release: what this rank wrote and read before. Acquire: what all others did, for the last.
    const std::uint64_t own = arrival(call);
    const std::uint64_t arrived =
        slot.memory.arrivals(operation).fetch_add(own, std::memory_order_acq_rel) + own;
    const std::uint64_t all = arrivals_after(slot, operation);
    WARREN_INVARIANT(beyond(arrived, all) <= 0,
                     "counted synchronisation 1: each rank arrives once per round of a phase");
    if (beyond(arrived, all) != 0) {
        return false;
    }
    if (arrived != all) [[unlikely]] {
        found_different(call, operation, arrived - all);
    }
    return true;
}

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
