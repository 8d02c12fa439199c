// Buffer: memory of the program and the datatype that lays it out.
#pragma once

#include <cstddef>

#include "mpi.h"
#include "mpi/datatype/datatype.hpp"

namespace warren::datatype {

struct Buffer {
    void* base = nullptr;
    MPI_Count count = 0;
    const Datatype* type = nullptr;

    MPI_Count bytes() const { return count * type->size; }
    // (Two with the same base alone can be different: MPI_BOTTOM.)
    bool same_place(const Buffer& other) const { return base == other.base && type == other.type; }
};

// A buffer that is evenly spaced blocks and nothing else; count 0: it is not.
struct EvenBlocks {
    std::byte* first;
    MPI_Count stride; // bytes
    MPI_Count count;
    MPI_Count bytes; // of a block
};
EvenBlocks even_blocks(const Buffer& buffer);

// Copies bytes [first, first + bytes) of a buffer's data to where another buffer lays them out,
// straight from layout to layout. Both have so many; their memory doesn't overlap.
void copy_data(const Buffer& from, const Buffer& to, MPI_Count first, MPI_Count bytes);

} // namespace warren::datatype
