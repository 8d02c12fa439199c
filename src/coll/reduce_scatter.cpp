// Reductions whose result is scattered, by messages.

#include <vector>

#include "coll/algorithms.hpp"
#include "coll/scratch.hpp"

namespace warren::coll {

// Reduce to rank 0, then scatter: for short arrays, and operations that don't commute.
// n: the bytes of the whole array. ⌈log2 P⌉ · (L + n · (B + C)) + P · L + n · B.
Error reduce_scatter_by_root(const Channel& channel, const Reduction& reduction, const void* in,
                             void* out, const MPI_Count counts[]) {
    const int size = channel.size();
    const int rank = channel.rank();
    Scratch total;
    if (rank == 0) {
        if (Error error = total.allocate(reduction.count, reduction.type)) {
            return error;
        }
    }
    if (Error error = reduce_binomial(channel, reduction, in, total.base(), 0)) {
        return error;
    }
    std::vector<Buffer> blocks(static_cast<std::size_t>(rank == 0 ? size : 0));
    MPI_Count first = 0;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        blocks[i] = total.part(first, counts[i]);
        first += counts[i];
    }
    return scatter_linear(channel, Blocks(blocks.data()), {out, counts[rank], &reduction.type}, 0);
}

// Everybody gets its block of each other rank's array and combines them as they come by:
// (P - 1) · L + n · (B + C).
Error reduce_scatter_pairwise(const Channel& channel, const Reduction& reduction, const void* in,
                              void* out, const MPI_Count counts[]) {
    const int size = channel.size();
    const int rank = channel.rank();
    const Buffer whole = {const_cast<void*>(in), reduction.count, &reduction.type};
    std::vector<MPI_Count> begin(static_cast<std::size_t>(size));
    for (std::size_t i = 1; i < begin.size(); ++i) {
        begin[i] = begin[i - 1] + counts[i - 1];
    }
    const auto block = [&](int of) {
        return part_of(whole, begin[static_cast<std::size_t>(of)], counts[of]);
    };
    const MPI_Count own = counts[rank];
    Scratch total; // not `out`, which may be the memory that others' blocks are still sent from
    Scratch operand;
    if (Error error = total.allocate(own, reduction.type)) {
        return error;
    }
    if (Error error = operand.allocate(own, reduction.type)) {
        return error;
    }
    if (Error error = copy(block(rank), total.buffer())) {
        return error;
    }
    for (int distance = 1; distance < size; ++distance) {
        const int to = (rank + distance) % size;
        const int from = (rank - distance + size) % size;
        const Buffer outgoing = block(to);
        Batch batch(channel);
        if (own > 0) {
            batch.start_receive(operand.buffer(), from);
        }
        if (outgoing.count > 0) {
            batch.start_send(outgoing, to);
        }
        if (Error error = batch.finish()) {
            return error;
        }
        combine(channel, reduction, operand.base(), total.base(), own);
    }
    return copy(total.buffer(), {out, own, &reduction.type});
}

} // namespace warren::coll
