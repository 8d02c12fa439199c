#include "mpi/coll/collectives.hpp"

#include <algorithm>
#include <type_traits>

#include "base/invariant.hpp"
#include "mpi/coll/choice.hpp"
#include "mpi/coll/levels.hpp"
#include "mpi/coll/shared_data.hpp"
#include "mpi/coll/shared_direct.hpp"
#include "mpi/coll/short_blocks.hpp"

namespace warren::coll {

template <typename Operation>
bool Collectives::by_sharing(Path path, Error& outcome, const Operation& operation) {
    if (path == Path::messages) {
        return false;
    }
    if constexpr (std::is_invocable_v<Operation, SharedDirect&>) {
        if (path == Path::direct) {
            SharedDirect data(engine_, communicator_);
            if (operation(data)) {
                outcome = data.outcome();
                return true;
            }
        }
    }
    SharedData data(engine_, communicator_);
    if (!operation(data)) {
        return false;
    }
    outcome = data.outcome();
    return true;
}

Error Collectives::pass(Tag kind, int root, OpKind op) {
    if (slot_pool::has_slot(communicator_)) {
        SmallCollectives slot(engine_, communicator_);
        slot.pass(kind, root, op);
        return slot.outcome();
    }
    return {};
}

Error Collectives::barrier() {
    if (alone()) {
        return {};
    }
    if (choose(Tag::barrier, 0, [] { return true; }) == Path::lines) [[likely]] {
        SmallCollectives slot(engine_, communicator_);
        slot.barrier();
        return slot.outcome();
    }
    if (Levels* levels = find_levels(engine_, communicator_)) {
        return TwoLevels(engine_, communicator_, *levels).barrier();
    }
    Immediate steps(engine_, communicator_);
    coll::barrier(steps);
    return steps.end();
}

Error Collectives::bcast(const message::Buffer& buffer, int root) {
    const MPI_Count bytes = buffer.bytes();
    if (alone()) {
        return {};
    }
    if (bytes == 0 && !communicator_.inter()) [[unlikely]] {
        return pass(Tag::bcast, root);
    }
    const Path path = choose(Tag::bcast, bytes, [&] { return buffer.type->contiguous; });
    if (path == Path::lines) {
        // Datatypes may differ between ranks, but not the number of bytes.
        alignas(16) std::byte packed_data[line_data_bytes];
        const bool direct = buffer.type->contiguous;
        void* data = direct ? buffer.base : packed_data;
        if (!direct && communicator_.rank() == root) {
            buffer.type->pack(buffer.base, buffer.count, data);
        }
        SmallCollectives slot(engine_, communicator_);
        slot.bcast(data, bytes, root);
        if (!direct && communicator_.rank() != root) {
            buffer.type->unpack(data, bytes, buffer.base, buffer.count);
        }
        return slot.outcome();
    }
    if (path == Path::short_blocks) {
        return ShortBlocks(engine_, communicator_).bcast(buffer.base, bytes, root);
    }
    Error outcome;
    if (by_sharing(path, outcome, [&](auto& data) { return data.bcast(buffer, root); })) {
        return outcome;
    }
    if (Levels* levels = find_levels(engine_, communicator_)) {
        return TwoLevels(engine_, communicator_, *levels).bcast(buffer, root);
    }
    Immediate steps(engine_, communicator_, {.bytes = bytes, .root = root});
    coll::bcast(steps, buffer, root);
    return steps.end();
}

Error Collectives::gather(const message::Buffer& own, const Blocks& blocks, int root) {
    const MPI_Count bytes = own.bytes();
    if (bytes == 0) [[unlikely]] {
        return pass(Tag::gather, root);
    }
    const bool receives = communicator_.rank() == root;
    const Path path = choose(Tag::gather, bytes, [&] {
        return own.type->contiguous && (!receives || blocks.solid(bytes));
    });
    if (path == Path::short_blocks) {
        return ShortBlocks(engine_, communicator_)
            .gather(own.base, receives ? blocks.begin() : nullptr, bytes, root);
    }
    Error outcome;
    if (by_sharing(path, outcome, [&](auto& data) {
            if (receives) {
                copy(own, blocks[root]);
            }
            return data.gather(own, blocks, root);
        })) {
        return outcome;
    }
    Immediate steps(engine_, communicator_, {.bytes = bytes, .root = root});
    coll::gather(steps, own, blocks, root);
    return steps.end();
}

Error Collectives::scatter(const Blocks& blocks, const message::Buffer& own, int root) {
    const MPI_Count bytes = own.bytes();
    if (bytes == 0) [[unlikely]] {
        return pass(Tag::scatter, root);
    }
    const bool sends = communicator_.rank() == root;
    const Path path = choose(Tag::scatter, bytes, [&] {
        return own.type->contiguous && (!sends || blocks.solid(bytes));
    });
    if (path == Path::short_blocks) {
        return ShortBlocks(engine_, communicator_)
            .scatter(sends ? blocks.begin() : nullptr, own.base, bytes, root);
    }
    Error outcome;
    if (by_sharing(path, outcome, [&](auto& data) { return data.scatter(blocks, own, root); })) {
        if (sends) {
            copy(blocks[root], own);
        }
        return outcome;
    }
    Immediate steps(engine_, communicator_, {.bytes = bytes, .root = root});
    coll::scatter(steps, blocks, own, root);
    return steps.end();
}

Error Collectives::allgather(const message::Buffer& own, const Blocks& blocks) {
    const MPI_Count bytes = own.bytes();
    if (bytes == 0) [[unlikely]] {
        return pass(Tag::allgather);
    }
    const Path path =
        choose(Tag::allgather, bytes, [&] { return own.type->contiguous && blocks.solid(bytes); });
    if (path == Path::short_blocks) {
        return ShortBlocks(engine_, communicator_).allgather(own.base, blocks.begin(), bytes);
    }
    Error outcome;
    if (by_sharing(path, outcome, [&](auto& data) { return data.allgather(own, blocks); })) {
        return outcome;
    }
    Immediate steps(engine_, communicator_, {.bytes = bytes});
    coll::allgather(steps, own, blocks);
    return steps.end();
}

Error Collectives::allgatherv(const message::Buffer& own, const Blocks& blocks) {
    MPI_Count most = 0;
    for (int rank = 0; rank < communicator_.size(); ++rank) {
        most = std::max(most, blocks[rank].bytes());
    }
    if (most == 0) [[unlikely]] {
        return pass(Tag::allgather);
    }
    Error outcome;
    if (by_sharing(choose(Tag::allgather, most, [] { return false; }), outcome,
                   [&](auto& data) { return data.allgather(own, blocks); })) {
        return outcome;
    }
    Immediate steps(engine_, communicator_, {.bytes = most});
    coll::allgatherv(steps, own, blocks);
    return steps.end();
}

Error Collectives::alltoall(const Blocks& out, const Blocks& in) {
    const int rank = communicator_.rank();
    const bool replaces = out[rank].same_place(in[rank]);
    const MPI_Count bytes = in[rank].bytes();
    if (bytes == 0) [[unlikely]] {
        return pass(Tag::alltoall);
    }
    const Path path = choose(Tag::alltoall, bytes, [&] {
        return in.solid(bytes) && out.solid(bytes) &&
               ShortBlocks::fits_alltoall(bytes, communicator_.size());
    });
    if (path == Path::short_blocks) {
        return ShortBlocks(engine_, communicator_).alltoall(out.begin(), in.begin(), bytes);
    }
    Error outcome;
    if (by_sharing(path, outcome, [&](auto& data) { return data.alltoall(out, in); })) {
        return outcome;
    }
    Immediate steps(engine_, communicator_, {.bytes = bytes});
    if (replaces) {
        coll::alltoall_replace(steps, in);
    } else {
        coll::alltoall(steps, out, in);
    }
    return steps.end();
}

Error Collectives::reduce(const void* in, void* out, MPI_Count count,
                          const datatype::Datatype& type, const Op& op, int root) {
    if (count == 0 && !communicator_.inter()) [[unlikely]] {
        return pass(Tag::reduce, root, op.kind());
    }
    if (alone()) {
        copy({const_cast<void*>(in), count, &type}, {out, count, &type});
        return {};
    }
    const Path path = choose(Tag::reduce, count, type);
    if (path == Path::lines) {
        SmallCollectives slot(engine_, communicator_);
        slot.reduce(in, out, count, type, op, root);
        return slot.outcome();
    }
    if (path == Path::short_blocks) {
        return ShortBlocks(engine_, communicator_).reduce({count, type, op}, in, out, root);
    }
    Error outcome;
    if (by_sharing(path, outcome, [&](auto& data) {
            return data.reduce({count, type, op}, in, out, root);
        })) {
        return outcome;
    }
    if (op.commutative()) {
        if (Levels* levels = find_levels(engine_, communicator_)) {
            return TwoLevels(engine_, communicator_, *levels)
                .reduce({count, type, op}, in, out, root);
        }
    }
    Immediate steps(engine_, communicator_,
                    {.bytes = count * type.size, .root = root, .op = op.kind()});
    coll::reduce(steps, {count, type, op}, in, out, root);
    return steps.end();
}

Error Collectives::allreduce(const void* in, void* out, MPI_Count count,
                             const datatype::Datatype& type, const Op& op) {
    if (count == 0 && !communicator_.inter()) [[unlikely]] {
        return pass(Tag::allreduce, 0, op.kind());
    }
    if (alone()) {
        copy({const_cast<void*>(in), count, &type}, {out, count, &type});
        return {};
    }
    const Path path = choose(Tag::allreduce, count, type);
    if (path == Path::lines) [[likely]] {
        SmallCollectives slot(engine_, communicator_);
        slot.allreduce(in, out, count, type, op);
        return slot.outcome();
    }
    if (path == Path::short_blocks) {
        return ShortBlocks(engine_, communicator_).allreduce({count, type, op}, in, out);
    }
    Error outcome;
    if (by_sharing(path, outcome, [&](auto& data) {
            return data.allreduce({count, type, op}, in, out);
        })) {
        return outcome;
    }
    if (op.commutative()) {
        if (Levels* levels = find_levels(engine_, communicator_)) {
            return TwoLevels(engine_, communicator_, *levels).allreduce({count, type, op}, in, out);
        }
    }
    Immediate steps(engine_, communicator_, {.bytes = count * type.size, .op = op.kind()});
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
    if (most == 0) [[unlikely]] {
        return pass(Tag::reduce_scatter, 0, op.kind());
    }
    Error outcome;
    if (by_sharing(choose(Tag::reduce_scatter, most, type), outcome, [&](SharedData& data) {
            return data.reduce_scatter({total, type, op}, in, out, counts);
        })) {
        return outcome;
    }
    Immediate steps(engine_, communicator_, {.bytes = total * type.size, .op = op.kind()});
    coll::reduce_scatter(steps, in, out, counts, type, op);
    return steps.end();
}

Error Collectives::scan(const Reduction& reduction, const void* in, void* out, bool exclusive) {
    if (reduction.count == 0) [[unlikely]] {
        return pass(Tag::scan, exclusive ? 1 : 0, reduction.op.kind());
    }
    Error outcome;
    if (by_sharing(choose(Tag::scan, reduction.count, reduction.type), outcome,
                   [&](SharedData& data) { return data.scan(reduction, in, out, exclusive); })) {
        return outcome;
    }
    Immediate steps(engine_, communicator_,
                    {.bytes = reduction.count * reduction.type.size,
                     .root = exclusive ? 1 : 0,
                     .op = reduction.op.kind()});
    coll::scan(steps, reduction, in, out, exclusive);
    return steps.end();
}

Error Collectives::agree(Error own, const char* others, std::span<std::int64_t> values) {
    WARREN_INVARIANT(values.size() <= most_agreed, "agree() takes up to most_agreed values");
    std::int64_t mine[1 + most_agreed] = {own ? own.error_class() : MPI_SUCCESS};
    std::int64_t largest[1 + most_agreed] = {};
    std::copy(values.begin(), values.end(), mine + 1);
    Error error = allreduce(mine, largest, static_cast<MPI_Count>(1 + values.size()),
                            datatype::basic(MPI_INT64_T), Op(OpKind::max));
    if (own) {
        error.drop();
        return own;
    }
    if (!error && largest[0] != MPI_SUCCESS) {
        return fail(static_cast<int>(largest[0]), "%s", others);
    }
    std::copy_n(largest + 1, values.size(), values.begin());
    return error;
}

} // namespace warren::coll
