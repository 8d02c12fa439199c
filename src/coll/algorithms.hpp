// The algorithms of collective operations over messages, for any number of ranks and any placement.
//
// Each is in a file by its operation, with its cost there: P ranks, n bytes per rank, L a message's
// latency, B its time per byte, C the time to combine a byte. Which one is used when is decided in
// one place, collectives.cpp. None has a special case for MPI_IN_PLACE: callers pass the same
// memory twice where the standard allows it.
// Thread rule: under the rank's lock; waits release it.
#pragma once

#include "base/error.hpp"
#include "coll/blocks.hpp"
#include "coll/channel.hpp"
#include "coll/op.hpp"

namespace warren::coll {

// A reduction's arguments that are the same at all ranks.
struct Reduction {
    MPI_Count count;
    const datatype::Datatype& type;
    const Op& op;
};

// inout[i] = in[i] op inout[i]. Runs the program's functions without the rank's lock.
void combine(const Channel& channel, const Reduction& reduction, const void* in, void* inout,
             MPI_Count count);

Error barrier_dissemination(const Channel& channel);

Error bcast_binomial(const Channel& channel, const Buffer& buffer, int root);

// `out` is written at the root only. In order of ranks: also for operations that don't commute.
Error reduce_binomial(const Channel& channel, const Reduction& reduction, const void* in, void* out,
                      int root);

Error allreduce_doubling(const Channel& channel, const Reduction& reduction, const void* in,
                         void* out);
// Operations that commute, and at least as many elements as ranks.
Error allreduce_halving(const Channel& channel, const Reduction& reduction, const void* in,
                        void* out);
Error allreduce_by_root(const Channel& channel, const Reduction& reduction, const void* in,
                        void* out);

// The root's own block: own and blocks[root] may be the same memory. `blocks` at the root only.
Error gather_linear(const Channel& channel, const Buffer& own, const Blocks& blocks, int root);
Error gather_binomial(const Channel& channel, const Buffer& own, const Blocks& blocks, int root);
Error scatter_linear(const Channel& channel, const Blocks& blocks, const Buffer& own, int root);
Error scatter_binomial(const Channel& channel, const Blocks& blocks, const Buffer& own, int root);

// blocks[rank] already holds the rank's own block.
Error allgather_ring(const Channel& channel, const Blocks& blocks);
// Blocks of one size.
Error allgather_bruck(const Channel& channel, const Blocks& blocks);
Error allgather_by_root(const Channel& channel, const Blocks& blocks);

// out[i] to rank i, in[i] from rank i; `out` and `in` don't overlap.
Error alltoall_batches(const Channel& channel, const Blocks& out, const Blocks& in);
// Where they are the same memory.
Error alltoall_in_place(const Channel& channel, const Blocks& blocks);

// Blocks of the result: block i, of counts[i] elements, goes to rank i.
Error reduce_scatter_by_root(const Channel& channel, const Reduction& reduction, const void* in,
                             void* out, const MPI_Count counts[]);
// Operations that commute.
Error reduce_scatter_pairwise(const Channel& channel, const Reduction& reduction, const void* in,
                              void* out, const MPI_Count counts[]);

// Exclusive: rank 0's result stays as it was.
Error scan_chain(const Channel& channel, const Reduction& reduction, const void* in, void* out,
                 bool exclusive);
Error scan_doubling(const Channel& channel, const Reduction& reduction, const void* in, void* out,
                    bool exclusive);

} // namespace warren::coll
