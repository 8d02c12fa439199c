// Gather and scatter by messages.

#include "coll/algorithms.hpp"
#include "coll/scratch.hpp"

namespace warren::coll {

namespace {

// The part of a binomial tree below a rank: itself and the `ranks` - 1 virtual ranks after it.
struct Subtree {
    int ranks = 1;
    int distance = 1; // to the parent

    Subtree(int virtual_rank, int size) {
        while (distance < size && (virtual_rank & distance) == 0) {
            distance *= 2;
        }
        ranks = distance < size - virtual_rank ? distance : size - virtual_rank;
    }
};

} // namespace

// Everybody sends to the root: P · (L + n · B) there, L + n · B elsewhere. No copy more than
// needed.
Error gather_linear(const Channel& channel, const Buffer& own, const Blocks& blocks, int root) {
    if (channel.rank() != root) {
        return own.bytes() > 0 ? channel.send(own, root) : Error();
    }
    Batch batch(channel);
    for (int rank = 0; rank < channel.size(); ++rank) {
        const Buffer block = blocks[rank];
        if (rank != root && block.bytes() > 0) {
            batch.start_receive(block, rank);
        }
    }
    Error copied = copy(own, blocks[root]);
    Error received = batch.finish();
    if (copied) {
        received.drop();
        return copied;
    }
    return received;
}

// A binomial tree of packed blocks: ⌈log2 P⌉ · L + P · n · B at the root. Blocks of one size.
Error gather_binomial(const Channel& channel, const Buffer& own, const Blocks& blocks, int root) {
    const int size = channel.size();
    const int virtual_rank = (channel.rank() - root + size) % size;
    const Subtree subtree(virtual_rank, size);
    const MPI_Count block = own.bytes();
    if (subtree.ranks == 1 && virtual_rank != 0) {
        return channel.send(own, (virtual_rank - subtree.distance + root) % size);
    }
    Scratch packed_blocks; // of this subtree, by virtual rank
    if (Error error = packed_blocks.allocate(block * subtree.ranks)) {
        return error;
    }
    std::byte* data = packed_blocks.data();
    if (Error error = copy(own, bytes_of(data, block))) {
        return error;
    }
    for (int distance = 1; distance < subtree.distance && distance < subtree.ranks; distance *= 2) {
        const int child = virtual_rank + distance;
        const Subtree below(child, size);
        if (Error error = channel.receive(bytes_of(data + distance * block, below.ranks * block),
                                          (child + root) % size)) {
            return error;
        }
    }
    if (virtual_rank != 0) {
        return channel.send(bytes_of(data, subtree.ranks * block),
                            (virtual_rank - subtree.distance + root) % size);
    }
    for (int other = 0; other < size; ++other) {
        if (Error error =
                copy(bytes_of(data + other * block, block), blocks[(other + root) % size])) {
            return error;
        }
    }
    return {};
}

// The root sends to everybody: P · (L + n · B) there, L + n · B elsewhere.
Error scatter_linear(const Channel& channel, const Blocks& blocks, const Buffer& own, int root) {
    if (channel.rank() != root) {
        return own.bytes() > 0 ? channel.receive(own, root) : Error();
    }
    Batch batch(channel);
    for (int rank = 0; rank < channel.size(); ++rank) {
        const Buffer block = blocks[rank];
        if (rank != root && block.bytes() > 0) {
            batch.start_send(block, rank);
        }
    }
    Error copied = copy(blocks[root], own);
    Error sent = batch.finish();
    if (copied) {
        sent.drop();
        return copied;
    }
    return sent;
}

// A binomial tree of packed blocks: ⌈log2 P⌉ · L + P · n · B at the root. Blocks of one size.
Error scatter_binomial(const Channel& channel, const Blocks& blocks, const Buffer& own, int root) {
    const int size = channel.size();
    const int virtual_rank = (channel.rank() - root + size) % size;
    const Subtree subtree(virtual_rank, size);
    const MPI_Count block = own.bytes();
    const int parent = (virtual_rank - subtree.distance + root) % size;
    if (subtree.ranks == 1 && virtual_rank != 0) {
        return channel.receive(own, parent);
    }
    Scratch packed_blocks; // of this subtree, by virtual rank
    if (Error error = packed_blocks.allocate(block * subtree.ranks)) {
        return error;
    }
    std::byte* data = packed_blocks.data();
    if (virtual_rank == 0) {
        for (int other = 0; other < size; ++other) {
            if (Error error =
                    copy(blocks[(other + root) % size], bytes_of(data + other * block, block))) {
                return error;
            }
        }
    } else if (Error error = channel.receive(bytes_of(data, subtree.ranks * block), parent)) {
        return error;
    }
    for (int distance = subtree.distance / 2; distance > 0; distance /= 2) {
        const int child = virtual_rank + distance;
        if (child < size) {
            const Subtree below(child, size);
            if (Error error = channel.send(bytes_of(data + distance * block, below.ranks * block),
                                           (child + root) % size)) {
                return error;
            }
        }
    }
    return copy(bytes_of(data, block), own);
}

} // namespace warren::coll
