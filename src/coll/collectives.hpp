// Collective operations: what the entry points (mpi/collectives.cpp) call, with checked arguments.
// Here, and only here, is decided how an operation is done: in shared memory (shared.hpp) or by
// which message algorithm (algorithms.hpp).
//
// Where the standard has MPI_IN_PLACE, the caller passes the same memory as input and output.
// Thread rule: under the rank's lock; waits release it.
#pragma once

#include "base/error.hpp"
#include "coll/blocks.hpp"
#include "coll/op.hpp"
#include "comm/communicator.hpp"
#include "message/engine.hpp"

namespace warren::coll {

// A rank's view of one communicator's collectives: two references, made for each call.
class Collectives {
  public:
    Collectives(message::Engine& engine, comm::Communicator& communicator)
        : engine_(engine), communicator_(communicator) {}

    Error barrier();
    Error bcast(const message::Buffer& buffer, int root);

    // `blocks` at the root only. The variants with v: blocks of many sizes.
    Error gather(const message::Buffer& own, const Blocks& blocks, int root);
    Error gatherv(const message::Buffer& own, const Blocks& blocks, int root);
    Error scatter(const Blocks& blocks, const message::Buffer& own, int root);
    Error scatterv(const Blocks& blocks, const message::Buffer& own, int root);
    // blocks[rank] already holds the own block.
    Error allgather(const Blocks& blocks);
    Error allgatherv(const Blocks& blocks);
    Error alltoall(const Blocks& out, const Blocks& in);
    Error alltoall_in_place(const Blocks& blocks);

    // `out` at the root only.
    Error reduce(const void* in, void* out, MPI_Count count, const datatype::Datatype& type,
                 const Op& op, int root);
    Error allreduce(const void* in, void* out, MPI_Count count, const datatype::Datatype& type,
                    const Op& op);
    Error reduce_scatter(const void* in, void* out, const MPI_Count counts[],
                         const datatype::Datatype& type, const Op& op);
    Error scan(const void* in, void* out, MPI_Count count, const datatype::Datatype& type,
               const Op& op, bool exclusive);

  private:
    // Whether ranks take turns on their processors: then what counts is how often each one waits.
    bool fits_slot(MPI_Count count, const datatype::Datatype& type) const;

    bool crowded() const { return engine_.rank().oversubscribed(); }

    message::Engine& engine_;
    comm::Communicator& communicator_;
};

} // namespace warren::coll
