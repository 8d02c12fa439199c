// Process creation and connection (MPI chapter 11): what their entry points call.
//
// Arguments that mean something at the root only have not been checked. Called with the rank's lock
// held. docs/internals/dynamic_processes.md describes how worlds find each other.
#pragma once

#include "base/error.hpp"
#include "mpi.h"
#include "mpi/entry/objects.hpp"

namespace warren::mpi {

Error open_port(Context& context, comm::Info* info, char* port_name);
Error close_port(Context& context, const char* port_name);

// The info key "timeout", in seconds, limits how long the root waits for the other side.
Error comm_accept(Context& context, const char* port_name, MPI_Info info, int root,
                  comm::Communicator& comm, MPI_Comm* newcomm);
Error comm_connect(Context& context, const char* port_name, MPI_Info info, int root,
                   comm::Communicator& comm, MPI_Comm* newcomm);
// Two processes whose only tie is a stream socket, which must be blocking.
Error comm_join(Context& context, int fd, MPI_Comm* intercomm);

Error comm_spawn(Context& context, const char* command, char* argv[], int maxprocs, MPI_Info info,
                 int root, comm::Communicator& comm, MPI_Comm* intercomm, int array_of_errcodes[]);
Error comm_spawn_multiple(Context& context, int count, char* array_of_commands[],
                          char** array_of_argv[], const int array_of_maxprocs[],
                          const MPI_Info array_of_info[], int root, comm::Communicator& comm,
                          MPI_Comm* intercomm, int array_of_errcodes[]);

Error publish_name(Context& context, const char* service_name, comm::Info* info,
                   const char* port_name);
Error unpublish_name(Context& context, const char* service_name, comm::Info* info,
                     const char* port_name);
// Without the rank's lock: the publisher's answer may take a while.
Error lookup_name(Context& context, const char* service_name, comm::Info* info, char* port_name);

} // namespace warren::mpi
