// Flat synchronisation: few ranks, each with a processor. Each rank has a line per phase with its
// arrival and its contribution, and reads the others' lines itself. An operation costs one cache
// line transfer.
//
// Invariant: a rank arrives once in each operation, in order: no line says a later operation than
// the one that a rank looks for in it (phase_ring.hpp).
// Thread rule: as SlotMember.
#pragma once

#include <cstdint>

#include "base/invariant.hpp"
#include "mpi/coll/call_agreement.hpp"

namespace warren::coll::flat {

// Prefetches a line for writing that the others have read, while this rank waits for something
// else.
inline void own_line_soon(const void* line) {
#if defined(__x86_64__)
    asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(line)));
#else
    __builtin_prefetch(line, 1);
#endif
}

inline void arrive(CallAgreement& call, std::uint64_t operation) {
    const SlotMember& slot = call.slot();
    Line& own = slot.memory.line(operation, slot.rank);
    WARREN_INVARIANT(!CallAgreement::has_come(own.stamp.load(std::memory_order_relaxed), operation),
                     "flat synchronisation: a rank arrives once in each operation, in order");
    // Pairs with the acquire in wait(): who sees the arrival sees the data, and that everything
    // before is done.
    own.stamp.store(call.stamp(operation), std::memory_order_release);
    for (int other = 0; other < slot.size; ++other) {
        if (other != slot.rank) {
            slot.ring(other);
        }
    }
    own_line_soon(&slot.memory.line(operation + 1, slot.rank));
}

// Waits for a rank's arrival, in an operation that may be of an earlier call. Returns what its line
// says then.
std::uint64_t wait_for(CallAgreement& call, int rank, std::uint64_t operation,
                       GivesUp gives_up = GivesUp::unequal);

// Waits for a rank's arrival in an operation of this call, and compares its call with this one.
// Returns whether the rank was not there yet.
inline bool wait(CallAgreement& call, int rank, std::uint64_t operation) {
    std::uint64_t seen =
        call.slot().memory.line(operation, rank).stamp.load(std::memory_order_acquire);
    const bool waits = !CallAgreement::has_come(seen, operation);
    if (waits) {
        seen = wait_for(call, rank, operation);
    }
    call.compare(seen, operation);
    return waits;
}

// Waits for all ranks, in an operation in which all wait for all.
void wait_for_all(CallAgreement& call, std::uint64_t operation);

// ArrivalWait: one operation in which all ranks wait for all. Construct it, await each other rank,
// then call end().
//
// Polling a line while its owner is about to write it steals the line and delays the write. A rank
// that had to wait therefore pauses before its first poll in the next delayed_operations
// operations, then polls at once again.
class ArrivalWait {
  public:
    // `pauses`: length of the delay, in spin_pause() calls.
    ArrivalWait(CallAgreement& call, int pauses)
        : call_(call), polls_at_once_(call.slot().place().delayed_polls == 0) {
        if (!polls_at_once_) {
            --call.slot().place().delayed_polls;
            for (int pause = 0; pause < pauses; ++pause) {
                spin_pause();
            }
        }
    }
    void await(std::uint64_t operation, int rank) { waited_ |= wait(call_, rank, operation); }
    void end() {
        if (waited_ && polls_at_once_) {
            call_.slot().place().delayed_polls = delayed_operations;
        }
    }

  private:
    CallAgreement& call_;
    const bool polls_at_once_;
    bool waited_ = false;
};

} // namespace warren::coll::flat
