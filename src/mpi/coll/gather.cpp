// Gather and scatter by messages.

#include "mpi/coll/algorithms.hpp"

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
void gather_linear(Steps& steps, const Buffer& own, const Blocks& blocks, int root) {
    if (steps.rank() != root) {
        if (own.bytes() > 0) {
            steps.send(own, root);
        }
        return;
    }
    for (int rank = 0; rank < steps.size(); ++rank) {
        const Buffer block = blocks[rank];
        if (rank != root && block.bytes() > 0) {
            steps.start_receive(block, rank);
        }
    }
    steps.copy(own, blocks[root]);
    steps.finish();
}

// A binomial tree of packed blocks: ⌈log2 P⌉ · L + P · n · B at the root. Blocks of one size.
void gather_binomial(Steps& steps, const Buffer& own, const Blocks& blocks, int root) {
    const int size = steps.size();
    const int virtual_rank = (steps.rank() - root + size) % size;
    const Subtree subtree(virtual_rank, size);
    const MPI_Count block = own.bytes();
    if (subtree.ranks == 1 && virtual_rank != 0) {
        return steps.send(own, (virtual_rank - subtree.distance + root) % size);
    }
    // Blocks of this subtree, by virtual rank.
    std::byte* data = steps.scratch(block * subtree.ranks);
    steps.copy(own, bytes_of(data, block));
    for (int distance = 1; distance < subtree.distance && distance < subtree.ranks; distance *= 2) {
        const int child = virtual_rank + distance;
        const Subtree below(child, size);
        steps.receive(bytes_of(data + distance * block, below.ranks * block),
                      (child + root) % size);
    }
    if (virtual_rank != 0) {
        return steps.send(bytes_of(data, subtree.ranks * block),
                          (virtual_rank - subtree.distance + root) % size);
    }
    for (int other = 0; other < size; ++other) {
        steps.copy(bytes_of(data + other * block, block), blocks[(other + root) % size]);
    }
}

// The root sends to everybody: P · (L + n · B) there, L + n · B elsewhere.
void scatter_linear(Steps& steps, const Blocks& blocks, const Buffer& own, int root) {
    if (steps.rank() != root) {
        if (own.bytes() > 0) {
            steps.receive(own, root);
        }
        return;
    }
    for (int rank = 0; rank < steps.size(); ++rank) {
        const Buffer block = blocks[rank];
        if (rank != root && block.bytes() > 0) {
            steps.start_send(block, rank);
        }
    }
    steps.copy(blocks[root], own);
    steps.finish();
}

// A binomial tree of packed blocks: ⌈log2 P⌉ · L + P · n · B at the root. Blocks of one size.
void scatter_binomial(Steps& steps, const Blocks& blocks, const Buffer& own, int root) {
    const int size = steps.size();
    const int virtual_rank = (steps.rank() - root + size) % size;
    const Subtree subtree(virtual_rank, size);
    const MPI_Count block = own.bytes();
    const int parent = (virtual_rank - subtree.distance + root) % size;
    if (subtree.ranks == 1 && virtual_rank != 0) {
        return steps.receive(own, parent);
    }
    // Blocks of this subtree, by virtual rank.
    std::byte* data = steps.scratch(block * subtree.ranks);
    if (virtual_rank == 0) {
        for (int other = 0; other < size; ++other) {
            steps.copy(blocks[(other + root) % size], bytes_of(data + other * block, block));
        }
    } else {
        steps.receive(bytes_of(data, subtree.ranks * block), parent);
    }
    for (int distance = subtree.distance / 2; distance > 0; distance /= 2) {
        const int child = virtual_rank + distance;
        if (child < size) {
            const Subtree below(child, size);
            steps.send(bytes_of(data + distance * block, below.ranks * block),
                       (child + root) % size);
        }
    }
    steps.copy(bytes_of(data, block), own);
}

} // namespace warren::coll
