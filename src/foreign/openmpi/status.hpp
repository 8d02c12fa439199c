// MPI_Status of Open MPI's ABI: 24 bytes. Thread rule: functions of their arguments.
#pragma once

#include <cstddef>

#include "mpi/entry/status.hpp"

namespace warren::foreign {

// (A status of Fortran is an array of INTEGERs, and aligned as such.)
struct __attribute__((packed, aligned(4))) Status {
    int MPI_SOURCE;
    int MPI_TAG;
    int MPI_ERROR;
    int cancelled;
    std::size_t bytes;
};
static_assert(sizeof(Status) == 24);

// MPI_STATUS_IGNORE and MPI_STATUSES_IGNORE.
inline bool is_ignored(const Status* status) {
    return status == nullptr;
}

// The part of a status that the standard calls internal.
inline void store_internal(const MPI_Status& from, Status& to) {
    to.bytes = static_cast<std::size_t>(mpi::status_bytes(from));
    to.cancelled = static_cast<int>(mpi::status_cancelled(from));
}

inline void load_internal(const Status& from, MPI_Status& to) {
    mpi::set_status_bytes(to, static_cast<MPI_Count>(from.bytes));
    mpi::set_status_cancelled(to, from.cancelled != 0);
}

} // namespace warren::foreign
