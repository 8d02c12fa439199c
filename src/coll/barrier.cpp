// Barrier by messages.

#include "coll/algorithms.hpp"

namespace warren::coll {

// Dissemination: in round k everybody tells the rank 2^k further on; after ⌈log2 P⌉ rounds
// everybody has heard of everybody. ⌈log2 P⌉ · L.
Error barrier_dissemination(const Channel& channel) {
    const int size = channel.size();
    const Buffer nothing = bytes_of(static_cast<void*>(nullptr), 0);
    for (int distance = 1; distance < size; distance *= 2) {
        const int to = (channel.rank() + distance) % size;
        const int from = (channel.rank() - distance + size) % size;
        if (Error error = channel.exchange(nothing, to, nothing, from)) {
            return error;
        }
    }
    return {};
}

} // namespace warren::coll
