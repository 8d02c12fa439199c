// Reduction to all ranks by messages. All of it gives every rank the same bits.

#include <algorithm>
#include <utility>
#include <vector>

#include "mpi/coll/algorithms.hpp"

namespace warren::coll {

namespace {

// The largest power of two of ranks does the work, in pairs that differ by one bit. What is over
// hands its data to its neighbour before, and gets the result after: of the first 2 · over ranks
// the odd ones work, and the order of ranks is kept.
struct Workers {
    int count = 1; // power of two
    int over = 0;
    int own = -1; // number of this rank among the workers; -1: it hands over

    Workers(int rank, int size) {
        while (2 * count <= size) {
            count *= 2;
        }
        over = size - count;
        if (rank >= 2 * over) {
            own = rank - over;
        } else if (rank % 2 == 1) {
            own = rank / 2;
        }
    }

    int rank_of(int worker) const { return worker < over ? 2 * worker + 1 : worker + over; }
};

// Before the work: those that are over send, their neighbours combine into `total`.
void hand_over(Steps& steps, const Reduction& reduction, const Workers& workers,
               const Buffer& total, const Buffer& spare) {
    const int rank = steps.rank();
    if (workers.own < 0) {
        steps.send(total, rank + 1);
    } else if (rank < 2 * workers.over) {
        steps.receive(spare, rank - 1);
        steps.combine(reduction, spare.base, total.base, reduction.count);
    }
}

// And after it.
void hand_back(Steps& steps, const Workers& workers, const Buffer& total) {
    const int rank = steps.rank();
    if (workers.own < 0) {
        steps.receive(total, rank + 1);
    } else if (rank < 2 * workers.over) {
        steps.send(total, rank - 1);
    }
}

} // namespace

// Recursive doubling: ⌈log2 P⌉ · (L + n · (B + C)), and two messages more where P is no power of
// two. In order of ranks.
void allreduce_doubling(Steps& steps, const Reduction& reduction, const void* in, void* out) {
    const Workers workers(steps.rank(), steps.size());
    const Buffer target = {out, reduction.count, &reduction.type};
    steps.copy({const_cast<void*>(in), reduction.count, &reduction.type}, target);
    Buffer total = target;
    Buffer spare = steps.scratch(reduction.count, reduction.type);
    hand_over(steps, reduction, workers, total, spare);
    for (int bit = 1; workers.own >= 0 && bit < workers.count; bit *= 2) {
        const int partner = workers.own ^ bit;
        const int peer = workers.rank_of(partner);
        steps.exchange(total, peer, spare, peer);
        if (partner < workers.own) {
            steps.combine(reduction, spare.base, total.base, reduction.count);
        } else {
            steps.combine(reduction, total.base, spare.base, reduction.count);
            std::swap(total, spare);
        }
    }
    if (total.base != target.base) {
        steps.copy(total, target);
    }
    hand_back(steps, workers, target);
}

// Rabenseifner: recursive halving scatters the reduction, recursive doubling gathers it:
// 2 · log2 P · L + 2 · n · B + n · C.
void allreduce_halving(Steps& steps, const Reduction& reduction, const void* in, void* out) {
    const Workers workers(steps.rank(), steps.size());
    const Buffer total = {out, reduction.count, &reduction.type};
    steps.copy({const_cast<void*>(in), reduction.count, &reduction.type}, total);
    const Buffer spare = steps.scratch(reduction.count, reduction.type);
    hand_over(steps, reduction, workers, total, spare);
    if (workers.own >= 0) {
        // Begin of block b of the result.
        const auto begin = [&](int block) { return reduction.count * block / workers.count; };
        int first = 0; // the blocks that this rank is left with: [first, last)
        int last = workers.count;
        for (int bit = workers.count / 2; bit > 0; bit /= 2) {
            const int peer = workers.rank_of(workers.own ^ bit);
            const int middle = (first + last) / 2;
            const bool low = (workers.own & bit) == 0;
            const int kept_first = low ? first : middle;
            const int kept_last = low ? middle : last;
            const int given_first = low ? middle : first;
            const int given_last = low ? last : middle;
            const MPI_Count kept = begin(kept_last) - begin(kept_first);
            const Buffer incoming = part_of(spare, begin(kept_first), kept);
            const Buffer outgoing =
                part_of(total, begin(given_first), begin(given_last) - begin(given_first));
            steps.exchange(outgoing, peer, incoming, peer);
            steps.combine(reduction, incoming.base, part_of(total, begin(kept_first), kept).base,
                          kept);
            first = kept_first;
            last = kept_last;
        }
        for (int bit = 1; bit < workers.count; bit *= 2) {
            const int peer = workers.rank_of(workers.own ^ bit);
            const int blocks = last - first;
            const bool low = (workers.own & bit) == 0;
            const int other = low ? last : first - blocks;
            steps.exchange(part_of(total, begin(first), begin(last) - begin(first)), peer,
                           part_of(total, begin(other), begin(other + blocks) - begin(other)),
                           peer);
            first = std::min(first, other);
            last = first + 2 * blocks;
        }
    }
    hand_back(steps, workers, total);
}

// Reduce and broadcast: 2 · ⌈log2 P⌉ · (L + n · B) + …, but each rank waits for few messages: for
// ranks that share processors.
void allreduce_by_root(Steps& steps, const Reduction& reduction, const void* in, void* out) {
    reduce_binomial(steps, reduction, in, out, 0);
    bcast_binomial(steps, {out, reduction.count, &reduction.type}, 0);
}

} // namespace warren::coll
