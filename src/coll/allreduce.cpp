// Reduction to all ranks by messages. All of it gives every rank the same bits.

#include <algorithm>
#include <utility>
#include <vector>

#include "coll/algorithms.hpp"
#include "coll/scratch.hpp"

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
Error hand_over(const Channel& channel, const Reduction& reduction, const Workers& workers,
                const Buffer& total, const Buffer& spare) {
    const int rank = channel.rank();
    if (workers.own < 0) {
        return channel.send(total, rank + 1);
    }
    if (rank < 2 * workers.over) {
        if (Error error = channel.receive(spare, rank - 1)) {
            return error;
        }
        combine(channel, reduction, spare.base, total.base, reduction.count);
    }
    return {};
}

// And after it.
Error hand_back(const Channel& channel, const Workers& workers, const Buffer& total) {
    const int rank = channel.rank();
    if (workers.own < 0) {
        return channel.receive(total, rank + 1);
    }
    return rank < 2 * workers.over ? channel.send(total, rank - 1) : Error();
}

} // namespace

// Recursive doubling: ⌈log2 P⌉ · (L + n · (B + C)), and two messages more where P is no power of
// two. In order of ranks.
Error allreduce_doubling(const Channel& channel, const Reduction& reduction, const void* in,
                         void* out) {
    const Workers workers(channel.rank(), channel.size());
    const Buffer target = {out, reduction.count, &reduction.type};
    Scratch scratch;
    if (Error error = scratch.allocate(reduction.count, reduction.type)) {
        return error;
    }
    if (Error error = copy({const_cast<void*>(in), reduction.count, &reduction.type}, target)) {
        return error;
    }
    Buffer total = target;
    Buffer spare = scratch.buffer();
    if (Error error = hand_over(channel, reduction, workers, total, spare)) {
        return error;
    }
    for (int bit = 1; workers.own >= 0 && bit < workers.count; bit *= 2) {
        const int partner = workers.own ^ bit;
        const int peer = workers.rank_of(partner);
        if (Error error = channel.exchange(total, peer, spare, peer)) {
            return error;
        }
        if (partner < workers.own) {
            combine(channel, reduction, spare.base, total.base, reduction.count);
        } else {
            combine(channel, reduction, total.base, spare.base, reduction.count);
            std::swap(total, spare);
        }
    }
    if (total.base != target.base) {
        if (Error error = copy(total, target)) {
            return error;
        }
    }
    return hand_back(channel, workers, target);
}

// Rabenseifner: recursive halving scatters the reduction, recursive doubling gathers it:
// 2 · log2 P · L + 2 · n · B + n · C.
Error allreduce_halving(const Channel& channel, const Reduction& reduction, const void* in,
                        void* out) {
    const Workers workers(channel.rank(), channel.size());
    const Buffer total = {out, reduction.count, &reduction.type};
    Scratch scratch;
    if (Error error = scratch.allocate(reduction.count, reduction.type)) {
        return error;
    }
    if (Error error = copy({const_cast<void*>(in), reduction.count, &reduction.type}, total)) {
        return error;
    }
    const Buffer spare = scratch.buffer();
    if (Error error = hand_over(channel, reduction, workers, total, spare)) {
        return error;
    }
    if (workers.own >= 0) {
        // Where block b of the result begins.
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
            if (Error error = channel.exchange(outgoing, peer, incoming, peer)) {
                return error;
            }
            combine(channel, reduction, incoming.base, part_of(total, begin(kept_first), kept).base,
                    kept);
            first = kept_first;
            last = kept_last;
        }
        for (int bit = 1; bit < workers.count; bit *= 2) {
            const int peer = workers.rank_of(workers.own ^ bit);
            const int blocks = last - first;
            const bool low = (workers.own & bit) == 0;
            const int other = low ? last : first - blocks;
            if (Error error = channel.exchange(
                    part_of(total, begin(first), begin(last) - begin(first)), peer,
                    part_of(total, begin(other), begin(other + blocks) - begin(other)), peer)) {
                return error;
            }
            first = std::min(first, other);
            last = first + 2 * blocks;
        }
    }
    return hand_back(channel, workers, total);
}

// Reduce and broadcast: 2 · ⌈log2 P⌉ · (L + n · B) + …, but each rank waits for few messages: for
// ranks that share processors.
Error allreduce_by_root(const Channel& channel, const Reduction& reduction, const void* in,
                        void* out) {
    if (Error error = reduce_binomial(channel, reduction, in, out, 0)) {
        return error;
    }
    return bcast_binomial(channel, {out, reduction.count, &reduction.type}, 0);
}

} // namespace warren::coll
