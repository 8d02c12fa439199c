// Constants of Fortran that C programs of the ABI know: the places of ignored statuses.

#include "foreign/fortran/arguments.hpp"

#pragma GCC visibility push(default)
extern "C" {
extern int* MPI_F_STATUS_IGNORE;
extern int* MPI_F_STATUSES_IGNORE;
}
#pragma GCC visibility pop

namespace warren::foreign::fortran {

namespace {

// C programs compare what Fortran passes them with these.
__attribute__((constructor)) void share_constants_with_c() {
    MPI_F_STATUS_IGNORE = const_cast<int*>(status_ignore_address());
    MPI_F_STATUSES_IGNORE = const_cast<int*>(statuses_ignore_address());
}

} // namespace

} // namespace warren::foreign::fortran
