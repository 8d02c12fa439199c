// Put and get, where the short ways of window.hpp do not serve: derived types, memory of other
// processes, and what is to be refused.

#include <algorithm>

#include "mpi/datatype/buffer.hpp"
#include "mpi/rma/window.hpp"

namespace warren::rma {

namespace {

// Data with gaps is packed in parts of this size on its way to or from another process.
constexpr MPI_Count packed_part_bytes = 256 * 1024;

using Packed = std::unique_ptr<std::byte[]>;

Packed memory_for(MPI_Count bytes) {
    return Packed(new std::byte[static_cast<std::size_t>(bytes)]);
}

Error write(const Buffer& from, TargetMemory& memory) {
    const MPI_Count bytes = from.bytes();
    if (const void* piece = from.type->one_piece(from.base, from.count)) {
        return memory.write(piece, 0, bytes);
    }
    const Packed packed = memory_for(std::min(bytes, packed_part_bytes));
    for (MPI_Count first = 0; first < bytes; first += packed_part_bytes) {
        const MPI_Count part = std::min(bytes - first, packed_part_bytes);
        from.type->pack_part(from.base, from.count, first, part, packed.get());
        if (Error error = memory.write(packed.get(), first, part)) {
            return error;
        }
    }
    return {};
}

Error read(const Buffer& to, MPI_Count bytes, TargetMemory& memory) {
    if (void* piece = to.type->one_piece(to.base, to.count)) {
        return memory.read(piece, 0, bytes);
    }
    const Packed packed = memory_for(std::min(bytes, packed_part_bytes));
    for (MPI_Count first = 0; first < bytes; first += packed_part_bytes) {
        const MPI_Count part = std::min(bytes - first, packed_part_bytes);
        if (Error error = memory.read(packed.get(), first, part)) {
            return error;
        }
        to.type->unpack_part(packed.get(), first, part, to.base, to.count);
    }
    return {};
}

Error check_sizes(const Buffer& sent, const Buffer& received, const char* sender,
                  const char* receiver) {
    if (sent.bytes() <= received.bytes()) {
        return {};
    }
    return fail(MPI_ERR_TRUNCATE, "%lld bytes of the %s don't fit the %lld bytes of the %s",
                static_cast<long long>(sent.bytes()), sender,
                static_cast<long long>(received.bytes()), receiver);
}

} // namespace

Error Window::check_epoch(int target) const {
    if (epochs_.may_access(target)) {
        return {};
    }
    return fail(MPI_ERR_RMA_SYNC,
                "no epoch gives access to rank %d: call MPI_Win_fence, MPI_Win_lock, "
                "MPI_Win_lock_all or MPI_Win_start first",
                target);
}

Error Window::find_place(int target, MPI_Aint displacement, const Buffer& there, Place& place) {
    if (Error error = check_epoch(target)) {
        return error;
    }
    note_store();
    RankControl& its = control_.rank(target);
    std::int64_t offset;
    // (A negative address of a dynamic window is one of the upper half of the address space.)
    if ((displacement < 0 && flavour_ != Flavour::dynamic) ||
        __builtin_mul_overflow(displacement, its.displacement_unit, &offset)) {
        return fail(MPI_ERR_DISP, "target_disp = %lld is %s", static_cast<long long>(displacement),
                    displacement < 0 ? "negative" : "too large");
    }
    if (there.bytes() > 0 && flavour_ != Flavour::dynamic) {
        // The bytes that the operation touches begin and end here.
        __extension__ typedef __int128 Wide;
        const Wide last = static_cast<Wide>(there.count - 1) * there.type->extent;
        const Wide begin =
            static_cast<Wide>(offset) + there.type->true_lower_bound + std::min<Wide>(last, 0);
        const Wide end = static_cast<Wide>(offset) + there.type->true_lower_bound +
                         there.type->true_extent + std::max<Wide>(last, 0);
        if (begin < 0 || end > static_cast<Wide>(its.whole_size)) {
            return fail(MPI_ERR_RMA_RANGE,
                        "bytes %lld to %lld are not within the %llu bytes of rank %d's memory",
                        static_cast<long long>(begin), static_cast<long long>(end),
                        static_cast<unsigned long long>(its.whole_size), target);
        }
    }
    place = {.address = its.place + static_cast<std::uint64_t>(offset),
             .is_direct = reaches(target),
             .target = target,
             .control = &its};
    if (place.is_direct) {
        // (As numbers: a dynamic window's memory begins at address 0.)
        place.memory = reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(at(target)) +
                                                    static_cast<std::uintptr_t>(offset));
    }
    // (A rank of another node looks itself.)
    if (flavour_ == Flavour::dynamic && there.bytes() > 0 && !its.is_remote()) {
        return check_attached(target, place.laid_out(there));
    }
    return {};
}

