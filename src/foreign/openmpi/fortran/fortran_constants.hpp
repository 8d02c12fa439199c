// Variables of Open MPI's mpif.h that are constants: its common blocks. Thread rule: constants.
#pragma once

#include "status.hpp"

// The names by which its library of the module mpi_f08 calls them.
#define WARREN_FORTRAN_OWN_NAME(type, name, parameters, symbol)                                    \
    WARREN_FORTRAN_ALIAS(type, name, parameters, 7, symbol)

#define WARREN_HANDLE_OF_INTEGER "_f2c"
#define WARREN_INTEGER_OF_HANDLE "_c2f"

#pragma GCC visibility push(default)
extern "C" {
// A program that has the blocks shares its own with the library.
extern int mpi_fortran_bottom_;
extern int mpi_fortran_in_place_;
extern char mpi_fortran_argv_null_;
extern char mpi_fortran_argvs_null_;
extern int mpi_fortran_errcodes_ignore_;
extern int mpi_fortran_status_ignore_[6];
extern int mpi_fortran_statuses_ignore_[6];
extern int mpi_fortran_unweighted_;
extern int mpi_fortran_weights_empty_;
}
#pragma GCC visibility pop

namespace warren::foreign::fortran {

inline const void* bottom_address() {
    return &mpi_fortran_bottom_;
}
inline const void* in_place_address() {
    return &mpi_fortran_in_place_;
}
// (MPI_BUFFER_AUTOMATIC is younger than the ABI's modules.)
inline bool is_automatic(const void*) {
    return false;
}
inline const int* status_ignore_address() {
    return mpi_fortran_status_ignore_;
}
inline const int* statuses_ignore_address() {
    return mpi_fortran_statuses_ignore_;
}
inline const int* errcodes_ignore_address() {
    return &mpi_fortran_errcodes_ignore_;
}
// MPI_ARGV_NULL, MPI_ARGVS_NULL.
inline bool are_no_arguments(const char* text) {
    return text == &mpi_fortran_argv_null_ || text == &mpi_fortran_argvs_null_;
}
inline const int* unweighted_address() {
    return &mpi_fortran_unweighted_;
}
inline const int* weights_empty_address() {
    return &mpi_fortran_weights_empty_;
}
inline Status* ignored_status() {
    return nullptr;
}
inline int* foreign_unweighted() {
    return reinterpret_cast<int*>(2);
}
inline int* foreign_weights_empty() {
    return reinterpret_cast<int*>(3);
}

// Keys have the numbers of C.
inline int c_keyval(int keyval) {
    return keyval;
}

} // namespace warren::foreign::fortran
