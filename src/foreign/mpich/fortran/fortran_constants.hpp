// Variables of MPICH's mpif.h that are constants: places in its common blocks. Thread rule:
// constants.
#pragma once

#include "status.hpp"
#include "weights.hpp"

#define WARREN_FORTRAN_OWN_NAME(type, name, parameters, symbol)

#define WARREN_HANDLE_OF_INTEGER "_f2c"
#define WARREN_INTEGER_OF_HANDLE "_c2f"

#pragma GCC visibility push(default)
extern "C" {
// A program that has the blocks shares its own with the library.
struct BottomBlock {
    int bottom, in_place, status_ignore[5];
};
struct StatusesBlock {
    int statuses_ignore[5], errcodes_ignore[1];
};
extern BottomBlock mpipriv1_;
extern StatusesBlock mpipriv2_;
extern char mpiprivc_[2];
extern int mpifcmb5_; // MPI_UNWEIGHTED
extern int mpifcmb9_; // MPI_WEIGHTS_EMPTY
extern int* const MPICH_UNWEIGHTED asm("MPI_UNWEIGHTED");
extern int* const MPICH_WEIGHTS_EMPTY asm("MPI_WEIGHTS_EMPTY");
}
#pragma GCC visibility pop

namespace warren::foreign::fortran {

inline const void* bottom_address() {
    return &mpipriv1_.bottom;
}
inline const void* in_place_address() {
    return &mpipriv1_.in_place;
}
// (MPI_BUFFER_AUTOMATIC is younger than the ABI's modules.)
inline bool is_automatic(const void*) {
    return false;
}
inline const int* status_ignore_address() {
    return mpipriv1_.status_ignore;
}
inline const int* statuses_ignore_address() {
    return mpipriv2_.statuses_ignore;
}
inline const int* errcodes_ignore_address() {
    return mpipriv2_.errcodes_ignore;
}
// MPI_ARGV_NULL, MPI_ARGVS_NULL.
inline bool are_no_arguments(const char* text) {
    return text == &mpiprivc_[0] || text == &mpiprivc_[1];
}
inline const int* unweighted_address() {
    return &mpifcmb5_;
}
inline const int* weights_empty_address() {
    return &mpifcmb9_;
}
inline Status* ignored_status() {
    return reinterpret_cast<Status*>(1);
}
inline int* foreign_unweighted() {
    return MPICH_UNWEIGHTED;
}
inline int* foreign_weights_empty() {
    return MPICH_WEIGHTS_EMPTY;
}

// Predefined keys have other numbers than in C: a key there is odd, here the next number.
inline int c_keyval(int keyval) {
    const bool predefined =
        (keyval & 0x7fffff00) == 0x64400000 || (keyval & 0x7fffff00) == 0x66000000;
    return predefined ? keyval - 1 : keyval;
}

} // namespace warren::foreign::fortran
