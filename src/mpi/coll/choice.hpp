// Choice: which algorithm carries out a collective operation over messages, by its size, the number
// of ranks, and whether they share processors. This file is the whole of it. (Which operations go
// over messages: paths.hpp.)
//
// A tool may choose otherwise (control variables like allreduce_algorithm), alike at all ranks.
// Operations whose data is beyond a cache line then go over messages, and no other operation by
// short blocks. An operation that can't have the chosen one (halving, if it doesn't commute)
// takes the general one (doubling).
//
// Intercommunicators have their own (inter.hpp), except for allgathers, which are all-to-alls there
// (the callers' business), and scans, which do not exist.
// All ranks of a communicator choose alike, since the inputs of a choice are the same everywhere.
// The parameters are as in collectives.hpp. Thread rule: under the rank's lock.
#pragma once

#include "mpi/coll/blocks.hpp"
#include "mpi/coll/steps.hpp"

namespace warren::coll {

// The choices of a tool, by operation; 0 is automatic.
namespace chosen {
enum Tree : std::uint8_t { tree_automatic, tree_linear, tree_binomial }; // gather, scatter
enum Allgather : std::uint8_t {
    allgather_automatic,
    allgather_in_ring,
    allgather_in_bruck,
    allgather_at_root
};
enum Allreduce : std::uint8_t {
    allreduce_automatic,
    allreduce_by_doubling,
    allreduce_by_halving,
    allreduce_at_root
};
enum ReduceScatter : std::uint8_t {
    reduce_scatter_automatic,
    reduce_scatter_at_root,
    reduce_scatter_in_pairs
};
enum Scan : std::uint8_t { scan_automatic, scan_in_chain, scan_by_doubling };
} // namespace chosen

// A tool's choice for an operation of this rank.
inline std::uint8_t choice_of(const Rank& rank, Tag operation) {
    return rank.algorithms[static_cast<std::size_t>(operation)];
}
void choose_algorithm(Rank& rank, Tag operation, std::uint8_t algorithm);

void barrier(Steps& steps);
void bcast(Steps& steps, const Buffer& buffer, int root);

// `blocks` at the root only. The variants with v: blocks of many sizes.
void gather(Steps& steps, const Buffer& own, const Blocks& blocks, int root);
void gatherv(Steps& steps, const Buffer& own, const Blocks& blocks, int root);
void scatter(Steps& steps, const Blocks& blocks, const Buffer& own, int root);
void scatterv(Steps& steps, const Blocks& blocks, const Buffer& own, int root);
void allgather(Steps& steps, const Buffer& own, const Blocks& blocks);
void allgatherv(Steps& steps, const Buffer& own, const Blocks& blocks);
void alltoall(Steps& steps, const Blocks& out, const Blocks& in);
void alltoall_replace(Steps& steps, const Blocks& blocks);

// `out` at the root only.
void reduce(Steps& steps, const Reduction& reduction, const void* in, void* out, int root);
void allreduce(Steps& steps, const Reduction& reduction, const void* in, void* out);
// `counts` of elements of the result, by rank.
void reduce_scatter(Steps& steps, const void* in, void* out, const MPI_Count counts[],
                    const datatype::Datatype& type, const Op& op);
void scan(Steps& steps, const Reduction& reduction, const void* in, void* out, bool exclusive);

// out[i] to destination i of the communicator's topology, in[i] from source i.
void neighbours(Steps& steps, const Blocks& out, const Blocks& in);

} // namespace warren::coll
