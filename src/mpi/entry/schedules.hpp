// The three ways to carry out a collective operation, given its plan: a function of coll::Steps
// that says what is to be done (collectives.hpp) and returns an Error for arguments that it
// refuses.
//
// Thread rule: under the rank's lock.
#pragma once

#include <memory>

#include "base/error.hpp"
#include "mpi/coll/immediate.hpp"
#include "mpi/coll/schedule.hpp"
#include "mpi/entry/context.hpp"

namespace warren::mpi {

// Blocking: each step as the plan says it.
template <typename Plan>
Error do_steps(Context& context, comm::Communicator& comm, Plan plan) {
    coll::Immediate steps(context.messages, comm);
    if (Error error = plan(steps)) {
        return error;
    }
    return steps.end();
}

// Gives a schedule to a new request, which also keeps the communicator. Null: memory is out.
message::Request* make_scheduled(Context& context, comm::Communicator& comm,
                                 std::unique_ptr<coll::Schedule> schedule);
// Starts it and gives it to the program.
Error start_scheduled(Context& context, message::Request* request, MPI_Request* handle);
// Gives it to the program as a persistent request.
Error keep_scheduled(message::Request* request, MPI_Request* handle);

std::unique_ptr<coll::Schedule> nonblocking_schedule(Context& context, comm::Communicator& comm);
std::unique_ptr<coll::Schedule> persistent_schedule(Context& context, comm::Communicator& comm);

// Nonblocking. An operation that is refused takes no number: this rank may have refused its part
// alone, and the program says it again, rightly.
template <typename Plan>
Error start_steps(Context& context, comm::Communicator& comm, MPI_Request* handle, Plan plan) {
    std::unique_ptr<coll::Schedule> schedule = nonblocking_schedule(context, comm);
    if (Error error = plan(*schedule)) {
        --comm.nonblocking_collectives;
        return error;
    }
    return start_scheduled(context, make_scheduled(context, comm, std::move(schedule)), handle);
}

// Persistent. Operations may be started in any order: each has messages of its own.
template <typename Plan>
Error keep_steps(Context& context, comm::Communicator& comm, MPI_Request* handle, Plan plan) {
    std::unique_ptr<coll::Schedule> schedule = persistent_schedule(context, comm);
    if (Error error = plan(*schedule)) {
        --comm.persistent_collectives;
        return error;
    }
    return keep_scheduled(make_scheduled(context, comm, std::move(schedule)), handle);
}

} // namespace warren::mpi
