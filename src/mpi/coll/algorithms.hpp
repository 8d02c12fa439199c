// The algorithms of collective operations over messages, for any number of ranks and any placement.
//
// Each is in a file by its operation, with its cost there: P ranks, n bytes per rank, L a message's
// latency, B its time per byte, C the time to combine a byte. Which one is used when is decided in
// one place, choice.cpp. None has a special case for MPI_IN_PLACE: callers pass the same memory
// twice where the standard allows it. Thread rule: under the rank's lock.
#pragma once

#include "mpi/coll/blocks.hpp"
#include "mpi/coll/steps.hpp"

namespace warren::coll {

void barrier_dissemination(Steps& steps);

void bcast_binomial(Steps& steps, const Buffer& buffer, int root);

// `out` is written at the root only. In order of ranks: also for operations that don't commute.
void reduce_binomial(Steps& steps, const Reduction& reduction, const void* in, void* out, int root);

void allreduce_doubling(Steps& steps, const Reduction& reduction, const void* in, void* out);
// Operations that commute, and at least as many elements as ranks.
void allreduce_halving(Steps& steps, const Reduction& reduction, const void* in, void* out);
void allreduce_by_root(Steps& steps, const Reduction& reduction, const void* in, void* out);

// The root's own block: own and blocks[root] may be the same memory. `blocks` at the root only.
void gather_linear(Steps& steps, const Buffer& own, const Blocks& blocks, int root);
void gather_binomial(Steps& steps, const Buffer& own, const Blocks& blocks, int root);
void scatter_linear(Steps& steps, const Blocks& blocks, const Buffer& own, int root);
void scatter_binomial(Steps& steps, const Blocks& blocks, const Buffer& own, int root);

// `own` has as many bytes as blocks[rank], and may be it.
void allgather_ring(Steps& steps, const Buffer& own, const Blocks& blocks);
// Blocks of one size.
void allgather_bruck(Steps& steps, const Buffer& own, const Blocks& blocks);
void allgather_by_root(Steps& steps, const Buffer& own, const Blocks& blocks);

// out[i] to rank i, in[i] from rank i; `out` and `in` don't overlap.
void alltoall_batches(Steps& steps, const Blocks& out, const Blocks& in);
// As above, if they are the same memory.
void alltoall_in_place(Steps& steps, const Blocks& blocks);

// Blocks of the result: block i, of counts[i] elements, goes to rank i.
void reduce_scatter_by_root(Steps& steps, const Reduction& reduction, const void* in, void* out,
                            const MPI_Count counts[]);
// Operations that commute.
void reduce_scatter_pairwise(Steps& steps, const Reduction& reduction, const void* in, void* out,
                             const MPI_Count counts[]);

// Exclusive: rank 0's result stays as it was.
void scan_chain(Steps& steps, const Reduction& reduction, const void* in, void* out,
                bool exclusive);
void scan_doubling(Steps& steps, const Reduction& reduction, const void* in, void* out,
                   bool exclusive);

// out[i] to destination i of the topology, in[i] from source i.
void neighbours_exchange(Steps& steps, const comm::Topology& topology, const Blocks& out,
                         const Blocks& in);

} // namespace warren::coll
