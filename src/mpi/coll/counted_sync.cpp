#include "mpi/coll/counted_sync.hpp"

#include "base/futex.hpp"
#include "base/invariant.hpp"

namespace warren::coll::counted {

namespace {

// The number that this rank's arrival adds: 1 in the lower half; in the upper half, a hash of the
// call's signature times the rank's weight. The weights of all ranks sum to 0, so the upper half of
// the sum is 0 when all signatures are equal. When they differ it is 0 once in millions of calls.
std::uint64_t arrival(const CallAgreement& call) {
    const auto ranks = static_cast<std::uint64_t>(call.slot().size);
    const auto rank = static_cast<std::uint64_t>(call.slot().rank);
    const std::uint64_t weight = rank == 0 ? 1 - ranks * ranks : 2 * rank + 1;
    std::uint64_t mixed = call.signature() * 0x9e3779b97f4a7c15;
    mixed = (mixed ^ mixed >> 32) * 0xd6e8feb86659fd93 >> 32;
    return (weight * mixed << 32) + 1;
}
// The phase's arrivals once all have arrived in the operation, if their calls match.
std::uint64_t arrivals_after(const SlotMember& slot, std::uint64_t operation) {
    return (operation / collective_phases + 1) * static_cast<std::uint64_t>(slot.size);
}
// Arrivals beyond `expected`, modulo 2^32; negative: arrivals that are missing.
std::int32_t beyond(std::uint64_t arrived, std::uint64_t expected) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(arrived) -
                                     static_cast<std::uint32_t>(expected));
}

std::uint32_t words_of(int ranks) {
    return (static_cast<std::uint32_t>(ranks) + 63) / 64;
}

// Orders the publication before the search for sleepers, as in Doorbell::ring.
void fence_as_waker(const Rank& rank) {
    if (rank.header().fence_in_wakers.load(std::memory_order_relaxed) != 0) {
        std::atomic_thread_fence(std::memory_order_seq_cst);
    } else {
        std::atomic_signal_fence(std::memory_order_seq_cst);
    }
}

// `event`: who wakes the waiters releases it, too.
template <typename Done>
void wait_counted(CallAgreement& call, std::atomic<std::uint64_t>* waiters, const void* event,
                  Done done, GivesUp gives_up) {
    if (done() || call.has_given_up(gives_up)) {
        return;
    }
    const SlotMember& slot = call.slot();
    // One of several threads of the rank polls for all; and a wait that a tool observes is timed.
    const bool polls_alone = !slot.node_rank.lock.closed();
    if (polls_alone && slot.node_rank.oversubscribed()) {
        const bool waits_for_event = slot.node_rank.waits_for_event();
        for (std::uint32_t turn = 0; turn < slot.node_rank.waits.collective_yields; ++turn) {
            give_way();
            if (done()) {
                return;
            }
            if (!waits_for_event) { // which looks before it sleeps
                slot.engine.progress();
            }
        }
        if (waits_for_event) {
            wait_long(call, done, gives_up, event);
            return;
        }
    } else if (polls_alone) {
        for (std::uint32_t spin = 0; spin < slot.node_rank.waits.spins_alone; ++spin) {
            spin_pause();
            if (done()) {
                return;
            }
            slot.engine.progress();
        }
    }
    // The bit stands before the doorbell is prepared, whose fence therefore orders both before the
    // last look at done(); the waker's side is in wake_some.
    std::atomic<std::uint64_t>& word = waiters[slot.rank / 64];
    const std::uint64_t bit = std::uint64_t{1} << (slot.rank % 64);
    word.fetch_or(bit, std::memory_order_seq_cst);
    wait_long(call, done, gives_up);
    if ((word.fetch_and(~bit, std::memory_order_acq_rel) & bit) == 0) {
        wake_some(slot, waiters);
    }
}

// All have arrived, in calls that differ; `excess`: of the arrivals' upper half.
[[gnu::cold]] void found_different(CallAgreement& call, std::uint64_t operation,
                                   std::uint64_t excess) {
    const SlotMember& slot = call.slot();
    call.note_unsigned();
    publish(call, operation);
    slot.ring_others();
    slot.node_rank.release_event(&slot.memory.arrivals(operation));
    // After the publication: who waits for arrivals finds the one or the other.
    slot.memory.arrivals(operation).fetch_sub(excess, std::memory_order_release);
}

} // namespace

