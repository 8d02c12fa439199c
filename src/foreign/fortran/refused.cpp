// Procedures whose functions need a translation that they don't get: the calls are refused.

#include "foreign/fortran/arguments.hpp"

namespace warren::foreign::fortran {

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
