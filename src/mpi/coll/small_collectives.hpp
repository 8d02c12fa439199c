// Small collectives: collective operations of a communicator whose ranks are all on one node, on a
// few bytes, made in the lines of the communicator's collective slot (phase_ring.hpp) instead of by
// messages.
//
// Thread rule: as SlotMember; ranks are processes or threads.
#pragma once

#include <cstdint>
#include <vector>

#include "mpi/coll/phase_ring.hpp"
#include "mpi/coll/steps.hpp"
#include "mpi/op/op.hpp"

namespace warren::coll {

class SmallCollectives {
  public:
    // For one call, or several. For a communicator that has a slot.
    SmallCollectives(message::Engine& engine, comm::Communicator& communicator)
        : ring_(engine, communicator) {}

    void barrier();
    // `count` elements of a contiguous type, at most line_data_bytes. `in` and `out` may be the
    // same. Combined in the order of ranks.
    void allreduce(const void* in, void* out, MPI_Count count, const datatype::Datatype& type,
                   const Op& op);
    // `out` only at the root.
    void reduce(const void* in, void* out, MPI_Count count, const datatype::Datatype& type,
                const Op& op, int root);
    void bcast(void* data, MPI_Count bytes, int root);
    // MPI_Comm_split: returns the new communicator's context, 0 when none is left. `members`: the
    // ranks of this colour, ordered by key, then rank; none for MPI_UNDEFINED. (small_split.cpp)
    std::uint32_t split(int colour, int key, std::vector<int>& members);

    // A call of no bytes, in which nobody waits: unless others have some.
    void pass(Tag kind, int root, OpKind op);
    // This rank's part of a call can't be done, as it alone knows: tells the others.
    void refuse();

    // CallAgreement's functions, called at the end of a call.
    Error outcome() { return ring_.call().outcome(); }
    bool unequal() const { return ring_.call().unequal(); }

    PhaseRing& ring() { return ring_; }

  private:
    struct SplitLine;

    // Folds the contributions of all ranks in their order; own: this rank's, null for its line.
    void combine(void* result, const std::byte* own, std::uint64_t operation, MPI_Count count,
                 const datatype::Datatype& type, const Op& op);
    SplitLine& split_line(std::uint64_t operation, int rank) const;
    void deal_out(std::uint64_t operation);
    std::uint32_t split_counted(std::uint64_t operation, int colour, std::vector<int>& members);
    std::uint32_t split_flat(std::uint64_t operation, int colour, std::vector<int>& members);

    PhaseRing ring_;
};

} // namespace warren::coll
