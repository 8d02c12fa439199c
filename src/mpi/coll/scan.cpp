// Scans by messages, inclusive and exclusive. In order of ranks.

#include <utility>

#include "mpi/coll/algorithms.hpp"

namespace warren::coll {

// Each rank combines what the rank before sends and passes it on: P · (L + n · (B + C)) for the
// last, but each rank waits once: for few ranks, and for ranks that share processors.
void scan_chain(Steps& steps, const Reduction& reduction, const void* in, void* out,
                bool exclusive) {
    const int rank = steps.rank();
    const bool last = rank + 1 == steps.size();
    const Buffer own = {const_cast<void*>(in), reduction.count, &reduction.type};
    const Buffer target = {out, reduction.count, &reduction.type};
    if (rank == 0) {
        if (!last) {
            steps.send(own, 1);
        }
        if (!exclusive) {
            steps.copy(own, target);
        }
        return;
    }
    const Buffer before = steps.scratch(reduction.count, reduction.type);
    steps.receive(before, rank - 1);
    if (!exclusive) {
        steps.copy(own, target);
        steps.combine(reduction, before.base, out, reduction.count);
        if (!last) {
            steps.send(target, rank + 1);
        }
        return;
    }
    if (!last) {
        const Buffer through = steps.scratch(reduction.count, reduction.type);
        steps.copy(own, through);
        steps.combine(reduction, before.base, through.base, reduction.count);
        steps.send(through, rank + 1);
    }
    steps.copy(before, target);
}

// Recursive doubling: partners by one bit exchange the totals of their aligned blocks of ranks:
// ⌈log2 P⌉ · (L + n · (B + 2 · C)).
void scan_doubling(Steps& steps, const Reduction& reduction, const void* in, void* out,
                   bool exclusive) {
    const int rank = steps.rank();
    const Buffer own = {const_cast<void*>(in), reduction.count, &reduction.type};
    const Buffer target = {out, reduction.count, &reduction.type};
    // The total of the aligned block of ranks that this one is in, and the partner's.
    Buffer total = steps.scratch(reduction.count, reduction.type);
    Buffer other = steps.scratch(reduction.count, reduction.type);
    steps.copy(own, total);
    bool has_result = !exclusive;
    if (has_result) {
        steps.copy(own, target);
    }
    for (int bit = 1; bit < steps.size(); bit *= 2) {
        const int peer = rank ^ bit;
        if (peer >= steps.size()) {
            continue;
        }
        steps.exchange(total, peer, other, peer);
        if (peer < rank) {
            if (has_result) {
                steps.combine(reduction, other.base, target.base, reduction.count);
            } else {
                steps.copy(other, target);
            }
            has_result = true;
            steps.combine(reduction, other.base, total.base, reduction.count);
        } else {
            steps.combine(reduction, total.base, other.base, reduction.count);
            std::swap(total, other);
        }
    }
}

} // namespace warren::coll
