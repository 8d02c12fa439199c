// The common blocks of Open MPI's mpif.h, for programs that don't bring them.

#include "fortran_constants.hpp"

extern "C" {
int mpi_fortran_bottom_;
int mpi_fortran_in_place_;
char mpi_fortran_argv_null_;
char mpi_fortran_argvs_null_;
int mpi_fortran_errcodes_ignore_;
int mpi_fortran_status_ignore_[6];
int mpi_fortran_statuses_ignore_[6];
int mpi_fortran_unweighted_;
int mpi_fortran_weights_empty_;
}
