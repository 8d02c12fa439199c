// Allgather by messages. Every rank's own block is in its place already.

#include <cstring>
#include <vector>

#include "coll/algorithms.hpp"
#include "coll/scratch.hpp"

namespace warren::coll {

// Blocks travel around: (P - 1) · (L + n · B), the least data that any algorithm moves.
Error allgather_ring(const Channel& channel, const Blocks& blocks) {
    const int size = channel.size();
    const int rank = channel.rank();
    const int right = (rank + 1) % size;
    const int left = (rank - 1 + size) % size;
    for (int step = 0; step + 1 < size; ++step) {
        const Buffer out = blocks[(rank - step + size) % size];
        const Buffer in = blocks[(rank - step - 1 + size) % size];
        Batch batch(channel);
        if (in.bytes() > 0) {
            batch.start_receive(in, left);
        }
        if (out.bytes() > 0) {
            batch.start_send(out, right);
        }
        if (Error error = batch.finish()) {
            return error;
        }
    }
    return {};
}

// Bruck: ⌈log2 P⌉ · L + (P - 1) · n · B, on packed blocks that are rotated so that the own one is
// first.
Error allgather_bruck(const Channel& channel, const Blocks& blocks) {
    const int size = channel.size();
    const int rank = channel.rank();
    const MPI_Count block = blocks[rank].bytes();
    Scratch rotated;
    if (Error error = rotated.allocate(block * size)) {
        return error;
    }
    std::byte* data = rotated.data();
    if (Error error = copy(blocks[rank], bytes_of(data, block))) {
        return error;
    }
    for (int have = 1; have < size; have *= 2) {
        const int more = have < size - have ? have : size - have;
        if (Error error = channel.exchange(
                bytes_of(data, more * block), (rank - have + size) % size,
                bytes_of(data + have * block, more * block), (rank + have) % size)) {
            return error;
        }
    }
    for (int distance = 1; distance < size; ++distance) {
        if (Error error =
                copy(bytes_of(data + distance * block, block), blocks[(rank + distance) % size])) {
            return error;
        }
    }
    return {};
}

// Gather to rank 0 and broadcast: more data, but each rank waits for few messages: for ranks that
// share processors.
Error allgather_by_root(const Channel& channel, const Blocks& blocks) {
    const int size = channel.size();
    const int rank = channel.rank();
    MPI_Count total = 0;
    MPI_Count own_offset = 0;
    for (int other = 0; other < size; ++other) {
        own_offset = other == rank ? total : own_offset;
        total += blocks[other].bytes();
    }
    Scratch packed_blocks;
    if (Error error = packed_blocks.allocate(total)) {
        return error;
    }
    std::byte* data = packed_blocks.data();
    const MPI_Count own = blocks[rank].bytes();
    if (Error error = copy(blocks[rank], bytes_of(data + own_offset, own))) {
        return error;
    }
    std::vector<Buffer> places(static_cast<std::size_t>(rank == 0 ? size : 0));
    MPI_Count offset = 0;
    for (std::size_t other = 0; other < places.size(); ++other) {
        const MPI_Count bytes = blocks[static_cast<int>(other)].bytes();
        places[other] = bytes_of(data + offset, bytes);
        offset += bytes;
    }
    if (Error error =
            gather_linear(channel, bytes_of(data + own_offset, own), Blocks(places.data()), 0)) {
        return error;
    }
    if (Error error = bcast_binomial(channel, bytes_of(data, total), 0)) {
        return error;
    }
    offset = 0;
    for (int other = 0; other < size; ++other) {
        const Buffer block = blocks[other];
        const MPI_Count bytes = block.bytes();
        if (other != rank) {
            if (Error error = copy(bytes_of(data + offset, bytes), block)) {
                return error;
            }
        }
        offset += bytes;
    }
    return {};
}

} // namespace warren::coll
