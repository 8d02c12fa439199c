// Statuses of the standard ABI, for its Fortran library: those of the core, 8 INTEGERs. Thread
// rule: functions of their arguments.
#pragma once

#include <algorithm>
#include <iterator>

#include "mpi.h"

namespace warren::foreign {

using Status = MPI_Status;

// MPI_STATUS_IGNORE and MPI_STATUSES_IGNORE.
inline bool is_ignored(const Status* status) {
    return status == nullptr;
}

inline void store_internal(const MPI_Status& from, Status& to) {
    std::copy(std::begin(from.MPI_internal), std::end(from.MPI_internal), to.MPI_internal);
}

inline void load_internal(const Status& from, MPI_Status& to) {
    store_internal(from, to);
}

} // namespace warren::foreign
