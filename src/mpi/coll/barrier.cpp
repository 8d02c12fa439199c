// Barrier by messages.

#include "mpi/coll/algorithms.hpp"

namespace warren::coll {

// Dissemination: in round k everybody tells the rank 2^k further on; after ⌈log2 P⌉ rounds
// everybody has heard of everybody. ⌈log2 P⌉ · L.
void barrier_dissemination(Steps& steps) {
    const int size = steps.size();
    const Buffer nothing = bytes_of(static_cast<void*>(nullptr), 0);
    for (int distance = 1; distance < size; distance *= 2) {
        const int to = (steps.rank() + distance) % size;
        const int from = (steps.rank() - distance + size) % size;
        steps.exchange(nothing, to, nothing, from);
    }
}

} // namespace warren::coll
