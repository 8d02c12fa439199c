// Process: the part of a rank's state that programs may use before MPI_Init and after MPI_Finalize:
// info objects, error handlers, error classes and codes.
//
// Made at first use; ends with MPI_Finalize when nothing of the program's is left in it.
// Thread rule: under its mutex, which is taken after a rank's lock where both are needed.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "mpi/comm/error_handler.hpp"
#include "mpi/comm/info.hpp"
#include "mpi/entry/error_codes.hpp"

namespace warren::mpi {

struct Process {
    std::mutex mutex;
    comm::Infos infos;
    comm::ErrorHandlers error_handlers;
    ErrorCodes error_codes;
    // Whether the keys of MPI_INFO_ENV have been set, which happens at its first use.
    bool environment_known = false;

    // Fortran's logical values, as a Fortran layer reports them (mpi/entry/abi.hpp).
    struct Booleans {
        int size;
        unsigned char true_value[16];
        unsigned char false_value[16];
    };
    std::unique_ptr<comm::Info> fortran_info;
    std::vector<Booleans> fortran_booleans;
};

// The state of the calling thread's rank (an MPI process), made if need be.
Process& find_process();

// Ends it if the program has nothing left in it.
void end_process_state();

} // namespace warren::mpi
