// Error texts of calls that don't match other ranks'.
#include <cstdio>
#include <iterator>

#include "mpi/coll/call_agreement.hpp"

namespace warren::coll {

Error CallAgreement::inequality() {
    slot_.ring_others(); // which may wait for messages of this rank's
    if (const int rank = ended_member(); rank >= 0) {
        break_off();
        return fail(MPI_ERR_PROC_ABORTED, "rank %d has ended", rank);
    }
    // The others' announcements for this call say more than that it differs.
    const std::uint64_t call = this->call();
    std::uint64_t its = unequal_;
    bool announced_so = false;
    for (int rank = 0; rank < slot_.size && !announced_so; ++rank) {
        const std::uint64_t seen =
            slot_.memory.announced(rank, call).load(std::memory_order_relaxed);
        announced_so = seen >> signature_bits == call && (seen & signature_mask) != signature_;
        if (announced_so && (its == unsigned_call || its == differing)) {
            its = seen & signature_mask;
        }
    }
    if (!announced_so || slot_.place().operations - first_ > 1) {
        // Others have made another number of operations: in an earlier call, or in this one.
        break_off();
    }
    if (its == broken_slot) {
        return fail(MPI_ERR_OTHER,
                    "the ranks' calls of collective operations have not matched on this "
                    "communicator: it can have none any more (free it)");
    }
    // Names of operations; Tag is the index.
    constexpr const char* names[] = {"?",
                                     "barrier",
                                     "bcast",
                                     "gather",
                                     "scatter",
                                     "allgather",
                                     "alltoall",
                                     "reduce",
                                     "allreduce",
                                     "reduce_scatter",
                                     "scan",
                                     "creation of a communicator",
                                     "exchange with neighbours"};
    const auto name = [&](std::uint64_t signature) {
        const std::uint64_t kind = signature >> size_bits;
        return kind < std::size(names) ? names[kind] : "?";
    };
    char size[40] = "";
    if (bytes_ >= 0) {
        std::snprintf(size, sizeof size, " of %lld bytes", static_cast<long long>(bytes_));
    }
    if (its == unsigned_call || its == differing) {
        return fail(MPI_ERR_OTHER,
                    "the ranks' calls do not match: another rank's call is not this one's %s%s",
                    name(signature_), size);
    }
    if (its >> size_bits == refused_kind) {
        return fail(MPI_ERR_OTHER, "another rank has refused its part of this %s%s, with an error",
                    name(signature_), size);
    }
    if (its >> size_bits != signature_ >> size_bits) {
        return fail(
            MPI_ERR_OTHER,
            "the ranks' calls do not match: another rank's operation is a %s, this one's a %s",
            name(its), name(signature_));
    }
    return fail(
        MPI_ERR_TRUNCATE,
        "the ranks' calls do not match: another rank's %s has another size, root or operator than "
        "this one's%s",
        name(its), size);
}

} // namespace warren::coll
