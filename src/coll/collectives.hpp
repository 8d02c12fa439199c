// Collective operations that have a short way of their own: blocking ones whose data is small go
// through shared memory (shared.hpp), all else is steps of an algorithm over messages (choice.hpp).
//
// Arguments have been checked. Where the standard has MPI_IN_PLACE, the caller passes the same
// memory as input and output. Thread rule: under the rank's lock; waits release it.
#pragma once

#include "base/error.hpp"
#include "coll/blocks.hpp"
#include "coll/op.hpp"
#include "coll/shared.hpp"
#include "comm/communicator.hpp"
#include "message/engine.hpp"

namespace warren::coll {

// A rank's view of one communicator's collectives: two references, made for each call.
class Collectives {
  public:
    Collectives(message::Engine& engine, comm::Communicator& communicator)
        : engine_(engine), communicator_(communicator) {
        SharedSlot::find_place(engine, communicator);
    }

    Error barrier();
    Error bcast(const message::Buffer& buffer, int root);
    // blocks[rank] already holds the own block.
    Error allgather(const Blocks& blocks);

    // `out` at the root only.
    Error reduce(const void* in, void* out, MPI_Count count, const datatype::Datatype& type,
                 const Op& op, int root);
    Error allreduce(const void* in, void* out, MPI_Count count, const datatype::Datatype& type,
                    const Op& op);

  private:
    // Whether there is nobody else. Intercommunicators, which have no slot, always have somebody.
    bool alone() const { return communicator_.size() == 1 && !communicator_.inter(); }
    bool fits_slot(MPI_Count count, const datatype::Datatype& type) const;

    message::Engine& engine_;
    comm::Communicator& communicator_;
};

} // namespace warren::coll
