// The common blocks of MPICH's mpif.h, for programs that don't bring them (the module mpi's are
// here).

#include "fortran_constants.hpp"

extern "C" {
BottomBlock mpipriv1_;
StatusesBlock mpipriv2_;
char mpiprivc_[2];
int mpifcmb5_;
int mpifcmb9_;
}
