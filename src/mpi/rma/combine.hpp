// Elements of accumulate operations: how two are combined, and their packed and native forms.
// Thread rule: values of one call.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>

#include "mpi/datatype/datatype.hpp"
#include "mpi/op/op.hpp"

namespace warren::rma {

// Packed bytes that are combined at a time: others get the accumulate mutex in between.
constexpr MPI_Count accumulate_part_bytes = 64 * 1024;

// Whether an operation changes the target.
inline bool changes_target(const coll::Op& op) {
    return op.kind() != coll::OpKind::no_op;
}

// left op right, of elements as a program has them. MPI_REPLACE and MPI_NO_OP have no loop.
inline void combine(const coll::Op& op, const datatype::Datatype& basic, const void* left,
                    const void* right, void* result, MPI_Count elements) {
    if (op.kind() == coll::OpKind::replace) {
        std::memmove(result, right, static_cast<std::size_t>(elements * basic.extent));
    } else if (changes_target(op)) {
        op.kernel(basic)(left, right, result, elements);
    }
}

// Packed elements and the same as a program has them, which differ for types with gaps inside.
class Elements {
  public:
    Elements(const datatype::Datatype& basic, MPI_Count bytes)
        : basic_(basic),
          packed_(new std::byte[static_cast<std::size_t>(bytes)]),
          native_(
              basic.contiguous
                  ? nullptr
                  : new std::byte[static_cast<std::size_t>(bytes / basic.size * basic.extent)]) {}

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

} // namespace warren::rma
