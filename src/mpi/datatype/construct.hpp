// The constructors of derived datatypes (MPI chapter 5.1): from types and numbers to a Draft.
//
// Displacements and strides are in bytes here. Arguments come from the program: what is impossible
// (a negative block length, numbers beyond an address space, layouts beyond step_limit) is an
// error, and the draft is then of no use. The caller adds the
// arguments that MPI_Type_get_contents returns. Thread rule: functions of their arguments only.
#pragma once

#include "base/error.hpp"
#include "mpi/datatype/derived.hpp"

namespace warren::datatype {

// A derived type before it has a handle.
struct Draft {
    Datatype type;
    std::unique_ptr<Derived> derived = std::make_unique<Derived>();
};

// Bounds, extents and sizes lie within ±this: sums of a few never overflow.
inline constexpr MPI_Count bound_limit = MPI_Count{1} << 60;

// An array of the program's, of int or MPI_Count, or one number for all; times a unit.
struct Numbers {
    const void* values = nullptr; // null: the same number everywhere
    bool wide = true;
    MPI_Count same = 0;

    MPI_Count operator[](MPI_Count index) const {
        if (values == nullptr) {
            return same;
        }
        return wide ? static_cast<const MPI_Count*>(values)[index]
                    : static_cast<const int*>(values)[index];
    }
};

Error make_contiguous(MPI_Count count, const Datatype& old_type, Draft& draft);

// `count` blocks of `length` elements, each `stride` bytes after the one before.
Error make_vector(MPI_Count count, MPI_Count length, MPI_Count stride, const Datatype& old_type,
                  Draft& draft);

// `count` blocks of lengths[i] elements at displacements[i] · unit bytes.
Error make_indexed(MPI_Count count, const Numbers& lengths, const Numbers& displacements,
                   MPI_Count unit, const Datatype& old_type, Draft& draft);

// Blocks as above with a type per block; padded at the end as a C structure is.
Error make_struct(MPI_Count count, const Numbers& lengths, const Numbers& displacements,
                  const Datatype* const types[], Draft& draft);

Error make_resized(const Datatype& old_type, MPI_Count lower_bound, MPI_Count extent, Draft& draft);

// The block of `dimensions` subsizes that begins at starts in an array of sizes (order MPI_ORDER_C
// or MPI_ORDER_FORTRAN).
Error make_subarray(int dimensions, const Numbers& sizes, const Numbers& subsizes,
                    const Numbers& starts, int order, const Datatype& old_type, Draft& draft);

// The processes among which an array is distributed, one of them, and how many are along each
// dimension.
struct Grid {
    int size;
    int rank;
    int dimensions;
    const int* processes;
};

// The part that the process of that rank has of an array of sizes: by blocks, cyclically or whole
// in each dimension (MPI_DISTRIBUTE_…, with their arguments). May be nothing.
Error make_darray(const Grid& grid, const Numbers& sizes, const int distributions[],
                  const int arguments[], int order, const Datatype& old_type, Draft& draft);

// A duplicate of the type, uncommitted or committed as the old one.
void make_duplicate(const Datatype& old_type, Draft& draft);

// value * factor, or an error that says what is too large.
Error multiply(MPI_Count value, MPI_Count factor, const char* what, MPI_Count& product);

} // namespace warren::datatype
