// Reduction to one rank by messages.

#include <utility>

#include "coll/algorithms.hpp"
#include "coll/scratch.hpp"
#include "coll/shared.hpp"

namespace warren::coll {

void combine(const Channel& channel, const Reduction& reduction, const void* in, void* inout,
             MPI_Count count) {
    apply_unlocked(channel.engine().rank(), reduction.op, in, inout, count, reduction.type);
}

// A binomial tree, in which every rank combines what comes from higher ranks to the right of what
// it has: ⌈log2 P⌉ · (L + n · (B + C)). For operations that commute the tree is rotated to end at
// the root; for others it ends at rank 0, which sends the result to the root.
Error reduce_binomial(const Channel& channel, const Reduction& reduction, const void* in, void* out,
                      int root) {
    const int size = channel.size();
    const int top = reduction.op.commutative() ? root : 0;
    const int virtual_rank = (channel.rank() - top + size) % size;
    const bool leaf = (virtual_rank & 1) != 0 || virtual_rank + 1 == size;

    Buffer result = {const_cast<void*>(in), reduction.count, &reduction.type};
    Scratch total;
    Scratch operand;
    if (!leaf) {
        if (Error error = total.allocate(reduction.count, reduction.type)) {
            return error;
        }
        if (Error error = operand.allocate(reduction.count, reduction.type)) {
            return error;
        }
    }
    Buffer spare = operand.buffer();
    Buffer other = total.buffer();
    for (int distance = 1; distance < size; distance *= 2) {
        if ((virtual_rank & distance) != 0) {
            if (Error error = channel.send(result, (virtual_rank - distance + top) % size)) {
                return error;
            }
            break;
        }
        if (virtual_rank + distance < size) {
            if (Error error = channel.receive(spare, (virtual_rank + distance + top) % size)) {
                return error;
            }
            combine(channel, reduction, result.base, spare.base, reduction.count);
            result = spare;
            std::swap(spare, other);
        }
    }
    const Buffer target = {out, reduction.count, &reduction.type};
    if (top == root) {
        return virtual_rank == 0 ? copy(result, target) : Error();
    }
    if (channel.rank() == 0) {
        return channel.send(result, root);
    }
    return channel.rank() == root ? channel.receive(target, 0) : Error();
}

} // namespace warren::coll
