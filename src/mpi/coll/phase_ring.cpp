#include "mpi/coll/phase_ring.hpp"

#include <limits>

namespace warren::coll {

namespace {

constexpr std::uint64_t phases = collective_phases;

void arrive(CallAgreement& call, std::uint64_t operation) {
    if (call.slot().flat) {
        flat::arrive(call, operation);
    } else if (counted::arrive(call, operation)) {
        counted::wake_arrived(call.slot(), operation);
    }
}

} // namespace

void PhaseRing::arrive_aside() {
    const std::uint64_t operation = begin_operation();
    if (settle(operation)) {
        arrive(call_, operation);
    }
}

void PhaseRing::close() {
    const std::uint64_t operation = begin_operation();
    if (settle(operation)) {
        arrive(call_, operation);
        await_all(operation);
    }
}

void PhaseRing::await_all(std::uint64_t operation) {
    bool arrived = true;
    if (slot().flat) {
        for (int other = 0; other < slot().size; ++other) {
            if (other != slot().rank) {
                const std::uint64_t seen = flat::wait_for(call_, other, operation, GivesUp::never);
                arrived = arrived && CallAgreement::has_come(seen, operation);
                call_.compare(seen, operation);
            }
        }
    } else {
        arrived = counted::wait_arrived(call_, operation);
    }
    if (!arrived) [[unlikely]] {
        call_.note_broken();
        return;
    }
    slot().place().all_arrived = operation + 1;
}

bool PhaseRing::settle_later(std::uint64_t operation) {
    comm::CollectivePlace& place = slot().place();
    std::uint64_t needed = operation + 1 - phases;
    if (operation >= phases && needed <= place.read_late) [[unlikely]] {
        ++needed; // operation - phases was of a row
    }
    if (place.all_arrived > needed) {
        return true;
    }
    // All ranks come to the operations of earlier calls. Those of this one can be more than another
    // rank's call has.
    const GivesUp gives_up = needed < call_.first_operation() ? GivesUp::broken : GivesUp::unequal;
    bool arrived = !call_.is_broken();
    if (slot().flat) {
        for (int other = 0; other < slot().size && arrived; ++other) {
            arrived =
                other == slot().rank ||
                CallAgreement::has_come(flat::wait_for(call_, other, needed, gives_up), needed);
        }
    } else if (arrived) {
        arrived = counted::wait_arrived(call_, needed, gives_up);
    }
    if (!arrived) [[unlikely]] {
        call_.note_broken();
        call_.break_off();
        return false;
    }
    place.all_arrived = needed + 1;
    WARREN_INVARIANT(place.all_arrived <= operation,
                     "phase ring 2: a phase is awaited before it is used again");
    return true;
}

std::byte* PhaseRing::find_staging(StagingKind kind) const {
    static_assert(staging::first + staging_unit_limit <= std::numeric_limits<std::uint16_t>::max());
    const node::Segment& segment = slot().node_rank.segment;
    std::uint16_t& known = slot().place().staging[static_cast<std::size_t>(kind)];
    if (known == staging::undecided) {
        known = static_cast<std::uint16_t>(
            staging::decide(segment, slot().memory.head().staging_word(kind), kind, slot().size));
    }
    return known == staging::refused ? nullptr : staging::memory(segment, known);
}

} // namespace warren::coll
