// All-to-all by messages.

#include <algorithm>
#include <vector>

#include "mpi/coll/algorithms.hpp"
#include "mpi/coll/tuning.hpp"

namespace warren::coll {

// Everybody to everybody, beginning with the neighbours: (P - 1) · (L + n · B), with the latencies
// of a batch at the same time.
void alltoall_batches(Steps& steps, const Blocks& out, const Blocks& in) {
    const int size = steps.size();
    const int rank = steps.rank();
    for (int first = 1; first < size; first += batch_peers) {
        const int last = std::min(size, first + batch_peers);
        for (int distance = first; distance < last; ++distance) {
            const int from = (rank - distance + size) % size;
            const Buffer block = in[from];
            if (block.bytes() > 0) {
                steps.start_receive(block, from);
            }
        }
        for (int distance = first; distance < last; ++distance) {
            const int to = (rank + distance) % size;
            const Buffer block = out[to];
            if (block.bytes() > 0) {
                steps.start_send(block, to);
            }
        }
        steps.finish();
    }
    steps.copy(out[rank], in[rank]);
}

// From a packed copy of what goes out.
void alltoall_in_place(Steps& steps, const Blocks& blocks) {
    const int size = steps.size();
    MPI_Count total = 0;
    for (int rank = 0; rank < size; ++rank) {
        total += blocks[rank].bytes();
    }
    std::byte* data = steps.scratch(total);
    std::vector<Buffer> out(static_cast<std::size_t>(size));
    MPI_Count offset = 0;
    for (int rank = 0; rank < size; ++rank) {
        const Buffer block = blocks[rank];
        out[static_cast<std::size_t>(rank)] = bytes_of(data + offset, block.bytes());
        steps.copy(block, out[static_cast<std::size_t>(rank)]);
        offset += block.bytes();
    }
    alltoall_batches(steps, Blocks(out.data()), blocks);
}

} // namespace warren::coll
