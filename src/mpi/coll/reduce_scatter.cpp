// Reductions whose result is scattered, by messages.

#include <vector>

#include "mpi/coll/algorithms.hpp"

namespace warren::coll {

// Reduce to rank 0, then scatter: for short arrays, and operations that don't commute.
// n: the bytes of the whole array. ⌈log2 P⌉ · (L + n · (B + C)) + P · L + n · B.
void reduce_scatter_by_root(Steps& steps, const Reduction& reduction, const void* in, void* out,
                            const MPI_Count counts[]) {
    const int size = steps.size();
    const int rank = steps.rank();
    const Buffer total =
        rank == 0 ? steps.scratch(reduction.count, reduction.type) : Buffer{nullptr, 0, nullptr};
    reduce_binomial(steps, reduction, in, total.base, 0);
    std::vector<Buffer> blocks(static_cast<std::size_t>(rank == 0 ? size : 0));
    MPI_Count first = 0;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        blocks[i] = part_of(total, first, counts[i]);
        first += counts[i];
    }
    scatter_linear(steps, Blocks(blocks.data()), {out, counts[rank], &reduction.type}, 0);
}

// Everybody gets its block of each other rank's array and combines them as they come by:
// (P - 1) · L + n · (B + C).
void reduce_scatter_pairwise(Steps& steps, const Reduction& reduction, const void* in, void* out,
                             const MPI_Count counts[]) {
    const int size = steps.size();
    const int rank = steps.rank();
    const Buffer whole = {const_cast<void*>(in), reduction.count, &reduction.type};
    std::vector<MPI_Count> begin(static_cast<std::size_t>(size));
    for (std::size_t i = 1; i < begin.size(); ++i) {
        begin[i] = begin[i - 1] + counts[i - 1];
    }
    const auto block = [&](int of) {
        return part_of(whole, begin[static_cast<std::size_t>(of)], counts[of]);
    };
    const MPI_Count own = counts[rank];
    // Not `out`, which may be the memory that others' blocks are still sent from.
    const Buffer total = steps.scratch(own, reduction.type);
    const Buffer operand = steps.scratch(own, reduction.type);
    steps.copy(block(rank), total);
    for (int distance = 1; distance < size; ++distance) {
        const int to = (rank + distance) % size;
        const int from = (rank - distance + size) % size;
        if (own > 0) {
            steps.start_receive(operand, from);
        }
        if (counts[to] > 0) {
            steps.start_send(block(to), to);
        }
        steps.finish();
        steps.combine(reduction, operand.base, total.base, own);
    }
    steps.copy(total, {out, own, &reduction.type});
}

} // namespace warren::coll
