// The ABI procedures (MPI chapter 20) of a program or of a Fortran layer above the library. They
// may be called at any time of the program's life, under the process's mutex.
#pragma once

#include "base/error.hpp"
#include "mpi.h"
#include "mpi/entry/objects.hpp"

namespace warren::mpi {

struct Process;

Error abi_get_info(Process& process, MPI_Info* info);

// The sizes of the Fortran compiler's types, set once by who knows them; MPI_INFO_NULL before.
Error abi_set_fortran_info(Process& process, comm::Info& info);
Error abi_get_fortran_info(Process& process, MPI_Info* info);

// The values of .TRUE. and .FALSE. of LOGICALs of a size in bytes, set once. *is_set says whether.
Error abi_set_fortran_booleans(Process& process, int logical_size, void* logical_true,
                               void* logical_false);
Error abi_get_fortran_booleans(Process& process, int logical_size, void* logical_true,
                               void* logical_false, int* is_set);

} // namespace warren::mpi
