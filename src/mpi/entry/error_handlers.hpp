// Error handlers, classes, codes and strings (MPI chapter 9): what their entry points call.
#pragma once

#include "base/error.hpp"
#include "mpi.h"
#include "mpi/comm/error_handler.hpp"
#include "mpi/entry/objects.hpp"

namespace warren::mpi {

struct Process;

// At any time of the program's life, under the process's mutex.
Error comm_create_errhandler(Process& process, MPI_Comm_errhandler_function* function,
                             MPI_Errhandler* errhandler);
Error file_create_errhandler(Process& process, MPI_File_errhandler_function* function,
                             MPI_Errhandler* errhandler);
Error win_create_errhandler(Process& process, MPI_Win_errhandler_function* function,
                            MPI_Errhandler* errhandler);
Error session_create_errhandler(Process& process, MPI_Session_errhandler_function* function,
                                MPI_Errhandler* errhandler);
// The caller sets the handle to MPI_ERRHANDLER_NULL.
Error errhandler_free(Process& process, comm::ErrorHandler& errhandler);

Error error_class(Process& process, int errorcode, int* errorclass);
Error error_string(Process& process, int errorcode, char* string, int* resultlen);
Error add_error_class(Process& process, int* errorclass);
Error add_error_code(Process& process, int errorclass, int* errorcode);
Error add_error_string(Process& process, int errorcode, const char* string);
Error remove_error_class(Process& process, int errorclass);
Error remove_error_code(Process& process, int errorcode);
Error remove_error_string(Process& process, int errorcode);

// An object's handler, `place`. Take the process's mutex.
// Refuses a handler of another kind. `objects`: what the kind is for, in the plural.
Error check_kind(const comm::ErrorHandler& handler, comm::ErrorHandler::Kind kind,
                 const char* objects);
// Puts a handler in the place of the one that is there.
void set_handler(Context& context, comm::ErrorHandler*& place, comm::ErrorHandler& handler);
// A handle of the handler; of `otherwise` if none has been set.
MPI_Errhandler share_handler(Context& context, comm::ErrorHandler* place,
                             comm::ErrorHandler& otherwise);

// Handlers of communicators. Call these under the rank's lock.
Error comm_set_errhandler(Context& context, comm::Communicator& comm,
                          comm::ErrorHandler& errhandler);
Error comm_get_errhandler(Context& context, comm::Communicator& comm, MPI_Errhandler* errhandler);
// Calls the handler with the program's code; ends the job when it is a fatal one. Without the lock.
Error win_set_errhandler(Context& context, rma::Window& win, comm::ErrorHandler& errhandler);
Error win_get_errhandler(Context& context, rma::Window& win, MPI_Errhandler* errhandler);
Error win_call_errhandler(Context& context, rma::Window& win, int errorcode);
Error comm_call_errhandler(Context& context, comm::Communicator& comm, int errorcode);

// Handlers of files; null: of MPI_FILE_NULL, whose handler new files get.
Error file_set_errhandler(Context& context, io::File* file, comm::ErrorHandler& errhandler);
Error file_get_errhandler(Context& context, io::File* file, MPI_Errhandler* errhandler);
Error file_call_errhandler(Context& context, io::File* fh, int errorcode);

} // namespace warren::mpi
