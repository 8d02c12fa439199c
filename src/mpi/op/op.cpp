#include "mpi/op/op.hpp"

#include <climits>
#include <cstring>

#include "mpi/datatype/type_table.hpp"

namespace warren::coll {

namespace {

const char* name_of(OpKind kind) {
    switch (kind) {
    case OpKind::sum:
        return "MPI_SUM";
    case OpKind::min:
        return "MPI_MIN";
    case OpKind::max:
        return "MPI_MAX";
    case OpKind::product:
        return "MPI_PROD";
    case OpKind::bit_and:
        return "MPI_BAND";
    case OpKind::bit_or:
        return "MPI_BOR";
    case OpKind::bit_xor:
        return "MPI_BXOR";
    case OpKind::logical_and:
        return "MPI_LAND";
    case OpKind::logical_or:
        return "MPI_LOR";
    case OpKind::logical_xor:
        return "MPI_LXOR";
    case OpKind::min_location:
        return "MPI_MINLOC";
    case OpKind::max_location:
        return "MPI_MAXLOC";
    case OpKind::replace:
        return "MPI_REPLACE";
    case OpKind::no_op:
        return "MPI_NO_OP";
    case OpKind::null:
    case OpKind::user:
        break;
    }
    return "the operation";
}

OpKind kind_of(std::uintptr_t handle) {
    const struct {
        MPI_Op op;
        OpKind kind;
    } kinds[] = {{MPI_SUM, OpKind::sum},
                 {MPI_MIN, OpKind::min},
                 {MPI_MAX, OpKind::max},
                 {MPI_PROD, OpKind::product},
                 {MPI_BAND, OpKind::bit_and},
                 {MPI_BOR, OpKind::bit_or},
                 {MPI_BXOR, OpKind::bit_xor},
                 {MPI_LAND, OpKind::logical_and},
                 {MPI_LOR, OpKind::logical_or},
                 {MPI_LXOR, OpKind::logical_xor},
                 {MPI_MINLOC, OpKind::min_location},
                 {MPI_MAXLOC, OpKind::max_location},
                 {MPI_REPLACE, OpKind::replace},
                 {MPI_NO_OP, OpKind::no_op}};
    for (const auto& entry : kinds) {
        if (reinterpret_cast<std::uintptr_t>(entry.op) == handle) {
            return entry.kind;
        }
    }
    return OpKind::null;
}

} // namespace

Op::Function Op::adapt(Adapter adapter, Function function) {
    adapter_ = adapter;
    if (large_function_ != nullptr) {
        const auto before = reinterpret_cast<Function>(large_function_);
        if (function != nullptr) {
            large_function_ = reinterpret_cast<MPI_User_function_c*>(function);
        }
        return before;
    }
    const auto before = reinterpret_cast<Function>(function_);
    if (function != nullptr) {
        function_ = reinterpret_cast<MPI_User_function*>(function);
    }
    return before;
}

Error Op::check(const datatype::Datatype& type) const {
    if (kind_ == OpKind::user) {
        return {};
    }
    if (kind_ == OpKind::replace || kind_ == OpKind::no_op) {
        return fail(MPI_ERR_OP, "%s is an operation of one-sided communication only",
                    name_of(kind_));
    }
    if (type.element == datatype::Element::none) {
        return fail(MPI_ERR_OP,
                    "%s is not defined on derived datatypes: use a predefined one, or an "
                    "operation made by MPI_Op_create",
                    name_of(kind_));
    }
    if (!defined(kind_, type.element)) {
        return fail(MPI_ERR_OP, "%s is not defined on %s", name_of(kind_), type.predefined_name());
    }
    return {};
}

void Op::apply(const void* in, void* inout, MPI_Count count, const datatype::Datatype& type) const {
    if (count == 0) {
        return;
    }
    if (kind_ != OpKind::user) {
        kernel_of(kind_, type.element)(in, inout, inout, count);
        return;
    }
    MPI_Datatype handle = datatype::TypeTable::handle_of(type);
    if (large_function_ != nullptr) {
        call(large_function_, const_cast<void*>(in), inout, count, handle);
        return;
    }
    // A function with an int count gets large arrays in parts.
    auto* left = static_cast<std::byte*>(const_cast<void*>(in));
    auto* right = static_cast<std::byte*>(inout);
    while (count > 0) {
        int part = count > INT_MAX ? INT_MAX : static_cast<int>(count);
        call(function_, left, right, part, handle);
        left += part * type.extent;
        right += part * type.extent;
        count -= part;
    }
}

void Op::combine(const void* left, const void* right, void* result, MPI_Count count,
                 const datatype::Datatype& type) const {
    if (kind_ != OpKind::user) [[likely]] {
        kernel_of(kind_, type.element)(left, right, result, count);
        return;
    }
    if (right != result && count > 0) {
        std::memcpy(result, right, static_cast<std::size_t>(count * type.size));
    }
    apply(left, result, count, type);
}

Ops::Ops() {
    for (std::uintptr_t i = 0; i < predefined_range; ++i) {
        predefined_[i].kind_ = kind_of(first_predefined + i);
    }
}

Op* Ops::find(MPI_Op handle) {
    const std::uintptr_t index = reinterpret_cast<std::uintptr_t>(handle) - first_predefined;
    if (index < predefined_range) {
        return predefined_[index].kind_ != OpKind::null ? &predefined_[index] : nullptr;
    }
    return made_.find(handle);
}

MPI_Op Ops::handle_of(const Op& op) const {
    if (op.predefined()) {
        return reinterpret_cast<MPI_Op>(first_predefined +
                                        static_cast<std::uintptr_t>(&op - predefined_.data()));
    }
    return static_cast<MPI_Op>(LateHandleTable<Op>::handle_of(op));
}

MPI_Op Ops::of_integer(int integer) const {
    const std::uintptr_t index = static_cast<std::uintptr_t>(integer) - first_predefined;
    if (index < predefined_range) {
        return predefined_[index].kind_ != OpKind::null
                   ? reinterpret_cast<MPI_Op>(first_predefined + index)
                   : MPI_OP_NULL;
    }
    void* handle = made_.from_integer(static_cast<std::uint32_t>(integer));
    return handle != nullptr ? static_cast<MPI_Op>(handle) : MPI_OP_NULL;
}

Op* Ops::insert(MPI_User_function* function, bool commutative) {
    return made_.insert(function, commutative);
}

Op* Ops::insert(MPI_User_function_c* function, bool commutative) {
    return made_.insert(function, commutative);
}

} // namespace warren::coll
