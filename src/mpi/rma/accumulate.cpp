// Accumulate operations. The accumulate mutex of the target is held while its memory is read and
// written, so any two are atomic to each other, element by element.
//
// Data without gaps in mapped memory is combined where it is. All other data goes in parts, packed
// (target_memory.hpp).

#include <algorithm>
#include <cstring>

#include "mpi/datatype/type_table.hpp"
#include "mpi/rma/combine.hpp"
#include "mpi/rma/window.hpp"

namespace warren::rma {

namespace {

// MPI_REPLACE and MPI_NO_OP, which have no loop, are for all predefined types.
Error check_operation(const coll::Op& op, const datatype::Datatype& basic, bool fetches) {
    if (!op.predefined()) {
        return fail(MPI_ERR_OP,
                    "op was made by MPI_Op_create: only predefined operations accumulate");
    }
    if (!changes_target(op) && !fetches) {
        return fail(MPI_ERR_OP, "op is MPI_NO_OP, which is for calls that fetch");
    }
    if (op.kind() == coll::OpKind::replace || !changes_target(op)) {
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

} // namespace

struct Window::Accumulation {
    Buffer from;
    const Buffer* result; // null: not wanted
    Buffer to;            // laid out at the target
    Place place;
    const coll::Op* op;
    const datatype::Datatype* basic;
};

void Window::accumulate_in_place(const Accumulation& what) {
    const MPI_Count bytes = what.to.bytes();
    const MPI_Count part = accumulate_part_bytes / what.basic->size * what.basic->size;
    const auto* from = static_cast<const std::byte*>(what.from.base);
    auto* result = what.result != nullptr ? static_cast<std::byte*>(what.result->base) : nullptr;
    std::byte* target = what.place.memory;
    for (MPI_Count first = 0; first < bytes; first += part) {
        const MPI_Count now = std::min(bytes - first, part);
        const SharedLock lock(what.place.control->accumulate_mutex, mutex_user());
        if (result != nullptr) {
            std::memcpy(result + first, target + first, static_cast<std::size_t>(now));
        }
        combine(*what.op, *what.basic, target + first, from + first, target + first,
                now / what.basic->size);
    }
}

Error Window::accumulate_parts(const Accumulation& what, TargetMemory& memory) {
    const MPI_Count bytes = what.to.bytes();
    const datatype::Datatype& basic = *what.basic;
    const MPI_Count part = std::min(bytes, accumulate_part_bytes / basic.size * basic.size);
    Elements own(basic, part);
    Elements its(basic, part);
    const Accumulating accumulating = {.op = *what.op, .basic = basic, .own = own, .its = its};
    const std::unique_ptr<std::byte[]> before(
        what.result != nullptr ? new std::byte[static_cast<std::size_t>(part)] : nullptr);
    for (MPI_Count first = 0; first < bytes; first += part) {
        const MPI_Count now = std::min(bytes - first, part);
        if (changes_target(*what.op)) {
            what.from.type->pack_part(what.from.base, what.from.count, first, now, own.packed());
            own.unpack(now);
        }
        if (Error error = memory.accumulate(accumulating, before.get(), first, now)) {
            return error;
        }
        if (what.result != nullptr) {
            what.result->type->unpack_part(before.get(), first, now, what.result->base,
                                           what.result->count);
        }
    }
    return {};
}

namespace {

template <typename Number>
void add_to(std::byte* place, const void* addend) {
    Number sum;
    Number more;
    std::memcpy(&sum, place, sizeof sum);
    std::memcpy(&more, addend, sizeof more);
    sum = static_cast<Number>(sum + more);
    std::memcpy(place, &sum, sizeof sum);
}

// Sums of the numbers that programs accumulate most; false: it is another operation.
bool add_one(coll::OpKind kind, datatype::Element element, std::byte* place, const void* addend) {
    using datatype::Element;
    if (kind != coll::OpKind::sum) {
        return false;
    }
    switch (element) {
    case Element::int32:
    case Element::uint32:
        add_to<std::uint32_t>(place, addend);
        return true;
    case Element::int64:
    case Element::uint64:
        add_to<std::uint64_t>(place, addend);
        return true;
    case Element::float32:
        add_to<float>(place, addend);
        return true;
    case Element::float64:
        add_to<double>(place, addend);
        return true;
    default:
        return false;
    }
}

} // namespace

bool Window::combine_one(int target, std::byte* place, const coll::Op& op,
                         const datatype::Datatype& type, const void* from, void* before) {
    const coll::OpKind kind = op.kind();
    const auto bytes = static_cast<std::size_t>(type.size);
    if (kind == coll::OpKind::user || (kind == coll::OpKind::no_op && before == nullptr)) {
        return false;
    }
    const bool copies = kind == coll::OpKind::replace || kind == coll::OpKind::no_op;
    const coll::Kernel kernel = copies ? nullptr : op.kernel(type);
    if (!copies && kernel == nullptr) {
        return false;
    }
    const SharedLock lock(control_.rank(target).accumulate_mutex, mutex_user());
    if (before != nullptr) {
        copy_short(before, place, bytes);
    }
    if (kind == coll::OpKind::replace) {
        copy_short(place, from, bytes);
    } else if (kind != coll::OpKind::no_op && !add_one(kind, type.element, place, from)) {
        kernel(place, from, place, 1);
    }
    note_store();
    return true;
}

// Origin, result and target must have one basic type.
Error Window::check_accumulation(const Accumulation& what) {
    const datatype::Datatype* origin = basic_of(*what.from.type);
    const datatype::Datatype* result =
        what.result != nullptr ? basic_of(*what.result->type) : what.basic;
    if (changes_target(*what.op) && origin != what.basic) {
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
    const MPI_Count sent = changes_target(*what.op) ? what.from.bytes() : bytes;
    if (sent != bytes || (what.result != nullptr && what.result->bytes() < bytes)) {
        return fail(MPI_ERR_TRUNCATE, "the target's data are %lld bytes, but the origin's %lld%s",
                    static_cast<long long>(bytes), static_cast<long long>(sent),
                    sent == bytes ? ", and the result is shorter" : "");
    }
    return {};
}

Error Window::accumulate(const Buffer& from, const Buffer* result, int target,
                         MPI_Aint displacement, const Buffer& there, const coll::Op& op) {
    if (there.bytes() == 0 && (from.bytes() == 0 || !changes_target(op))) {
        return target == MPI_PROC_NULL ? Error() : check_epoch(target);
    }
    const datatype::Datatype* basic = basic_of(*there.type);
    if (basic == nullptr) {
        return several_types("target_datatype");
    }
    if (Error error = check_operation(op, *basic, result != nullptr)) {
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
                          (!changes_target(op) || from.type->contiguous) &&
                          (result == nullptr || result->type->contiguous);
    if (in_place) {
        accumulate_in_place(what);
        return {};
    }
    return with_memory(what.place, what.to,
                       [&](TargetMemory& memory) { return accumulate_parts(what, memory); });
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

bool Window::swap_one(int target, std::byte* place, const datatype::Datatype& type,
                      const void* replacement, const void* compared, void* before) {
    if (!is_comparable(type)) {
        return false;
    }
    const auto bytes = static_cast<std::size_t>(type.size);
    const SharedLock lock(control_.rank(target).accumulate_mutex, mutex_user());
    const bool is_equal = std::memcmp(place, compared, bytes) == 0;
    copy_short(before, place, bytes);
    if (is_equal) {
        copy_short(place, replacement, bytes);
    }
    note_store();
    return true;
}

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
    std::byte found[16]; // no such type is larger
    if (Error error = with_memory(place, place.laid_out(there), [&](TargetMemory& memory) {
            return memory.compare_and_swap(from, compared, found);
        })) {
        return error;
    }
    std::memcpy(result, found, static_cast<std::size_t>(type.size));
    return {};
}

} // namespace warren::rma
