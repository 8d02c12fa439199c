#include "coll/collectives.hpp"

#include <algorithm>

#include "coll/choice.hpp"
#include "coll/immediate.hpp"
#include "coll/shared.hpp"
#include "coll/shared_data.hpp"

namespace warren::coll {

Error Collectives::barrier() {
    if (alone()) {
        return {};
    }
    if (SharedSlot::has_place(communicator_)) [[likely]] {
        SharedSlot(engine_, communicator_).barrier();
        return {};
    }
    Immediate steps(engine_, communicator_);
    coll::barrier(steps);
    return steps.end();
}

Error Collectives::bcast(const message::Buffer& buffer, int root) {
    const MPI_Count bytes = buffer.bytes();
    if (alone() || (bytes == 0 && !communicator_.inter())) {
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
    if (shares(Tag::bcast, bytes) && SharedData(engine_, communicator_).bcast(buffer, root)) {
        return {};
    }
    Immediate steps(engine_, communicator_);
    coll::bcast(steps, buffer, root);
    return steps.end();
}

Error Collectives::gather(const message::Buffer& own, const Blocks& blocks, int root) {
    if (own.bytes() == 0) {
        return {};
    }
    if (shares(Tag::gather, own.bytes())) {
        if (communicator_.rank() == root) {
            if (Error error = copy(own, blocks[root])) {
                return error;
            }
        }
        if (SharedData(engine_, communicator_).gather(own, blocks, root)) {
            return {};
        }
    }
    Immediate steps(engine_, communicator_);
    coll::gather(steps, own, blocks, root);
    return steps.end();
}

Error Collectives::scatter(const Blocks& blocks, const message::Buffer& own, int root) {
    if (own.bytes() == 0) {
        return {};
    }
    if (shares(Tag::scatter, own.bytes()) &&
        SharedData(engine_, communicator_).scatter(blocks, own, root)) {
        return communicator_.rank() == root ? copy(blocks[root], own) : Error();
    }
    Immediate steps(engine_, communicator_);
    coll::scatter(steps, blocks, own, root);
    return steps.end();
}

Error Collectives::allgather(const Blocks& blocks) {
    if (shares(Tag::allgather, blocks[0].bytes()) &&
        SharedData(engine_, communicator_).allgather(blocks)) {
        return {};
    }
    Immediate steps(engine_, communicator_);
    coll::allgather(steps, blocks);
    return steps.end();
}

Error Collectives::allgatherv(const Blocks& blocks) {
    MPI_Count most = 0;
    for (int rank = 0; rank < communicator_.size(); ++rank) {
        most = std::max(most, blocks[rank].bytes());
    }
    if (shares(Tag::allgather, most) && SharedData(engine_, communicator_).allgather(blocks)) {
        return {};
    }
    Immediate steps(engine_, communicator_);
    coll::allgatherv(steps, blocks);
    return steps.end();
}

Error Collectives::alltoall(const Blocks& out, const Blocks& in) {
    const int rank = communicator_.rank();
    const bool replaces = out[rank].base == in[rank].base;
    if (shares(Tag::alltoall, in[rank].bytes())) {
        if (Error error = copy(out[rank], in[rank])) {
            return error;
        }
        if (SharedData(engine_, communicator_).alltoall(out, in)) {
            return {};
        }
    }
    Immediate steps(engine_, communicator_);
    if (replaces) {
        coll::alltoall_replace(steps, in);
    } else {
        coll::alltoall(steps, out, in);
    }
    return steps.end();
}

bool Collectives::shares(Tag operation, MPI_Count bytes) const {
    return bytes > 0 && SharedSlot::has_place(communicator_) && communicator_.size() > 1 &&
           by_shared_memory(operation, engine_.rank(), communicator_.size(), bytes);
}

bool Collectives::fits_slot(MPI_Count count, const datatype::Datatype& type) const {
    return type.contiguous && count * type.size <= shared_bytes &&
           SharedSlot::has_place(communicator_);
}

Error Collectives::reduce(const void* in, void* out, MPI_Count count,
                          const datatype::Datatype& type, const Op& op, int root) {
    if (count == 0 && !communicator_.inter()) {
        return {};
    }
    if (alone()) {
        return copy({const_cast<void*>(in), count, &type}, {out, count, &type});
    }
    if (fits_slot(count, type)) {
        SharedSlot(engine_, communicator_).reduce(in, out, count, type, op, root);
        return {};
    }
    if (type.contiguous && shares(Tag::reduce, count * type.size) &&
        SharedData(engine_, communicator_).reduce({count, type, op}, in, out, root)) {
        return {};
    }
    Immediate steps(engine_, communicator_);
    coll::reduce(steps, {count, type, op}, in, out, root);
    return steps.end();
}

Error Collectives::allreduce(const void* in, void* out, MPI_Count count,
                             const datatype::Datatype& type, const Op& op) {
    if (count == 0 && !communicator_.inter()) {
        return {};
    }
    if (alone()) {
        return copy({const_cast<void*>(in), count, &type}, {out, count, &type});
    }
    if (fits_slot(count, type)) [[likely]] {
        SharedSlot(engine_, communicator_).allreduce(in, out, count, type, op);
        return {};
    }
    if (type.contiguous && shares(Tag::allreduce, count * type.size) &&
        SharedData(engine_, communicator_).allreduce({count, type, op}, in, out)) {
        return {};
    }
    Immediate steps(engine_, communicator_);
    coll::allreduce(steps, {count, type, op}, in, out);
    return steps.end();
}

Error Collectives::reduce_scatter(const void* in, void* out, const MPI_Count counts[],
                                  const datatype::Datatype& type, const Op& op) {
    MPI_Count total = 0;
    MPI_Count most = 0;
    for (int rank = 0; rank < communicator_.size(); ++rank) {
        total += counts[rank];
        most = std::max(most, counts[rank]);
    }
    if (type.contiguous && shares(Tag::reduce_scatter, most * type.size) &&
        SharedData(engine_, communicator_).reduce_scatter({total, type, op}, in, out, counts)) {
        return {};
    }
    Immediate steps(engine_, communicator_);
    coll::reduce_scatter(steps, in, out, counts, type, op);
    return steps.end();
}

Error Collectives::scan(const Reduction& reduction, const void* in, void* out, bool exclusive) {
    if (reduction.type.contiguous && shares(Tag::scan, reduction.count * reduction.type.size) &&
        SharedData(engine_, communicator_).scan(reduction, in, out, exclusive)) {
        return {};
    }
    Immediate steps(engine_, communicator_);
    coll::scan(steps, reduction, in, out, exclusive);
    return steps.end();
}

} // namespace warren::coll
