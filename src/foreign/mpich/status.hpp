// MPI_Status of MPICH's ABI: 20 bytes. Thread rule: functions of their arguments.
#pragma once

#include <cstdint>

#include "mpi/entry/status.hpp"

namespace warren::foreign {

struct Status {
    int count_low;
    int count_high_and_cancelled; // bit 0: cancelled
    int MPI_SOURCE;
    int MPI_TAG;
    int MPI_ERROR;
};
static_assert(sizeof(Status) == 20);

// MPI_STATUS_IGNORE and MPI_STATUSES_IGNORE.
inline bool is_ignored(const Status* status) {
    return reinterpret_cast<std::uintptr_t>(status) <= 1;
}

// The part of a status that the standard calls internal.
inline void store_internal(const MPI_Status& from, Status& to) {
    const MPI_Count bytes = mpi::status_bytes(from);
    to.count_low = static_cast<int>(bytes);
    to.count_high_and_cancelled =
        static_cast<int>(bytes >> 32) * 2 + static_cast<int>(mpi::status_cancelled(from));
}

inline void load_internal(const Status& from, MPI_Status& to) {
    const auto high = static_cast<std::uint32_t>(from.count_high_and_cancelled) >> 1;
    mpi::set_status_bytes(to, static_cast<MPI_Count>(static_cast<std::uint64_t>(high) << 32 |
                                                     static_cast<std::uint32_t>(from.count_low)));
    mpi::set_status_cancelled(to, (from.count_high_and_cancelled & 1) != 0);
}

} // namespace warren::foreign
