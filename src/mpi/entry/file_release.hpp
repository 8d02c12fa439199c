// Files' handles, and the release of what hangs on a file.
#pragma once

#include "mpi/entry/context.hpp"

namespace warren::mpi {

// Null: MPI_FILE_NULL.
inline MPI_File handle_of(const io::File* file) {
    return file != nullptr ? static_cast<MPI_File>(LateHandleTable<io::File>::handle_of(*file))
                           : MPI_FILE_NULL;
}

// The open file whose communicator this is; null: it is none's.
io::File* file_of(Context& context, const comm::Communicator& communicator);

void release_attached(Context& context, io::File& file);

} // namespace warren::mpi
