// Collective operations of intercommunicators: between the groups by their first ranks, or by
// everybody at once; inside a group by the algorithms of intracommunicators.

#include "mpi/coll/inter.hpp"

#include <vector>

#include "mpi/coll/algorithms.hpp"

namespace warren::coll::inter {

namespace {

// The first rank of each group speaks for it.
bool leads(const Steps& steps) {
    return steps.rank() == 0;
}

// The group's reduction, at its first rank: memory of `reduction.count` elements.
Buffer reduce_in_group(Steps& steps, const Reduction& reduction, const void* in) {
    const Buffer total =
        leads(steps) ? steps.scratch(reduction.count, reduction.type) : Buffer{nullptr, 0, nullptr};
    steps.among_own_group();
    reduce_binomial(steps, reduction, in, total.base, 0);
    steps.among_peers();
    return total;
}

} // namespace

void barrier(Steps& steps) {
    const Buffer nothing = bytes_of(static_cast<void*>(nullptr), 0);
    steps.among_own_group();
    barrier_dissemination(steps);
    steps.among_peers();
    if (leads(steps)) {
        steps.exchange(nothing, 0, nothing, 0);
    }
    steps.among_own_group();
    bcast_binomial(steps, nothing, 0);
    steps.among_peers();
}

void bcast(Steps& steps, const Buffer& buffer, int root) {
    if (root == MPI_ROOT) {
        steps.send(buffer, 0);
    } else if (root != MPI_PROC_NULL) {
        if (leads(steps)) {
            steps.receive(buffer, root);
        }
        steps.among_own_group();
        bcast_binomial(steps, buffer, 0);
        steps.among_peers();
    }
}

void gather(Steps& steps, const Buffer& own, const Blocks& blocks, int root) {
    if (root == MPI_ROOT) {
        for (int peer = 0; peer < steps.peers(); ++peer) {
            steps.start_receive(blocks[peer], peer);
        }
        steps.finish();
    } else if (root != MPI_PROC_NULL) {
        steps.send(own, root);
    }
}

void scatter(Steps& steps, const Blocks& blocks, const Buffer& own, int root) {
    if (root == MPI_ROOT) {
        for (int peer = 0; peer < steps.peers(); ++peer) {
            steps.start_send(blocks[peer], peer);
        }
        steps.finish();
    } else if (root != MPI_PROC_NULL) {
        steps.receive(own, root);
    }
}

void alltoall(Steps& steps, const Blocks& out, const Blocks& in) {
    for (int peer = 0; peer < steps.peers(); ++peer) {
        steps.start_receive(in[peer], peer);
    }
    for (int peer = 0; peer < steps.peers(); ++peer) {
        steps.start_send(out[peer], peer);
    }
    steps.finish();
}

void reduce(Steps& steps, const Reduction& reduction, const void* in, void* out, int root) {
    if (root == MPI_ROOT) {
        steps.receive({out, reduction.count, &reduction.type}, 0);
    } else if (root != MPI_PROC_NULL) {
        const Buffer total = reduce_in_group(steps, reduction, in);
        if (leads(steps)) {
            steps.send(total, root);
        }
    }
}

void allreduce(Steps& steps, const Reduction& reduction, const void* in, void* out) {
    const Buffer total = reduce_in_group(steps, reduction, in);
    const Buffer result = {out, reduction.count, &reduction.type};
    if (leads(steps)) {
        steps.exchange(total, 0, result, 0);
    }
    steps.among_own_group();
    bcast_binomial(steps, result, 0);
    steps.among_peers();
}

void reduce_scatter(Steps& steps, const Reduction& reduction, const void* in, void* out,
                    const MPI_Count counts[]) {
    const Buffer total = reduce_in_group(steps, reduction, in);
    std::vector<Buffer> blocks;
    if (leads(steps)) {
        const Buffer theirs = steps.scratch(reduction.count, reduction.type);
        steps.exchange(total, 0, theirs, 0);
        MPI_Count first = 0;
        for (int rank = 0; rank < steps.size(); ++rank) {
            blocks.push_back(part_of(theirs, first, counts[rank]));
            first += counts[rank];
        }
    }
    steps.among_own_group();
    scatter_linear(steps, Blocks(blocks.data()), {out, counts[steps.rank()], &reduction.type}, 0);
    steps.among_peers();
}

} // namespace warren::coll::inter
