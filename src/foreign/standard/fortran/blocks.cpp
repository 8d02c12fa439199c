// The common blocks of mpif.h and the modules, for programs that don't bring them.

#include "fortran_constants.hpp"

extern "C" {
int mpiabibottom_;
int mpiabiinplace_;
int mpiabiautomatic_;
int mpiabistatus_[8];
int mpiabistatuses_[8];
int mpiabierrcodes_;
int mpiabiunweighted_;
int mpiabinoweights_;
char mpiabiargv_;
char mpiabiargvs_;
}
