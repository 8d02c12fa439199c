// Accumulate operations. All of them hold the target's accumulate mutex while they read and write
// its memory, so any two are atomic to each other, element by element.
//
// Data without gaps in mapped memory is combined where it is. All other data goes in parts, packed:
// the target's part is read, combined and written while the mutex is held.

#include <algorithm>
#include <cstring>

#include "mpi/datatype/type_table.hpp"
#include "mpi/rma/peer_memory.hpp"
#include "mpi/rma/window.hpp"

namespace warren::rma {

namespace {

// Packed bytes that are combined at a time: others get the mutex in between.
constexpr MPI_Count part_bytes = 64 * 1024;

// Whether an operation changes the target.
bool writes(const coll::Op& op) {
    return op.kind() != coll::OpKind::no_op;
}

// MPI_REPLACE and MPI_NO_OP, which have no loop, are for all predefined types.
Error check_operation(const coll::Op& op, const datatype::Datatype& basic) {
    if (!op.predefined()) {
        return fail(MPI_ERR_OP,
                    "op was made by MPI_Op_create: only predefined operations accumulate");
    }
    if (op.kind() == coll::OpKind::replace || !writes(op)) {
        return {};
    }
    return op.check(basic);
}

// The predefined type that all elements are of; null: there are several.
const datatype::Datatype* basic_of(const datatype::Datatype& type) {
    return type.predefined   ? &type
           : type.basic != 0 ? &datatype::predefined_table[type.basic]
                             : nullptr;
}

Error several_types(const char* name) {
    return fail(MPI_ERR_TYPE, "%s is made of several predefined types", name);
}

// left op right, of elements as a program has them.
void combine(const coll::Op& op, const datatype::Datatype& basic, const void* left,
             const void* right, void* result, MPI_Count elements) {
    if (op.kind() == coll::OpKind::replace) {
        std::memmove(result, right, static_cast<std::size_t>(elements * basic.extent));
    } else if (writes(op)) {
        op.kernel(basic)(left, right, result, elements);
    }
}

} // namespace

struct Window::Accumulation {
    Buffer from;
    const Buffer* result; // null: not wanted
    Buffer to;            // laid out at the target
    Place place;
    const coll::Op* op;
    const datatype::Datatype* basic;
};

// Packed elements and the same as a program has them, which differ for types with gaps inside.
class Window::Elements {
  public:
    Elements(const datatype::Datatype& basic, MPI_Count bytes)
        : basic_(basic),
          packed_(std::make_unique<std::byte[]>(static_cast<std::size_t>(bytes))),
          native_(basic.contiguous ? nullptr
                                   : std::make_unique<std::byte[]>(static_cast<std::size_t>(
                                         bytes / basic.size * basic.extent))) {}

    std::byte* packed() { return packed_.get(); }
    std::byte* native() { return native_ != nullptr ? native_.get() : packed_.get(); }
    // After packed() has been written.
    void unpack(MPI_Count bytes) {
        if (native_ != nullptr) {
            basic_.unpack(packed_.get(), bytes, native_.get(), bytes / basic_.size);
        }
    }
    // After native() has been written.
    void pack(MPI_Count bytes) {
        if (native_ != nullptr) {
            basic_.pack(native_.get(), bytes / basic_.size, packed_.get());
        }
    }

