// What the constructors of random datatypes (types.cpp, array_types.cpp) have in common.
#pragma once

#include "types.hpp"

namespace programs {

using Ints = std::vector<int>;
using Counts = std::vector<MPI_Count>;
using Aints = std::vector<MPI_Aint>;

inline Counts wide(const Ints& list) {
    return {list.begin(), list.end()};
}
inline Counts wide(const Aints& list) {
    return {list.begin(), list.end()};
}

// A datatype of so many units by any constructor, `depth` of them around it. Constructors call it
// for what they are made of.
TypePtr build(Draw& draw, const Unit& unit, int units, int depth);

// Parts of arrays.
TypePtr subarray(Draw& draw, const Unit& unit, int units, int depth);
TypePtr darray(Draw& draw, const Unit& unit, int units, int depth);

} // namespace programs
