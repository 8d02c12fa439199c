#include "coll/collectives.hpp"

#include "coll/choice.hpp"
#include "coll/immediate.hpp"
#include "coll/shared.hpp"

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
    Immediate steps(engine_, communicator_);
    coll::bcast(steps, buffer, root);
    return steps.end();
}

Error Collectives::allgather(const Blocks& blocks) {
    Immediate steps(engine_, communicator_);
    coll::allgather(steps, blocks);
    return steps.end();
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
    Immediate steps(engine_, communicator_);
    coll::allreduce(steps, {count, type, op}, in, out);
    return steps.end();
}

} // namespace warren::coll