  private:
    const datatype::Datatype& basic_;
    std::unique_ptr<std::byte[]> packed_;
    std::unique_ptr<std::byte[]> native_; // null: elements have no gaps
};

void Window::accumulate_in_place(const Accumulation& what) {
    const MPI_Count bytes = what.to.bytes();
    const MPI_Count part = part_bytes / what.basic->size * what.basic->size;
    const auto* from = static_cast<const std::byte*>(what.from.base);
    auto* result = what.result != nullptr ? static_cast<std::byte*>(what.result->base) : nullptr;
    std::byte* target = what.place.memory;
    for (MPI_Count first = 0; first < bytes; first += part) {
        const MPI_Count now = std::min(bytes - first, part);
        const SharedLock lock(what.place.control->accumulate_mutex, engine_.rank().index, spins());
        if (result != nullptr) {
            std::memcpy(result + first, target + first, static_cast<std::size_t>(now));
        }
        combine(*what.op, *what.basic, target + first, from + first, target + first,
                now / what.basic->size);
    }
}

Error Window::accumulate_parts(const Accumulation& what) {
    const MPI_Count bytes = what.to.bytes();
    const datatype::Datatype& basic = *what.basic;
    const MPI_Count part = std::min(bytes, part_bytes / basic.size * basic.size);
    Elements own(basic, part);
    Elements its(basic, part);
    const PeerMemory peer(engine_.rank().segment, what.place.target_in_world, what.to);
    for (MPI_Count first = 0; first < bytes; first += part) {
        const MPI_Count now = std::min(bytes - first, part);
        if (writes(*what.op)) {
            what.from.type->pack_part(what.from.base, what.from.count, first, now, own.packed());
            own.unpack(now);
        }
        const SharedLock lock(what.place.control->accumulate_mutex, engine_.rank().index, spins());
        if (what.place.is_direct) {
            what.to.type->pack_part(what.to.base, what.to.count, first, now, its.packed());
        } else if (Error error = peer.read(its.packed(), first, now)) {
            return error;
        }
        if (what.result != nullptr) {
            what.result->type->unpack_part(its.packed(), first, now, what.result->base,
                                           what.result->count);
        }
        if (!writes(*what.op)) {
            continue;
        }
        its.unpack(now);
        combine(*what.op, basic, its.native(), own.native(), its.native(), now / basic.size);
        its.pack(now);
        if (what.place.is_direct) {
            what.to.type->unpack_part(its.packed(), first, now, what.to.base, what.to.count);
        } else if (Error error = peer.write(its.packed(), first, now)) {
            return error;
        }
    }
    return {};
}

// What origin, result and target must have in common.
Error Window::check_accumulation(const Accumulation& what) {
    const datatype::Datatype* origin = basic_of(*what.from.type);
    const datatype::Datatype* result =
        what.result != nullptr ? basic_of(*what.result->type) : what.basic;
    if (writes(*what.op) && origin != what.basic) {
        return origin == nullptr
                   ? several_types("origin_datatype")
                   : fail(MPI_ERR_TYPE, "origin_datatype is of %s, target_datatype of %s",
                          origin->predefined_name(), what.basic->predefined_name());
    }
    if (result != what.basic) {
        return result == nullptr
                   ? several_types("result_datatype")
                   : fail(MPI_ERR_TYPE, "result_datatype is of %s, target_datatype of %s",
                          result->predefined_name(), what.basic->predefined_name());
    }
    const MPI_Count bytes = what.to.bytes();
    const MPI_Count sent = writes(*what.op) ? what.from.bytes() : bytes;
    if (sent != bytes || (what.result != nullptr && what.result->bytes() < bytes)) {
        return fail(MPI_ERR_TRUNCATE, "the target's data are %lld bytes, but the origin's %lld%s",
                    static_cast<long long>(bytes), static_cast<long long>(sent),
                    sent == bytes ? ", and the result is shorter" : "");
    }
    return {};
}

Error Window::accumulate(const Buffer& from, const Buffer* result, int target,
                         MPI_Aint displacement, const Buffer& there, const coll::Op& op) {
    if (there.bytes() == 0 && (from.bytes() == 0 || !writes(op))) {
        return target == MPI_PROC_NULL ? Error() : check_epoch(target);
    }
    const datatype::Datatype* basic = basic_of(*there.type);
    if (basic == nullptr) {
        return several_types("target_datatype");
    }
    if (Error error = check_operation(op, *basic)) {
        return error;
    }
    if (target == MPI_PROC_NULL) {
        return {};
    }
    Accumulation what = {
        .from = from, .result = result, .to = there, .place = {}, .op = &op, .basic = basic};
    if (Error error = find_place(target, displacement, there, what.place)) {
        return error;
    }
    if (Error error = check_accumulation(what)) {
        return error;
    }
    what.to = what.place.laid_out(there);
    const bool in_place = what.place.is_direct && there.type->contiguous && basic->contiguous &&
                          (!writes(op) || from.type->contiguous) &&
                          (result == nullptr || result->type->contiguous);
    if (in_place) {
        accumulate_in_place(what);
        return {};
    }
    return accumulate_parts(what);
}

Error Window::fetch_and_op(const void* from, void* result, const datatype::Datatype& type,
                           int target, MPI_Aint displacement, const coll::Op& op) {
    const Buffer own = {.base = const_cast<void*>(from), .count = 1, .type = &type};
    const Buffer fetched = {.base = result, .count = 1, .type = &type};
    const Buffer there = {.base = nullptr, .count = 1, .type = &type};
    if (!type.predefined) {
        return fail(MPI_ERR_TYPE, "datatype is not a predefined one");
    }
    return accumulate(own, &fetched, target, displacement, there, op);
}

namespace {

// MPI 5.0, 12.3.4: C and Fortran integers, logicals, multi-language types and bytes. Characters,
// which programs take for integers of one byte, harm nobody.
bool is_comparable(const datatype::Datatype& type) {
    using datatype::Element;
    switch (type.element) {
    case Element::int8:
    case Element::int16:
    case Element::int32:
    case Element::int64:
    case Element::int128:
    case Element::uint8:
    case Element::uint16:
    case Element::uint32:
    case Element::uint64:
    case Element::boolean:
    case Element::logical8:
    case Element::logical16:
    case Element::logical32:
    case Element::logical64:
    case Element::logical128:
    case Element::byte:
    case Element::character:
        return true;
    default:
        return false;
    }
}

} // namespace

Error Window::compare_and_swap(const void* from, const void* compared, void* result,
                               const datatype::Datatype& type, int target, MPI_Aint displacement) {
    if (!type.predefined || !is_comparable(type)) {
        return fail(MPI_ERR_TYPE, "datatype%s%s is no integer, logical or byte",
                    type.predefined ? " = " : "", type.predefined ? type.predefined_name() : "");
    }
    if (target == MPI_PROC_NULL) {
        return {};
    }
    Place place;
    const Buffer there = {.base = nullptr, .count = 1, .type = &type};
    if (Error error = find_place(target, displacement, there, place)) {
        return error;
    }
    const auto bytes = static_cast<std::size_t>(type.size);
    std::byte found[16]; // no such type is larger
    const PeerMemory peer(engine_.rank().segment, place.target_in_world, place.laid_out(there));
    const SharedLock lock(place.control->accumulate_mutex, engine_.rank().index, spins());
    if (place.is_direct) {
        std::memcpy(found, place.memory, bytes);
    } else if (Error error = peer.read(found, 0, type.size)) {
        return error;
    }
    if (std::memcmp(found, compared, bytes) == 0) {
        if (place.is_direct) {
            std::memcpy(place.memory, from, bytes);
        } else if (Error error = peer.write(from, 0, type.size)) {
            return error;
        }
    }
    std::memcpy(result, found, bytes);
    return {};
}

} // namespace warren::rma
