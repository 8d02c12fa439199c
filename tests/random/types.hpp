// Random datatypes with a model: the list of basic elements, where they are and in which order.
//
// What is sent and what is received agree in a *unit*, a short list of basic types; a datatype lays
// out a number of units in memory in its own way. Sender and receiver draw different ones.
#pragma once

#include "draw.hpp"

#include <mpi.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

namespace programs {

using Offset = std::ptrdiff_t; // bytes

struct Basic {
    const char* name;
    MPI_Datatype type;
    int size, alignment;
    int valued; // bytes that hold the value, the first ones; the rest is padding
};

struct Unit {
    std::vector<const Basic*> basics;
};

struct Leaf {
    Offset offset;
    const Basic* basic;
};

// A committed datatype. Freed with its object, or earlier by release(): MPI keeps what is in use.
struct Type {
    MPI_Datatype handle = MPI_DATATYPE_NULL;
    std::vector<Leaf> leaves;
    Offset lower = 0, upper = 0;           // bounds
    Offset true_lower = 0, true_upper = 0; // of the leaves
    int alignment = 1;
    int units = 1;
    bool predefined = false;
    std::string text; // how it was made

    Type() = default;
    Type(const Type&) = delete;
    Type& operator=(const Type&) = delete;
    ~Type() { release(); }

    Offset extent() const { return upper - lower; }
    Offset bytes() const; // of data
    void release();
};
using TypePtr = std::shared_ptr<Type>;

// Kinds that are never made: subarray, darray, interleaved. Before the first type, for all threads.
void avoid_types(const std::set<std::string>& kinds);

Unit draw_unit(Draw& draw);

// A datatype of `units` units, of which `count` in a row do not overlap in memory. Its size and
// extents are compared with the model.
TypePtr make_type(Draw& draw, const Unit& unit, int units, long count);
// A predefined type.
TypePtr make_basic(const Basic* basic);

// The same data by its absolute address, to be used with MPI_BOTTOM.
TypePtr at_address(const Type& type, long count, void* base);

} // namespace programs
