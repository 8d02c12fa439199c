// Hints of communicators, and the few questions about them whose answer is always the same today.
#pragma once

#include "base/error.hpp"
#include "mpi.h"
#include "mpi/entry/objects.hpp"

namespace warren::mpi {

// Hints are kept and given back; none changes anything yet. Under the rank's lock.
Error comm_set_info(Context& context, comm::Communicator& comm, comm::Info& info);
Error comm_get_info(Context& context, comm::Communicator& comm, MPI_Info* info_used);

// The intercommunicator to the processes that have spawned this world.
Error comm_get_parent(Context& context, MPI_Comm* parent);

} // namespace warren::mpi
