// Scans by messages, inclusive and exclusive. In order of ranks.

#include <utility>

#include "coll/algorithms.hpp"
#include "coll/scratch.hpp"

namespace warren::coll {

// Each rank combines what the rank before sends and passes it on: P · (L + n · (B + C)) for the
// last, but each rank waits once: for few ranks, and for ranks that share processors.
Error scan_chain(const Channel& channel, const Reduction& reduction, const void* in, void* out,
                 bool exclusive) {
    const int rank = channel.rank();
    const bool last = rank + 1 == channel.size();
    const Buffer own = {const_cast<void*>(in), reduction.count, &reduction.type};
    const Buffer target = {out, reduction.count, &reduction.type};
    if (rank == 0) {
        if (!last) {
            if (Error error = channel.send(own, 1)) {
                return error;
            }
        }
        return exclusive ? Error() : copy(own, target);
    }
    Scratch before;
    if (Error error = before.allocate(reduction.count, reduction.type)) {
        return error;
    }
    if (Error error = channel.receive(before.buffer(), rank - 1)) {
        return error;
    }
    if (!exclusive) {
        if (Error error = copy(own, target)) {
            return error;
        }
        combine(channel, reduction, before.base(), out, reduction.count);
        return last ? Error() : channel.send(target, rank + 1);
    }
    if (!last) {
        Scratch through;
        if (Error error = through.allocate(reduction.count, reduction.type)) {
            return error;
        }
        if (Error error = copy(own, through.buffer())) {
            return error;
        }
        combine(channel, reduction, before.base(), through.base(), reduction.count);
        if (Error error = channel.send(through.buffer(), rank + 1)) {
            return error;
        }
    }
    return copy(before.buffer(), target);
}

// Recursive doubling: partners by one bit exchange the totals of their aligned blocks of ranks:
// ⌈log2 P⌉ · (L + n · (B + 2 · C)).
Error scan_doubling(const Channel& channel, const Reduction& reduction, const void* in, void* out,
                    bool exclusive) {
    const int rank = channel.rank();
    const Buffer own = {const_cast<void*>(in), reduction.count, &reduction.type};
    const Buffer target = {out, reduction.count, &reduction.type};
    Scratch block;   // total of the aligned block of ranks that this one is in
    Scratch operand; // the partner's
    if (Error error = block.allocate(reduction.count, reduction.type)) {
        return error;
    }
    if (Error error = operand.allocate(reduction.count, reduction.type)) {
        return error;
    }
    if (Error error = copy(own, block.buffer())) {
        return error;
    }
    bool has_result = !exclusive;
    if (has_result) {
        if (Error error = copy(own, target)) {
            return error;
        }
    }
    Buffer total = block.buffer();
    Buffer other = operand.buffer();
    for (int bit = 1; bit < channel.size(); bit *= 2) {
        const int peer = rank ^ bit;
        if (peer >= channel.size()) {
            continue;
        }
        if (Error error = channel.exchange(total, peer, other, peer)) {
            return error;
        }
        if (peer < rank) {
            if (has_result) {
                combine(channel, reduction, other.base, target.base, reduction.count);
            } else if (Error error = copy(other, target)) {
                return error;
            }
            has_result = true;
            combine(channel, reduction, other.base, total.base, reduction.count);
        } else {
            combine(channel, reduction, total.base, other.base, reduction.count);
            std::swap(total, other);
        }
    }
    return {};
}

} // namespace warren::coll
