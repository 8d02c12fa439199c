// Broadcast by messages.

#include "coll/algorithms.hpp"

namespace warren::coll {

// A binomial tree: ⌈log2 P⌉ · (L + n · B). Each rank waits for one message only, which is what
// counts when ranks share processors.
Error bcast_binomial(const Channel& channel, const Buffer& buffer, int root) {
    const int size = channel.size();
    const int virtual_rank = (channel.rank() - root + size) % size;
    int distance = 1;
    while (distance < size && (virtual_rank & distance) == 0) {
        distance *= 2;
    }
    if (virtual_rank != 0) {
        const int parent = (virtual_rank - distance + root) % size;
        if (Error error = channel.receive(buffer, parent)) {
            return error;
        }
    }
    // The farthest child first: it has the most to pass on.
    for (distance /= 2; distance > 0; distance /= 2) {
        if (virtual_rank + distance < size) {
            if (Error error = channel.send(buffer, (virtual_rank + distance + root) % size)) {
                return error;
            }
        }
    }
    return {};
}

} // namespace warren::coll
