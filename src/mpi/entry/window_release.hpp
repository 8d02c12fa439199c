// Windows' handles, and the release of what hangs on a window.
#pragma once

#include "base/error.hpp"
#include "mpi/entry/context.hpp"

namespace warren::mpi {

inline MPI_Win handle_of(const rma::Window& window) {
    return static_cast<MPI_Win>(LateHandleTable<rma::Window>::handle_of(window));
}

// Error handler, attributes (without their delete functions) and info.
void release_attached(Context& context, rma::Window& window);

} // namespace warren::mpi
