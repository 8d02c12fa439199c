#include "mpi/coll/flat_sync.hpp"

#include "base/futex.hpp"

namespace warren::coll::flat {

std::uint64_t wait_for(CallAgreement& call, int rank, std::uint64_t operation, GivesUp gives_up) {
    const std::atomic<std::uint64_t>& arrived = call.slot().memory.line(operation, rank).stamp;
    std::uint64_t seen = 0;
    // (PhaseRing::settle() looks for operations whose lines may belong to later ones.)
    const auto done = [&] {
        seen = arrived.load(std::memory_order_acquire);
        return CallAgreement::has_come(seen, operation);
    };
    const auto done_or_left = [&] {
        return done() || (gives_up == GivesUp::never && call.has_left(rank) && !done());
    };
    for (int spin = 0; spin < flat_spins; ++spin) {
        if (done()) {
            return seen;
        }
        spin_pause();
    }
    wait_long(call, done_or_left, gives_up);
    return seen;
}

void wait_for_all(CallAgreement& call, std::uint64_t operation) {
    ArrivalWait arrivals(call, 2);
    for (int other = 0; other < call.slot().size; ++other) {
        if (other != call.slot().rank) {
            arrivals.await(operation, other);
        }
    }
    arrivals.end();
}

} // namespace warren::coll::flat
