#include "mpi/rma/target_memory.hpp"

namespace warren::rma {

Error AccessibleMemory::accumulate(const Accumulating& what, void* before, MPI_Count first,
                                   MPI_Count bytes) {
    const SharedLock lock(mutex_, user_);
    if (Error error = read(what.its.packed(), first, bytes)) {
        return error;
    }
    if (before != nullptr) {
        std::memcpy(before, what.its.packed(), static_cast<std::size_t>(bytes));
    }
    if (!changes_target(what.op)) {
        return {};
    }
    what.its.unpack(bytes);
    combine(what.op, what.basic, what.its.native(), what.own.native(), what.its.native(),
            bytes / what.basic.size);
    what.its.pack(bytes);
    return write(what.its.packed(), first, bytes);
}

Error AccessibleMemory::compare_and_swap(const void* from, const void* compared, void* before) {
    const auto bytes = static_cast<std::size_t>(layout_.type->size);
    const SharedLock lock(mutex_, user_);
    if (Error error = read(before, 0, layout_.type->size)) {
        return error;
    }
    return std::memcmp(before, compared, bytes) == 0 ? write(from, 0, layout_.type->size) : Error();
}

} // namespace warren::rma
