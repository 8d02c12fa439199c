// The accesses to files, as their entry points describe them.
#pragma once

#include "mpi/entry/requests.hpp"
#include "mpi/io/file.hpp"

namespace warren::mpi {

inline io::Access access_of(io::Direction direction, io::Pointer pointer, MPI_Offset offset,
                            const void* base, MPI_Count count, const datatype::Datatype& type) {
    io::Access access;
    access.direction = direction;
    access.pointer = pointer;
    access.offset = offset;
    access.memory = buffer_of(base, count, type);
    return access;
}

inline void set_file_status(MPI_Status* status, MPI_Count bytes) {
    message::Outcome outcome;
    outcome.bytes = bytes;
    set_status(status, outcome);
}

} // namespace warren::mpi
