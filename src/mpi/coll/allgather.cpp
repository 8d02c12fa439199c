// Allgather by messages. A rank's own block is sent from the program's buffer, which is faster than
// from the copy that the rank has just written, whose lines are modified in this core's cache.

#include <vector>

#include "mpi/coll/algorithms.hpp"

namespace warren::coll {

// Blocks travel around: (P - 1) · (L + n · B), the least data that any algorithm moves.
void allgather_ring(Steps& steps, const Buffer& own, const Blocks& blocks) {
    const int size = steps.size();
    const int rank = steps.rank();
    const int right = (rank + 1) % size;
    const int left = (rank - 1 + size) % size;
    for (int step = 0; step + 1 < size; ++step) {
        const Buffer out = step == 0 ? own : blocks[(rank - step + size) % size];
        const Buffer in = blocks[(rank - step - 1 + size) % size];
        if (in.bytes() > 0) {
            steps.start_receive(in, left);
        }
        if (out.bytes() > 0) {
            steps.start_send(out, right);
        }
        steps.finish();
    }
    steps.copy(own, blocks[rank]);
}

// Bruck: ⌈log2 P⌉ · L + (P - 1) · n · B, on packed blocks that are rotated so that the own one is
// first.
void allgather_bruck(Steps& steps, const Buffer& own, const Blocks& blocks) {
    const int size = steps.size();
    const int rank = steps.rank();
    const MPI_Count block = blocks[rank].bytes();
    std::byte* data = steps.scratch(block * size);
    steps.copy(own, bytes_of(data, block));
    for (int have = 1; have < size; have *= 2) {
        const int more = have < size - have ? have : size - have;
        steps.exchange(bytes_of(data, more * block), (rank - have + size) % size,
                       bytes_of(data + have * block, more * block), (rank + have) % size);
    }
    for (int distance = 1; distance < size; ++distance) {
        steps.copy(bytes_of(data + distance * block, block), blocks[(rank + distance) % size]);
    }
    steps.copy(own, blocks[rank]);
}

// Gather to rank 0 and broadcast: more data, but each rank waits for few messages: for ranks that
// share processors.
void allgather_by_root(Steps& steps, const Buffer& own, const Blocks& blocks) {
    const int size = steps.size();
    const int rank = steps.rank();
    MPI_Count total = 0;
    MPI_Count own_offset = 0;
    for (int other = 0; other < size; ++other) {
        own_offset = other == rank ? total : own_offset;
        total += blocks[other].bytes();
    }
    std::byte* data = steps.scratch(total);
    const MPI_Count own_bytes = blocks[rank].bytes();
    steps.copy(own, bytes_of(data + own_offset, own_bytes));
    std::vector<Buffer> places(static_cast<std::size_t>(rank == 0 ? size : 0));
    MPI_Count offset = 0;
    for (std::size_t other = 0; other < places.size(); ++other) {
        const MPI_Count bytes = blocks[static_cast<int>(other)].bytes();
        places[other] = bytes_of(data + offset, bytes);
        offset += bytes;
    }
    gather_linear(steps, bytes_of(data + own_offset, own_bytes), Blocks(places.data()), 0);
    bcast_binomial(steps, bytes_of(data, total), 0);
    offset = 0;
    for (int other = 0; other < size; ++other) {
        const Buffer block = blocks[other];
        const MPI_Count bytes = block.bytes();
        if (other != rank) {
            steps.copy(bytes_of(data + offset, bytes), block);
        }
        offset += bytes;
    }
    steps.copy(own, blocks[rank]);
}

} // namespace warren::coll
