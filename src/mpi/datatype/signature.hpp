// Signature: which basic elements a type's packed data consists of, in order.
//
// Only types of several basic types have one; the others are told by Datatype::basic. As a layout,
// it is a tree of shared lists, so that repeating a type costs one entry.
// Thread rule and invariants: as for a Body: immutable; counts, bytes and elements ≥ 1.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "mpi.h"

namespace warren::datatype {

struct Datatype;
struct Signature;

struct Run {
    MPI_Count count; // repeats
    MPI_Count bytes; // of one repeat
    MPI_Count elements;
    std::shared_ptr<const Signature> inner; // what is repeated; null: a basic type
    std::uint8_t basic;                     // handle - MPI_DATATYPE_NULL
};

struct Signature {
    std::vector<Run> runs;
};

// Adds `count` elements of a type, joining with the last run where that is the same.
void append(Signature& signature, const Datatype& type, MPI_Count count);

// Basic elements in one element of a type.
MPI_Count elements_of(const Datatype& type);

// The parts of a basic type: {8, 4} of MPI_DOUBLE_INT, {size, 0} of plain ones, and where in
// memory the second begins.
struct BasicParts {
    MPI_Count first;
    MPI_Count second;
    MPI_Count second_offset;
};
BasicParts parts_of(std::uint8_t basic);

} // namespace warren::datatype