void wake_some(const SlotMember& slot, std::atomic<std::uint64_t>* waiters) {
    fence_as_waker(slot.node_rank);
    int woken = 0;
    for (std::uint32_t i = 0; i < words_of(slot.size); ++i) {
        std::uint64_t bits = waiters[i].load(std::memory_order_relaxed);
        while (bits != 0) {
            const std::uint64_t bit = bits & -bits;
            bits &= ~bit;
            if ((waiters[i].fetch_and(~bit, std::memory_order_acq_rel) & bit) == 0) {
                continue; // another has taken it
            }
            slot.ring(static_cast<int>(64 * i) + __builtin_ctzll(bit));
            if (++woken == wake_fan_out) {
                return;
            }
        }
    }
}

void publish(CallAgreement& call, std::uint64_t operation) {
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
    slot.node_rank.release_event(&published);
}

bool arrive(CallAgreement& call, std::uint64_t operation) {
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

void wait_published(CallAgreement& call, std::uint64_t operation) {
    const SlotMemory& memory = call.slot().memory;
    const std::atomic<std::uint64_t>& published_stamp = memory.published(operation).stamp;
    std::uint64_t seen = 0;
    const auto done = [&] {
        seen = published_stamp.load(std::memory_order_acquire);
        return CallAgreement::has_come(seen, operation);
    };
    wait_counted(call, call.slot().published_waiters(operation), &memory.published(operation), done,
                 GivesUp::unequal);
    call.compare(seen, operation);
}

bool wait_arrived(CallAgreement& call, std::uint64_t operation) {
    const SlotMemory& memory = call.slot().memory;
    const std::atomic<std::uint64_t>& arrived = memory.arrivals(operation);
    const std::uint64_t all = arrivals_after(call.slot(), operation);
    std::uint64_t seen = 0;
    const auto there = [&] {
        seen = arrived.load(std::memory_order_acquire);
        return beyond(seen, all) >= 0;
    };
    const auto done = [&] { return there() || (call.is_broken() && call.all_have_left()); };
    wait_counted(call, call.slot().arrived_waiters(operation), &arrived, done, GivesUp::never);
    if (!there()) [[unlikely]] {
        return false;
    }
    const std::uint64_t differing = CallAgreement::differing_stamp(operation);
    if ((beyond(seen, all) == 0 && seen != all) ||
        memory.published(operation).stamp.load(std::memory_order_relaxed) == differing)
        [[unlikely]] {
        call.note_unequal(differing, operation);
    }
    return true;
}

bool wait_arrived(CallAgreement& call, std::uint64_t operation, GivesUp gives_up) {
    const SlotMemory& memory = call.slot().memory;
    const std::atomic<std::uint64_t>& arrivals = memory.arrivals(operation);
    const std::uint64_t all = arrivals_after(call.slot(), operation);
    bool arrived = true;
    const auto done = [&] {
        arrived = beyond(arrivals.load(std::memory_order_acquire), all) >= 0;
        return arrived;
    };
    wait_counted(call, call.slot().arrived_waiters(operation), &arrivals, done, gives_up);
    return arrived;
}

bool arrive_before_root(CallAgreement& call, std::uint64_t operation) {
    const std::uint64_t own = arrival(call);
    const std::uint64_t arrived =
        call.slot().memory.arrivals(operation).fetch_add(own, std::memory_order_acq_rel) + own;
    const std::uint64_t all = arrivals_after(call.slot(), operation);
    if (beyond(arrived, all) == 0) [[unlikely]] { // nobody is the root
        found_different(call, operation, arrived - all);
    }
    return beyond(arrived, all) == -1;
}

void wait_for_others(CallAgreement& call, std::uint64_t operation) {
    const SlotMember& slot = call.slot();
    const std::atomic<std::uint64_t>& arrived = slot.memory.arrivals(operation);
    const std::uint64_t others = arrivals_after(slot, operation) - 1;
    const auto done = [&] { return beyond(arrived.load(std::memory_order_acquire), others) >= 0; };
    if (!done()) {
        // Only the root waits for this, and the last of the others rings it.
        wait_long(call, done, GivesUp::unequal);
    }
    for (int other = 0; other < slot.size; ++other) {
        if (other != slot.rank) {
            call.compare(slot.memory.line(operation, other).stamp.load(std::memory_order_relaxed),
                         operation);
        }
    }
}

} // namespace warren::coll::counted
