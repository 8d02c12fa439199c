// The library's part of an MPI_Status: the bytes received, and whether the operation was cancelled.
// The standard ABI gives it five ints.
#pragma once

#include <cstring>

#include "mpi.h"
#include "mpi/message/request.hpp"

namespace warren::mpi {

inline constexpr int status_bytes_word = 0;     // two words
inline constexpr int status_cancelled_word = 2; // 0 or 1

inline void set_status_bytes(MPI_Status& status, MPI_Count bytes) {
    std::memcpy(&status.MPI_internal[status_bytes_word], &bytes, sizeof bytes);
}

inline MPI_Count status_bytes(const MPI_Status& status) {
    MPI_Count bytes;
    std::memcpy(&bytes, &status.MPI_internal[status_bytes_word], sizeof bytes);
    return bytes;
}

inline void set_status_cancelled(MPI_Status& status, bool cancelled) {
    status.MPI_internal[status_cancelled_word] = cancelled;
}

inline bool status_cancelled(const MPI_Status& status) {
    return status.MPI_internal[status_cancelled_word] != 0;
}

// All but MPI_ERROR, which else only calls that complete several requests set. Null: ignored.
inline void set_status(MPI_Status* status, const message::Outcome& outcome) {
    if (status != nullptr) {
        status->MPI_SOURCE = outcome.source;
        status->MPI_TAG = outcome.tag;
        set_status_bytes(*status, outcome.bytes);
        set_status_cancelled(*status, outcome.cancelled);
    }
}

// The outcome of a completed send.
inline message::Outcome empty_outcome() {
    return {};
}

// The empty status, of null and inactive requests, has an error field (MPI 5.0, 3.7.3).
inline void set_empty_status(MPI_Status* status) {
    if (status != nullptr) {
        set_status(status, empty_outcome());
        status->MPI_ERROR = MPI_SUCCESS;
    }
}

// The outcome of a receive from MPI_PROC_NULL.
inline message::Outcome null_peer_outcome() {
    return {.source = MPI_PROC_NULL, .tag = MPI_ANY_TAG};
}

} // namespace warren::mpi
