// Performance variables: what a tool can read of a rank's work.
//
// Levels and sizes are read from the rank's state. All others are counts of the rank, of which each
// handle shows the part since it was started: sessions don't disturb each other. Some counts move
// only while a handle is started (`observed`). Thread rule: the table is constant; read() under the
// rank's lock.
#pragma once

#include <cstdint>
#include <span>

#include "mpi/tool/enumeration.hpp"
#include "mpi/tool/subject.hpp"

namespace warren::tool {

struct PerformanceVariable {
    const char* name;
    const char* description;
    int verbosity;
    int variable_class;
    MPI_Datatype datatype; // MPI_INT, MPI_UNSIGNED, MPI_UNSIGNED_LONG_LONG; MPI_DOUBLE: seconds
    const Enumeration* enumeration = nullptr;
    bool observed = false; // the rank counts it only while a handle is started
    // The value, or the rank's count; ns of an MPI_DOUBLE.
    std::uint64_t (*read)(const Subject& subject);

    // Read from state that is there anyway: it cannot be started, nor written.
    bool continuous() const {
        return variable_class == MPI_T_PVAR_CLASS_STATE ||
               variable_class == MPI_T_PVAR_CLASS_LEVEL || variable_class == MPI_T_PVAR_CLASS_SIZE;
    }
    // The largest value since its start; read() gives the present one.
    bool is_mark() const { return variable_class == MPI_T_PVAR_CLASS_HIGHWATERMARK; }
};

std::span<const PerformanceVariable> performance_variables();

// Copies a value to a tool's buffer and back, in the variable's datatype.
void store_value(const PerformanceVariable& variable, std::uint64_t value, void* buffer);
std::uint64_t load_value(const PerformanceVariable& variable, const void* buffer);

} // namespace warren::tool
