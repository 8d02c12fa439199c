// Enumeration: names for the values of a variable, or of an event's elements (MPI_T_enum).
// Thread rule: constant.
#pragma once

#include <cstdint>

#include "mpi.h"

namespace warren::tool {

struct Enumeration {
    const char* name;
    int count;
    // Value and name of an item below `count`.
    int (*value)(int index);
    const char* (*item_name)(int index);
};

enum class RanksKind : std::uint8_t { unknown, processes, threads, fibres };

namespace enumerations {
extern const Enumeration switches; // off, on
extern const Enumeration ranks;    // RanksKind
extern const Enumeration waits;    // not waiting for long, waiting for long
extern const Enumeration
    tree_algorithms; // of gathers and scatters, and so on (mpi/coll/choice.hpp)
extern const Enumeration allgather_algorithms;
extern const Enumeration allreduce_algorithms;
extern const Enumeration reduce_scatter_algorithms;
extern const Enumeration scan_algorithms;
extern const Enumeration procedures; // of the standard, by the numbers that events have
} // namespace enumerations

inline MPI_T_enum handle_of(const Enumeration* enumeration) {
    return reinterpret_cast<MPI_T_enum>(const_cast<Enumeration*>(enumeration));
}
// Null: the handle is none.
const Enumeration* find_enumeration(MPI_T_enum handle);

} // namespace warren::tool