Buffer Window::Place::laid_out(const Buffer& there) const {
    return {.base = is_direct ? memory : reinterpret_cast<std::byte*>(address),
            .count = there.count,
            .type = there.type};
}

Error Window::put_slowly(const Buffer& from, int target, MPI_Aint displacement,
                         const Buffer& there) {
    if (target == MPI_PROC_NULL) {
        return {};
    }
    Place place;
    if (Error error = find_place(target, displacement, there, place)) {
        return error;
    }
    if (Error error = check_sizes(from, there, "origin", "target")) {
        return error;
    }
    const MPI_Count bytes = from.bytes();
    if (bytes == 0) {
        return {};
    }
    const Buffer to = place.laid_out(there);
    if (place.is_direct) {
        datatype::copy_data(from, to, 0, bytes);
        return {};
    }
    Error error;
    if (collect(from, place, to, error)) {
        return error;
    }
    return with_memory(place, to, [&](TargetMemory& memory) { return write(from, memory); });
}

// (Of a dynamic window only the target knows the memory: its refusal is this call's error, and
// would be one of all that is in the same request.)
bool Window::collect(const Buffer& from, const Place& place, const Buffer& to, Error& error) {
    const MPI_Count bytes = from.bytes();
    if (!place.control->is_remote() || flavour_ == Flavour::dynamic || bytes > largest_collected ||
        bytes != to.bytes()) {
        return false;
    }
    const void* const data = from.type->one_piece(from.base, from.count);
    const void* const target = to.type->one_piece(to.base, to.count);
    if (data == nullptr || target == nullptr) {
        return false;
    }
    if (collected_ == nullptr) {
        collected_ = std::make_unique<CollectedPuts>(server_, engine_, *this);
    }
    error = collected_->add(place.target, reinterpret_cast<std::uint64_t>(target), data,
                            static_cast<std::size_t>(bytes));
    return true;
}

Error Window::complete_collected(int target) {
    if (collected_ == nullptr) {
        return {};
    }
    Error error = collected_->complete(target);
    if (!collected_->empty()) {
        has_stored_ = true; // the next flush has more to do
    }
    return error;
}

Error Window::complete_collected() {
    return collected_ != nullptr ? collected_->complete_all() : Error();
}

Error Window::get_slowly(const Buffer& to, int target, MPI_Aint displacement, const Buffer& there) {
    if (target == MPI_PROC_NULL) {
        return {};
    }
    Place place;
    if (Error error = find_place(target, displacement, there, place)) {
        return error;
    }
    if (Error error = check_sizes(there, to, "target", "origin")) {
        return error;
    }
    const MPI_Count bytes = there.bytes();
    if (bytes == 0) {
        return {};
    }
    // (Operations that fetch take a mutex, which is a fence.)
    order_load();
    const Buffer from = place.laid_out(there);
    if (place.is_direct) {
        datatype::copy_data(from, to, 0, bytes);
        return {};
    }
    return with_memory(place, from, [&](TargetMemory& memory) { return read(to, bytes, memory); });
}

} // namespace warren::rma
