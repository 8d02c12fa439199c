// Checks that several files of collective entry points make. Thread rule: under the rank's lock.
#pragma once

#include "base/error.hpp"
#include "mpi/coll/collectives.hpp"
#include "mpi/coll/steps.hpp"
#include "mpi/entry/context.hpp"

namespace warren::mpi {

// The blocking operations of a communicator. Tells fibres' balancing of operations of all ranks.
inline coll::Collectives collectives_of(Context& context, comm::Communicator& comm) {
    const FibreFunctions* const functions = context.rank.waits.functions;
    if (functions != nullptr && functions->at_collective != nullptr && // rare: by option
        comm.size() == static_cast<int>(context.rank.world_size)) {
        functions->at_collective();
    }
    return coll::Collectives(context.messages, comm);
}

// The standard has no MPI_IN_PLACE on intercommunicators.
inline Error check_not_in_place(const coll::Steps& steps, const void* sendbuf) {
    return sendbuf != MPI_IN_PLACE || !steps.inter()
               ? Error()
               : fail(MPI_ERR_BUFFER, "MPI_IN_PLACE has no meaning on an intercommunicator");
}

inline Error check_intra(const comm::Communicator& comm) {
    return !comm.inter() ? Error() : fail(MPI_ERR_COMM, "an intercommunicator has no scans");
}

inline bool is_root(const comm::Communicator& comm, int root) {
    return comm.inter() ? root == MPI_ROOT : root == comm.rank();
}

} // namespace warren::mpi
