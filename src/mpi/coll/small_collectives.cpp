#include "mpi/coll/small_collectives.hpp"

#include <cstring>

#include "mpi/coll/unlocked_op.hpp"

namespace warren::coll {

void SmallCollectives::combine(void* result, const std::byte* own, std::uint64_t operation,
                               MPI_Count count, const datatype::Datatype& type, const Op& op) {
    const SlotMember& slot = ring_.slot();
    const auto bytes = static_cast<std::size_t>(count * type.size);
    alignas(line_bytes) std::byte total[line_data_bytes];
    for (int r = slot.size - 1; r >= 0; --r) {
        if (slot.flat && r != slot.rank) {
            flat::wait(ring_.call(), r, operation);
            if (unequal()) [[unlikely]] {
                return; // it may not have written yet
            }
        }
        const std::byte* operand =
            r == slot.rank && own != nullptr ? own : ring_.line_data(operation, r);
        if (r == slot.size - 1) {
            std::memcpy(total, operand, bytes);
        } else {
            apply_unlocked(slot.node_rank, op, operand, total, count, type);
        }
    }
    std::memcpy(result, total, bytes);
}

void SmallCollectives::barrier() {
    CallAgreement& call = ring_.call();
    call.begin(Tag::barrier, 0);
    const std::uint64_t operation = ring_.begin_operation();
    if (!ring_.settle(operation)) [[unlikely]] {
        return;
    }
    if (ring_.is_flat()) {
        flat::arrive(call, operation);
        flat::wait_for_all(call, operation);
    } else if (counted::arrive(call, operation)) {
        counted::publish(call, operation);
    } else {
        counted::wait_published(call, operation);
    }
    ring_.all_have_arrived(operation);
}

void SmallCollectives::allreduce(const void* in, void* out, MPI_Count count,
                                 const datatype::Datatype& type, const Op& op) {
    CallAgreement& call = ring_.call();
    call.begin(Tag::allreduce, count * type.size, 0, op.kind());
    const std::uint64_t operation = ring_.begin_operation();
    const auto bytes = static_cast<std::size_t>(count * type.size);
    if (!ring_.settle(operation)) [[unlikely]] {
        return;
    }
    std::memcpy(ring_.line_data(operation, ring_.rank()), in, bytes);
    if (ring_.is_flat()) {
        flat::arrive(call, operation);
        flat::wait_for_all(call, operation);
        combine(out, static_cast<const std::byte*>(in), operation, count, type, op);
    } else {
        std::byte* result = ring_.published_data(operation);
        if (counted::arrive(call, operation)) {
            if (!unequal()) [[likely]] {
                combine(result, nullptr, operation, count, type, op);
            }
            counted::publish(call, operation);
        } else {
            counted::wait_published(call, operation);
        }
        if (!unequal()) [[likely]] {
            std::memcpy(out, result, bytes);
        }
    }
    ring_.all_have_arrived(operation);
}

void SmallCollectives::reduce(const void* in, void* out, MPI_Count count,
                              const datatype::Datatype& type, const Op& op, int root) {
    ring_.call().begin(Tag::reduce, count * type.size, root, op.kind());
    const auto bytes = static_cast<std::size_t>(count * type.size);
    ring_.to_root(
        root,
        [&](std::uint64_t operation) {
            std::memcpy(ring_.line_data(operation, ring_.rank()), in, bytes);
        },
        [&](std::uint64_t operation) {
            combine(out, static_cast<const std::byte*>(in), operation, count, type, op);
        });
}

void SmallCollectives::bcast(void* data, MPI_Count bytes, int root) {
    ring_.call().begin(Tag::bcast, bytes, root);
    const auto size = static_cast<std::size_t>(bytes);
    const auto message = [&](std::uint64_t operation) {
        return ring_.is_flat() ? ring_.line_data(operation, root) : ring_.published_data(operation);
    };
    ring_.from_root(
        root, [&](std::uint64_t operation) { std::memcpy(message(operation), data, size); },
        [&](std::uint64_t operation) { std::memcpy(data, message(operation), size); });
}

void SmallCollectives::pass(Tag kind, int root, OpKind op) {
    ring_.call().begin(kind, 0, root, op);
    ring_.arrive_aside();
    const SlotMember& slot = ring_.slot();
    if (!slot.flat) {
        ring_.call().tell_before_leaving();
    }
    slot.ring(slot.next());
    slot.ring(slot.previous());
}

void SmallCollectives::refuse() {
    ring_.call().begin_refused();
    ring_.arrive_aside();
    ring_.slot().ring_others();
}

} // namespace warren::coll
