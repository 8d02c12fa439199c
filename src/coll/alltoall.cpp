// All-to-all by messages.

#include <algorithm>
#include <vector>

#include "coll/algorithms.hpp"
#include "coll/scratch.hpp"

namespace warren::coll {

namespace {
// Peers whose messages are under way at once: enough to wait seldom, few enough to bound what
// arrives before it is wanted.
constexpr int batch_peers = 64;
} // namespace

// Everybody to everybody, beginning with the neighbours: (P - 1) · (L + n · B), with the latencies
// of a batch at the same time.
Error alltoall_batches(const Channel& channel, const Blocks& out, const Blocks& in) {
    const int size = channel.size();
    const int rank = channel.rank();
    for (int first = 1; first < size; first += batch_peers) {
        const int last = std::min(size, first + batch_peers);
        Batch batch(channel);
        for (int distance = first; distance < last; ++distance) {
            const int from = (rank - distance + size) % size;
            const Buffer block = in[from];
            if (block.bytes() > 0) {
                batch.start_receive(block, from);
            }
        }
        for (int distance = first; distance < last; ++distance) {
            const int to = (rank + distance) % size;
            const Buffer block = out[to];
            if (block.bytes() > 0) {
                batch.start_send(block, to);
            }
        }
        if (Error error = batch.finish()) {
            return error;
        }
    }
    return copy(out[rank], in[rank]);
}

// From a packed copy of what goes out.
Error alltoall_in_place(const Channel& channel, const Blocks& blocks) {
    const int size = channel.size();
    MPI_Count total = 0;
    for (int rank = 0; rank < size; ++rank) {
        total += blocks[rank].bytes();
    }
    Scratch packed_blocks;
    if (Error error = packed_blocks.allocate(total)) {
        return error;
    }
    std::vector<Buffer> out(static_cast<std::size_t>(size));
    MPI_Count offset = 0;
    for (int rank = 0; rank < size; ++rank) {
        const Buffer block = blocks[rank];
        out[static_cast<std::size_t>(rank)] =
            bytes_of(packed_blocks.data() + offset, block.bytes());
        if (Error error = copy(block, out[static_cast<std::size_t>(rank)])) {
            return error;
        }
        offset += block.bytes();
    }
    return alltoall_batches(channel, Blocks(out.data()), blocks);
}

} // namespace warren::coll
