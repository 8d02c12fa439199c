// Reduction to one rank by messages.

#include <utility>

#include "mpi/coll/algorithms.hpp"

namespace warren::coll {

// A binomial tree, in which every rank combines what comes from higher ranks to the right of what
// it has: ⌈log2 P⌉ · (L + n · (B + C)). For operations that commute the tree is rotated to end at
// the root; for others it ends at rank 0, which sends the result to the root.
void reduce_binomial(Steps& steps, const Reduction& reduction, const void* in, void* out,
                     int root) {
    const int size = steps.size();
    const int top = reduction.op.commutative() ? root : 0;
    const int virtual_rank = (steps.rank() - top + size) % size;
    const bool leaf = (virtual_rank & 1) != 0 || virtual_rank + 1 == size;

    Buffer result = {const_cast<void*>(in), reduction.count, &reduction.type};
    Buffer spare;
    Buffer other;
    if (!leaf) {
        spare = steps.scratch(reduction.count, reduction.type);
        other = steps.scratch(reduction.count, reduction.type);
    }
    for (int distance = 1; distance < size; distance *= 2) {
        if ((virtual_rank & distance) != 0) {
            steps.send(result, (virtual_rank - distance + top) % size);
            break;
        }
        if (virtual_rank + distance < size) {
            steps.receive(spare, (virtual_rank + distance + top) % size);
            steps.combine(reduction, result.base, spare.base, reduction.count);
            result = spare;
            std::swap(spare, other);
        }
    }
    const Buffer target = {out, reduction.count, &reduction.type};
    if (top == root) {
        if (virtual_rank == 0) {
            steps.copy(result, target);
        }
    } else if (steps.rank() == 0) {
        steps.send(result, root);
    } else if (steps.rank() == root) {
        steps.receive(target, 0);
    }
}

} // namespace warren::coll
