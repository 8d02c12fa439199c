// Variables of mpif.h and the modules that are constants: common blocks of one variable each
// (abi/fortran_modules.py). Thread rule: constants.
#pragma once

#include "mpi.h"
#include "status.hpp"

// The specific names of the module mpi_f08, whose procedures without choice buffers take the same
// arguments as those of mpif.h (MPI 5.0, 19.1.5).
#define WARREN_FORTRAN_OWN_NAME(type, name, parameters, symbol)                                    \
    WARREN_FORTRAN_ALIAS(type, name, parameters, 7, "mpi_" #name "_f08_")                          \
    WARREN_FORTRAN_ALIAS(type, name, parameters, 8, "pmpi_" #name "_f08_")

#define WARREN_HANDLE_OF_INTEGER "_fromint"
#define WARREN_INTEGER_OF_HANDLE "_toint"

#pragma GCC visibility push(default)
extern "C" {
// A program that has the blocks shares its own with the library.
extern int mpiabibottom_;
extern int mpiabiinplace_;
extern int mpiabiautomatic_;
extern int mpiabistatus_[8];
extern int mpiabistatuses_[8];
extern int mpiabierrcodes_;
extern int mpiabiunweighted_;
extern int mpiabinoweights_;
extern char mpiabiargv_;
extern char mpiabiargvs_;
}
#pragma GCC visibility pop

namespace warren::foreign::fortran {

inline const void* bottom_address() {
    return &mpiabibottom_;
}
inline const void* in_place_address() {
    return &mpiabiinplace_;
}
inline bool is_automatic(const void* buffer) {
    return buffer == &mpiabiautomatic_;
}
inline const int* status_ignore_address() {
    return mpiabistatus_;
}
inline const int* statuses_ignore_address() {
    return mpiabistatuses_;
}
inline const int* errcodes_ignore_address() {
    return &mpiabierrcodes_;
}
// MPI_ARGV_NULL, MPI_ARGVS_NULL.
inline bool are_no_arguments(const char* text) {
    return text == &mpiabiargv_ || text == &mpiabiargvs_;
}
inline const int* unweighted_address() {
    return &mpiabiunweighted_;
}
inline const int* weights_empty_address() {
    return &mpiabinoweights_;
}
inline Status* ignored_status() {
    return MPI_STATUS_IGNORE;
}
inline int* foreign_unweighted() {
    return MPI_UNWEIGHTED;
}
inline int* foreign_weights_empty() {
    return MPI_WEIGHTS_EMPTY;
}

// Keys have the numbers of C.
inline int c_keyval(int keyval) {
    return keyval;
}

} // namespace warren::foreign::fortran
