// Failure: what a failed call does, by the error handler of the object that it failed on.
//
// Thread rule: by any thread, without the rank's lock.
#pragma once

#include <cstdint>

#include "base/error.hpp"
#include "mpi/entry/context.hpp"

namespace warren::mpi {

// Gives the error to the communicator's error handler and returns, if the handler does, the code
// for the program, which the handler may have changed. Without a communicator (null), the error
// goes to the handler of MPI_COMM_SELF, or to that of MPI_COMM_WORLD while only that one has been
// set. A handler that would get MPI_ERR_IN_STATUS gets `status_class` instead, the code in the
// status of the request that failed (MPI 5.0, 9.3.1).
[[gnu::cold]] int raise(Context& context, std::uint32_t call, comm::Communicator* communicator,
                        Error error, int status_class = MPI_ERR_IN_STATUS);

[[gnu::cold]] int raise(Context& context, std::uint32_t call, comm::Session& session, Error error);
[[gnu::cold]] int raise(Context& context, std::uint32_t call, rma::Window& window, Error error);
// Null: no file, but MPI_FILE_NULL.
[[gnu::cold]] int raise_on_file(Context& context, std::uint32_t call, io::File* file, Error error,
                                int status_class = MPI_ERR_IN_STATUS);

// raise() for calls that make an object with an error handler: the new handler gets errors of the
// call itself. The object does not exist then, so a user's function gets a null handle. Calls of
// MPI_Session_init may precede the context.
[[gnu::cold]] int raise_for_new(std::uint32_t call, comm::ErrorHandler& handler,
                                comm::ErrorHandler::Kind kind, Error error);

// Hands a code of the program's to a communicator's handler (MPI_Comm_call_errhandler).
void call_handler(Context& context, comm::Communicator& communicator, int code);
void call_handler(Context& context, comm::Session& session, int code);
void call_handler(Context& context, rma::Window& window, int code);
void call_handler(Context& context, io::File* file, int code);

// raise() for calls that may precede MPI_Init or follow MPI_Finalize, where errors are fatal.
[[gnu::cold]] int raise_anytime(std::uint32_t call, Error error);

// With mpiexec --keep-going: MPI_Abort of a communicator that not all ranks of the job are in ends
// its members (both groups' of an intercommunicator), this one with the code. Returns without
// effect if all ranks of the job are in the communicator.
void end_part(Context& context, const comm::Communicator& communicator, int code);

// Ends the job: records why for mpiexec (a rank that was started alone says it itself) and exits.
// `code` is the job's exit code.
[[noreturn]] void end_job(Context& context, node::JobEnd end, int code, const char* text);

// Ends a process that is in no job: says why and exits.
[[noreturn, gnu::format(printf, 1, 2)]] void end_process(const char* format, ...);

} // namespace warren::mpi
