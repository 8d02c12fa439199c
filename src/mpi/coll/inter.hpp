// Collective operations of intercommunicators, by messages; as in choice.hpp, but data goes from
// one group to the other.
//
// Blocks are by rank of the remote group; those of a reduce_scatter, by rank of the own one. A root
// is MPI_ROOT at the root itself, MPI_PROC_NULL at the others of its group, and its rank in the
// group that it talks to. The standard has no scans here. Thread rule: under the rank's lock.
#pragma once

#include "mpi/coll/blocks.hpp"
#include "mpi/coll/steps.hpp"

namespace warren::coll::inter {

void barrier(Steps& steps);
void bcast(Steps& steps, const Buffer& buffer, int root);
void gather(Steps& steps, const Buffer& own, const Blocks& blocks, int root);
void scatter(Steps& steps, const Blocks& blocks, const Buffer& own, int root);
// Allgathers too: `out` has the same block for all.
void alltoall(Steps& steps, const Blocks& out, const Blocks& in);
void reduce(Steps& steps, const Reduction& reduction, const void* in, void* out, int root);
void allreduce(Steps& steps, const Reduction& reduction, const void* in, void* out);
void reduce_scatter(Steps& steps, const Reduction& reduction, const void* in, void* out,
                    const MPI_Count counts[]);

} // namespace warren::coll::inter
