#include "coll/collectives.hpp"

#include "coll/algorithms.hpp"
#include "coll/scratch.hpp"
#include "coll/shared.hpp"

namespace warren::coll {

namespace {

// Up to here the number of messages decides, beyond it the bytes moved.
constexpr MPI_Count short_allreduce_bytes = 16 * 1024;
constexpr MPI_Count short_allgather_bytes = 64 * 1024; // of all blocks
constexpr MPI_Count short_block_bytes = 4 * 1024;      // of gathers and scatters
constexpr MPI_Count short_reduce_scatter_bytes = 16 * 1024;

// Ranks up to which a chain or a fan is as quick as a tree.
constexpr int few_ranks = 4;

} // namespace

Error Collectives::barrier() {
    if (communicator_.size() == 1) {
        return {};
    }
    if (SharedSlot::has_place(communicator_)) [[likely]] {
        SharedSlot(engine_, communicator_).barrier();
        return {};
    }
    return barrier_dissemination(Channel(engine_, communicator_, Tag::barrier));
}

Error Collectives::bcast(const message::Buffer& buffer, int root) {
    const MPI_Count bytes = buffer.bytes();
    if (communicator_.size() == 1 || bytes == 0) {
        return {};
    }
    if (bytes <= shared_bytes && SharedSlot::has_place(communicator_)) {
        // Datatypes may differ between ranks, but not the number of bytes.
        alignas(16) std::byte packed_data[shared_bytes];
        const bool direct = buffer.type->contiguous;
        void* data = direct ? buffer.base : packed_data;
        if (!direct && communicator_.rank() == root) {
            buffer.type->pack(buffer.base, buffer.count, data);
        }
        SharedSlot(engine_, communicator_).bcast(data, bytes, root);
        if (!direct && communicator_.rank() != root) {
            buffer.type->unpack(data, bytes, buffer.base, buffer.count);
        }
        return {};
    }
    return bcast_binomial(Channel(engine_, communicator_, Tag::bcast), buffer, root);
}

Error Collectives::gather(const message::Buffer& own, const Blocks& blocks, int root) {
    if (communicator_.size() > few_ranks && !crowded() && own.bytes() <= short_block_bytes &&
        own.bytes() > 0) {
        return gather_binomial(Channel(engine_, communicator_, Tag::gather), own, blocks, root);
    }
    return gatherv(own, blocks, root);
}

Error Collectives::gatherv(const message::Buffer& own, const Blocks& blocks, int root) {
    return gather_linear(Channel(engine_, communicator_, Tag::gather), own, blocks, root);
}

Error Collectives::scatter(const Blocks& blocks, const message::Buffer& own, int root) {
    if (communicator_.size() > few_ranks && !crowded() && own.bytes() <= short_block_bytes &&
        own.bytes() > 0) {
        return scatter_binomial(Channel(engine_, communicator_, Tag::scatter), blocks, own, root);
    }
    return scatterv(blocks, own, root);
}

Error Collectives::scatterv(const Blocks& blocks, const message::Buffer& own, int root) {
    return scatter_linear(Channel(engine_, communicator_, Tag::scatter), blocks, own, root);
}

Error Collectives::allgather(const Blocks& blocks) {
    const MPI_Count total = blocks[0].bytes() * communicator_.size();
    if (communicator_.size() == 1 || total == 0) {
        return {};
    }
    const Channel channel(engine_, communicator_, Tag::allgather);
    if (total > short_allgather_bytes) {
        return allgather_ring(channel, blocks);
    }
    return crowded() ? allgather_by_root(channel, blocks) : allgather_bruck(channel, blocks);
}

Error Collectives::allgatherv(const Blocks& blocks) {
    if (communicator_.size() == 1) {
        return {};
    }
    const Channel channel(engine_, communicator_, Tag::allgather);
    MPI_Count total = 0;
    for (int rank = 0; rank < communicator_.size(); ++rank) {
        total += blocks[rank].bytes();
    }
    return total > short_allgather_bytes ? allgather_ring(channel, blocks)
                                         : allgather_by_root(channel, blocks);
}

Error Collectives::alltoall(const Blocks& out, const Blocks& in) {
    return alltoall_batches(Channel(engine_, communicator_, Tag::alltoall), out, in);
}

Error Collectives::alltoall_in_place(const Blocks& blocks) {
    if (communicator_.size() == 1) {
        return {};
    }
    return coll::alltoall_in_place(Channel(engine_, communicator_, Tag::alltoall), blocks);
}

bool Collectives::fits_slot(MPI_Count count, const datatype::Datatype& type) const {
    return type.contiguous && count * type.size <= shared_bytes &&
           SharedSlot::has_place(communicator_);
}

Error Collectives::reduce(const void* in, void* out, MPI_Count count,
                          const datatype::Datatype& type, const Op& op, int root) {
    if (count == 0) {
        return {};
    }
    if (communicator_.size() == 1) {
        return copy({const_cast<void*>(in), count, &type}, {out, count, &type});
    }
    if (fits_slot(count, type)) {
        SharedSlot(engine_, communicator_).reduce(in, out, count, type, op, root);
        return {};
    }
    return reduce_binomial(Channel(engine_, communicator_, Tag::reduce), {count, type, op}, in, out,
                           root);
}

Error Collectives::allreduce(const void* in, void* out, MPI_Count count,
                             const datatype::Datatype& type, const Op& op) {
    if (count == 0) {
        return {};
    }
    if (communicator_.size() == 1) {
        return copy({const_cast<void*>(in), count, &type}, {out, count, &type});
    }
    if (fits_slot(count, type)) [[likely]] {
        SharedSlot(engine_, communicator_).allreduce(in, out, count, type, op);
        return {};
    }
    const Channel channel(engine_, communicator_, Tag::allreduce);
    const Reduction reduction = {count, type, op};
    if (crowded()) {
        return allreduce_by_root(channel, reduction, in, out);
    }
    if (count * type.size > short_allreduce_bytes && op.commutative() &&
        count >= communicator_.size()) {
        return allreduce_halving(channel, reduction, in, out);
    }
    return allreduce_doubling(channel, reduction, in, out);
}

Error Collectives::reduce_scatter(const void* in, void* out, const MPI_Count counts[],
                                  const datatype::Datatype& type, const Op& op) {
    MPI_Count total = 0;
    for (int rank = 0; rank < communicator_.size(); ++rank) {
        total += counts[rank];
    }
    if (total == 0) {
        return {};
    }
    const Reduction reduction = {total, type, op};
    const Channel channel(engine_, communicator_, Tag::reduce_scatter);
    if (op.commutative() && !crowded() && total * type.size > short_reduce_scatter_bytes) {
        return reduce_scatter_pairwise(channel, reduction, in, out, counts);
    }
    return reduce_scatter_by_root(channel, reduction, in, out, counts);
}

Error Collectives::scan(const void* in, void* out, MPI_Count count, const datatype::Datatype& type,
                        const Op& op, bool exclusive) {
    if (count == 0) {
        return {};
    }
    const Channel channel(engine_, communicator_, Tag::scan);
    const Reduction reduction = {count, type, op};
    if (crowded() || communicator_.size() <= few_ranks) {
        return scan_chain(channel, reduction, in, out, exclusive);
    }
    return scan_doubling(channel, reduction, in, out, exclusive);
}

} // namespace warren::coll
