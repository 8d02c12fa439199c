#include "mpi/coll/choice.hpp"

#include <algorithm>
#include <iterator>

#include "mpi/coll/algorithms.hpp"
#include "mpi/coll/inter.hpp"
#include "mpi/coll/tuning.hpp"

namespace warren::coll {

namespace {

// Whether blocks of one size go by a tree.
bool by_tree(const Steps& steps, Tag operation, const Buffer& own) {
    if (steps.inter() || own.bytes() <= 0) {
        return false;
    }
    if (const std::uint8_t its = steps.choice(operation); its != chosen::tree_automatic) {
        return its == chosen::tree_binomial;
    }
    return steps.size() > few_ranks && !steps.crowded() && own.bytes() <= short_gather_bytes;
}

// Whether an allgather goes round a ring.
bool in_ring(const Steps& steps, MPI_Count total) {
    const std::uint8_t its = steps.choice(Tag::allgather);
    return its == chosen::allgather_in_ring || steps.size() == 2 ||
           (its == chosen::allgather_automatic && total > short_allgather_bytes);
}

// Whether a tool's choice, or `automatic`, says that an operation goes a way.
bool goes(const Steps& steps, Tag operation, std::uint8_t way, bool automatic) {
    const std::uint8_t its = steps.choice(operation);
    return its == 0 ? automatic : its == way;
}

} // namespace

void choose_algorithm(Rank& rank, Tag operation, std::uint8_t algorithm) {
    rank.algorithms[static_cast<std::size_t>(operation)] = algorithm;
    rank.short_blocks = !rank.oversubscribed() &&
                        std::all_of(std::begin(rank.algorithms), std::end(rank.algorithms),
                                    [](std::uint8_t chosen_there) { return chosen_there == 0; });
}

void barrier(Steps& steps) {
    steps.name(Tag::barrier);
    if (steps.inter()) {
        return inter::barrier(steps);
    }
    barrier_dissemination(steps);
}

void bcast(Steps& steps, const Buffer& buffer, int root) {
    steps.name(Tag::bcast);
    if (steps.inter()) {
        return inter::bcast(steps, buffer, root);
    }
    if (buffer.bytes() > 0) {
        bcast_binomial(steps, buffer, root);
    }
}

void gather(Steps& steps, const Buffer& own, const Blocks& blocks, int root) {
    if (!by_tree(steps, Tag::gather, own)) {
        return gatherv(steps, own, blocks, root);
    }
    steps.name(Tag::gather);
    gather_binomial(steps, own, blocks, root);
}

void gatherv(Steps& steps, const Buffer& own, const Blocks& blocks, int root) {
    steps.name(Tag::gather);
    if (steps.inter()) {
        return inter::gather(steps, own, blocks, root);
    }
    gather_linear(steps, own, blocks, root);
}

void scatter(Steps& steps, const Blocks& blocks, const Buffer& own, int root) {
    if (!by_tree(steps, Tag::scatter, own)) {
        return scatterv(steps, blocks, own, root);
    }
    steps.name(Tag::scatter);
    scatter_binomial(steps, blocks, own, root);
}

void scatterv(Steps& steps, const Blocks& blocks, const Buffer& own, int root) {
    steps.name(Tag::scatter);
    if (steps.inter()) {
        return inter::scatter(steps, blocks, own, root);
    }
    scatter_linear(steps, blocks, own, root);
}

void allgather(Steps& steps, const Buffer& own, const Blocks& blocks) {
    steps.name(Tag::allgather);
    const MPI_Count total = blocks[0].bytes() * steps.size();
    if (total == 0) {
        return;
    }
    if (steps.size() == 1) {
        return steps.copy(own, blocks[0]);
    }
    if (in_ring(steps, total)) {
        return allgather_ring(steps, own, blocks);
    }
    return goes(steps, Tag::allgather, chosen::allgather_at_root, steps.crowded())
               ? allgather_by_root(steps, own, blocks)
               : allgather_bruck(steps, own, blocks);
}

void allgatherv(Steps& steps, const Buffer& own, const Blocks& blocks) {
    steps.name(Tag::allgather);
    if (steps.size() == 1) {
        return steps.copy(own, blocks[0]);
    }
    MPI_Count total = 0;
    for (int rank = 0; rank < steps.size(); ++rank) {
        total += blocks[rank].bytes();
    }
    return in_ring(steps, total) ? allgather_ring(steps, own, blocks)
                                 : allgather_by_root(steps, own, blocks);
}

void alltoall(Steps& steps, const Blocks& out, const Blocks& in) {
    steps.name(Tag::alltoall);
    if (steps.inter()) {
        return inter::alltoall(steps, out, in);
    }
    alltoall_batches(steps, out, in);
}

void alltoall_replace(Steps& steps, const Blocks& blocks) {
    steps.name(Tag::alltoall);
    if (steps.size() > 1) {
        alltoall_in_place(steps, blocks);
    }
}

void reduce(Steps& steps, const Reduction& reduction, const void* in, void* out, int root) {
    steps.name(Tag::reduce);
    if (steps.inter()) {
        return inter::reduce(steps, reduction, in, out, root);
    }
    if (reduction.count > 0) {
        reduce_binomial(steps, reduction, in, out, root);
    }
}

void allreduce(Steps& steps, const Reduction& reduction, const void* in, void* out) {
    steps.name(Tag::allreduce);
    if (steps.inter()) {
        return inter::allreduce(steps, reduction, in, out);
    }
    if (reduction.count == 0) {
        return;
    }
    if (goes(steps, Tag::allreduce, chosen::allreduce_at_root, steps.crowded())) {
        return allreduce_by_root(steps, reduction, in, out);
    }
    if (goes(steps, Tag::allreduce, chosen::allreduce_by_halving,
             reduction.count * reduction.type.size > short_allreduce_bytes) &&
        reduction.op.commutative() && reduction.count >= steps.size()) {
        return allreduce_halving(steps, reduction, in, out);
    }
    allreduce_doubling(steps, reduction, in, out);
}

void reduce_scatter(Steps& steps, const void* in, void* out, const MPI_Count counts[],
                    const datatype::Datatype& type, const Op& op) {
    steps.name(Tag::reduce_scatter);
    MPI_Count total = 0;
    for (int rank = 0; rank < steps.size(); ++rank) {
        total += counts[rank];
    }
    if (total == 0) {
        return;
    }
    const Reduction reduction = {total, type, op};
    if (steps.inter()) {
        return inter::reduce_scatter(steps, reduction, in, out, counts);
    }
    if (op.commutative() &&
        goes(steps, Tag::reduce_scatter, chosen::reduce_scatter_in_pairs,
             !steps.crowded() && total * type.size > short_reduce_scatter_bytes)) {
        return reduce_scatter_pairwise(steps, reduction, in, out, counts);
    }
    reduce_scatter_by_root(steps, reduction, in, out, counts);
}

void scan(Steps& steps, const Reduction& reduction, const void* in, void* out, bool exclusive) {
    steps.name(Tag::scan);
    if (reduction.count == 0) {
        return;
    }
    if (goes(steps, Tag::scan, chosen::scan_in_chain,
             steps.crowded() || steps.size() <= few_ranks)) {
        return scan_chain(steps, reduction, in, out, exclusive);
    }
    scan_doubling(steps, reduction, in, out, exclusive);
}

void neighbours(Steps& steps, const Blocks& out, const Blocks& in) {
    steps.name(Tag::neighbours);
    neighbours_exchange(steps, *steps.communicator().topology, out, in);
}

} // namespace warren::coll
