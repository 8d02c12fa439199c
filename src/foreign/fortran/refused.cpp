// Procedures whose lists of strings or functions need a translation that they don't get, because
// the core refuses the calls: it says so, through the error handler.

#include "foreign/fortran/arguments.hpp"

namespace warren::foreign::fortran {

WARREN_FORTRAN(comm_spawn, COMM_SPAWN,
               (char*, char*, int* maxprocs, int* info, int* root, int* comm, int* intercomm, int*,
                int* ierror, std::size_t, std::size_t)) {
    MPI_Comm made = MPI_COMM_NULL;
    const int code =
        core.Comm_spawn(nullptr, nullptr, *maxprocs, handle::Info::core(integer::Info::from(*info)),
                        *root, handle::Comm::core(integer::Comm::from(*comm)), &made, nullptr);
    *intercomm = integer::Comm::to(handle::Comm::foreign(made));
    finish(ierror, foreign_error(code));
}

WARREN_FORTRAN(comm_spawn_multiple, COMM_SPAWN_MULTIPLE,
               (int* count, char*, char*, int* maxprocs, int*, int* root, int* comm, int* intercomm,
                int*, int* ierror, std::size_t, std::size_t)) {
    MPI_Comm made = MPI_COMM_NULL;
    const int code =
        core.Comm_spawn_multiple(*count, nullptr, nullptr, maxprocs, nullptr, *root,
                                 handle::Comm::core(integer::Comm::from(*comm)), &made, nullptr);
    *intercomm = integer::Comm::to(handle::Comm::foreign(made));
    finish(ierror, foreign_error(code));
}

WARREN_FORTRAN(register_datarep, REGISTER_DATAREP,
               (char*, void*, void*, void*, MPI_Aint*, int* ierror, std::size_t)) {
    finish(ierror, foreign_error(MPI_ERR_UNSUPPORTED_OPERATION));
}

// Its address is the constant; nobody calls it.
WARREN_FORTRAN(conversion_fn_null, CONVERSION_FN_NULL,
               (void*, int*, int*, void*, MPI_Aint*, MPI_Aint*, int* ierror)) {
    finish(ierror, MPI_SUCCESS);
}

} // namespace warren::foreign::fortran
