// Info objects (MPI chapter 10): what their entry points call, at any time of the program's life.
//
// Handles and pointers have been checked. Keys longer than MPI_MAX_INFO_KEY - 1 are
// MPI_ERR_INFO_KEY, values likewise. Called under the process's mutex.
#pragma once

#include "base/error.hpp"
#include "mpi.h"
#include "mpi/entry/objects.hpp"

namespace warren::mpi {

struct Process;

Error info_create(Process& process, MPI_Info* info);
// A program's arguments and what mpiexec knows, as MPI_INFO_ENV has them.
Error info_create_env(Process& process, int argc, char* argv[], MPI_Info* info);
Error info_dup(Process& process, comm::Info& info, MPI_Info* newinfo);
Error info_free(Process& process, comm::Info& info);

Error info_set(Process& process, comm::Info& info, const char* key, const char* value);
// MPI_ERR_INFO_NOKEY when the key is not set.
Error info_delete(Process& process, comm::Info& info, const char* key);

// The value, cut to *buflen - 1 characters; *buflen becomes what it needs, the final 0 included.
Error info_get_string(Process& process, comm::Info& info, const char* key, int* buflen, char* value,
                      int* flag);
// The deprecated pair: lengths without the final 0.
Error info_get(Process& process, comm::Info& info, const char* key, int valuelen, char* value,
               int* flag);
Error info_get_valuelen(Process& process, comm::Info& info, const char* key, int* valuelen,
                        int* flag);

Error info_get_nkeys(Process& process, comm::Info& info, int* nkeys);
Error info_get_nthkey(Process& process, comm::Info& info, int n, char* key);

// The handle of a new info object with what a communicator's user may see of its hints (`hints` may
// be null).
Error make_info(Process& process, const comm::Info* hints, MPI_Info* info);

// A copy of what an argument stands for that means something at the root only and has not been
// checked: empty for MPI_INFO_NULL. Takes the process's mutex itself.
Error copy_info(Process& process, MPI_Info handle, comm::Info& copy);

} // namespace warren::mpi
