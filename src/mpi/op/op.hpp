// Op: a reduction operation (MPI chapter 6, predefined and user-defined operations).
//
// An operation combines arrays element by element, result[i] = left[i] op right[i], `left` being
// the operand of the lower rank. Predefined ones have a loop per kind of element, written so that
// the compiler vectorises it. Thread rule: immutable once made; handles under the rank's lock.
#pragma once

#include <array>
#include <cstdint>

#include "base/error.hpp"
#include "base/late_handle_table.hpp"
#include "mpi.h"
#include "mpi/datatype/datatype.hpp"

namespace warren::coll {

enum class OpKind : std::uint8_t {
    null,
    sum,
    min,
    max,
    product,
    bit_and,
    bit_or,
    bit_xor,
    logical_and,
    logical_or,
    logical_xor,
    min_location,
    max_location,
    replace, // of one-sided communication, like no_op
    no_op,
    user
};

// The loop over `count` elements of one kind; null where the standard does not define the
// operation. The result may be in either operand's place.
using Kernel = void (*)(const void* left, const void* right, void* result, MPI_Count count);
Kernel kernel_of(OpKind kind, datatype::Element element);
bool defined(OpKind kind, datatype::Element element);

class Op {
  public:
    Op() = default; // null, which no handle finds
    explicit Op(OpKind kind) : kind_(kind) {}
    Op(MPI_User_function* function, bool commutative)
        : kind_(OpKind::user), commutative_(commutative), function_(function) {}
    Op(MPI_User_function_c* function, bool commutative)
        : kind_(OpKind::user), commutative_(commutative), large_function_(function) {}

    // How the program's function is called if its types of handles are not the standard's
    // (src/foreign): by an adapter that gets it. `count` points to an int, or to an MPI_Count when
    // the function is one of large counts.
    using Function = void (*)();
    using Adapter = void (*)(Function function, void* in, void* inout, void* count,
                             MPI_Datatype type);
    // The adapter gets `function` in place of the program's, which is returned, if it isn't null.
    Function adapt(Adapter adapter, Function function = nullptr);

    OpKind kind() const { return kind_; }
    bool predefined() const { return kind_ != OpKind::user; }
    bool commutative() const { return commutative_; }

    // MPI_ERR_OP when the standard does not define the operation on the type.
    Error check(const datatype::Datatype& type) const;

    // The loop of a predefined operation on a type that check() accepts; null for the program's
    // own.
    Kernel kernel(const datatype::Datatype& type) const {
        return predefined() ? kernel_of(kind_, type.element) : nullptr;
    }

    // inout[i] = in[i] op inout[i] for `count` elements of a type that check() accepts.
    void apply(const void* in, void* inout, MPI_Count count, const datatype::Datatype& type) const;
    // result[i] = left[i] op right[i], of a contiguous type. `result` may be `right`, and of
    // predefined operations `left`.
    void combine(const void* left, const void* right, void* result, MPI_Count count,
                 const datatype::Datatype& type) const;

  private:
    friend class Ops;

    // Calls the program's function, one of the two kinds.
    template <typename UserFunction, typename Count>
    void call(UserFunction* function, void* in, void* inout, Count count, MPI_Datatype type) const {
        if (adapter_ != nullptr) {
            adapter_(reinterpret_cast<Function>(function), in, inout, &count, type);
        } else {
            function(in, inout, &count, &type);
        }
    }

    OpKind kind_ = OpKind::null;
    bool commutative_ = true;
    MPI_User_function* function_ = nullptr;
    MPI_User_function_c* large_function_ = nullptr;
    Adapter adapter_ = nullptr;
};

// The operations of a rank: the predefined ones, and those that the program makes.
class Ops {
  public:
    Ops();

    // Null for MPI_OP_NULL and what is no operation.
    Op* find(MPI_Op handle);
    MPI_Op handle_of(const Op& op) const;
    MPI_Op of_integer(int integer) const; // MPI_OP_NULL when there is none

    // Null when memory is out.
    Op* insert(MPI_User_function* function, bool commutative);
    Op* insert(MPI_User_function_c* function, bool commutative);
    void remove(Op& op) { made_.remove(op); }

  private:
    static constexpr std::uintptr_t first_predefined = 0x20; // MPI_OP_NULL
    static constexpr std::uintptr_t predefined_range = 0x20;

    std::array<Op, predefined_range> predefined_; // by handle; unused ones are of kind null
    LateHandleTable<Op> made_;
};

} // namespace warren::coll
