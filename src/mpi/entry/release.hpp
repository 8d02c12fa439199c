// Release of communicators' attributes, error handler and info. Code that makes a communicator from
// another, or frees one, calls these.
#pragma once

#include "base/error.hpp"
#include "mpi/entry/context.hpp"

namespace warren::mpi {

// Before a communicator's handle goes: calls the delete functions of its attributes, and gives up
// its info object. An error is a delete function's; the communicator stays then.
// Under the rank's lock, which is free while a function runs.
Error release_attached(Context& context, comm::Communicator& communicator);

// Gives up a reference to a communicator; with the last one it dies, and its error handler is given
// up. Under the rank's lock.
[[gnu::cold]] void end_communicator(Context& context, comm::Communicator& communicator);
inline void release(Context& context, comm::Communicator& communicator) {
    if (context.communicators.drop(communicator)) [[unlikely]] {
        end_communicator(context, communicator);
    }
}

// Sets the communicator whose error handler hears of a failure of the running call: a request's
// instead of the call's own. It is kept alive until then. Null: the call's own again. Under the
// rank's lock.
void set_failed_on(Context& context, comm::Communicator* communicator,
                   int error_class = MPI_SUCCESS);

// MPI_Comm_dup: error handler, info (`copy_info`) and the attributes that their functions want
// copied.
Error duplicate_attached(Context& context, const comm::Communicator& from, comm::Communicator& to,
                         bool copy_info);

// A communicator made by other means has its parent's error handler (MPI chapter 9.3); and its
// session.
void inherit(Context& context, const comm::Communicator& from, comm::Communicator& to);

} // namespace warren::mpi
