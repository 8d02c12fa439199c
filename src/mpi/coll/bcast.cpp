// Broadcast by messages.

#include "mpi/coll/algorithms.hpp"

namespace warren::coll {

// A binomial tree: ⌈log2 P⌉ · (L + n · B). Each rank waits for one message only, which is what
// counts when ranks share processors.
void bcast_binomial(Steps& steps, const Buffer& buffer, int root) {
    const int size = steps.size();
    const int virtual_rank = (steps.rank() - root + size) % size;
    int distance = 1;
    while (distance < size && (virtual_rank & distance) == 0) {
        distance *= 2;
    }
    if (virtual_rank != 0) {
        steps.receive(buffer, (virtual_rank - distance + root) % size);
    }
    // The farthest child first: it has the most to pass on.
    for (distance /= 2; distance > 0; distance /= 2) {
        if (virtual_rank + distance < size) {
            steps.start_send(buffer, (virtual_rank + distance + root) % size);
        }
    }
    steps.finish();
}

} // namespace warren::coll
