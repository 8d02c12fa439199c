#include "mpi/coll/scratch.hpp"

#include <algorithm>
#include <cstring>

namespace warren::coll {

namespace {
// Elements are combined by vector instructions: aligned to the widest.
constexpr std::size_t alignment_bytes = 64;
} // namespace

Error Scratch::allocate(MPI_Count bytes) {
    const std::size_t size =
        (static_cast<std::size_t>(bytes) + alignment_bytes - 1) / alignment_bytes * alignment_bytes;
    memory_.reset(static_cast<std::byte*>(
        std::aligned_alloc(alignment_bytes, size > 0 ? size : alignment_bytes)));
    if (memory_ == nullptr) {
        return fail(MPI_ERR_NO_MEM, "no memory for %lld bytes of a collective operation",
                    static_cast<long long>(bytes));
    }
    base_ = memory_.get();
    return {};
}

Error Scratch::allocate(MPI_Count count, const datatype::Datatype& type) {
    // Extents may be negative: element 0 is then the highest. Whole extents, since functions of
    // programs assign whole structures, padding included.
    const MPI_Count last = count > 1 ? (count - 1) * type.extent : 0;
    const MPI_Count low =
        std::min(type.lower_bound, type.true_lower_bound) + std::min<MPI_Count>(last, 0);
    const MPI_Count high =
        std::max(type.lower_bound + type.extent, type.true_lower_bound + type.true_extent) +
        std::max<MPI_Count>(last, 0);
    if (Error error = allocate(high - low)) {
        return error;
    }
    base_ = memory_.get() - low;
    count_ = count;
    type_ = &type;
    return {};
}

void copy(const message::Buffer& from, const message::Buffer& to) {
    const MPI_Count bytes = std::min(from.bytes(), to.bytes());
    if (bytes == 0 || from.same_place(to)) {
        return;
    }
    datatype::copy_data(from, to, 0, bytes);
}

} // namespace warren::coll
