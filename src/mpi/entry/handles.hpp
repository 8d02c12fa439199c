// Handles as integers (MPI chapter 20, MPI_X_toint and MPI_X_fromint): the lower half of a handle,
// which Fortran keeps. At any time; a number that belongs to nothing gives the null handle.
#pragma once

#include "mpi.h"

namespace warren::mpi {

int comm_toint(MPI_Comm comm);
int errhandler_toint(MPI_Errhandler errhandler);
int file_toint(MPI_File file);
int group_toint(MPI_Group group);
int info_toint(MPI_Info info);
int message_toint(MPI_Message message);
int op_toint(MPI_Op op);
int request_toint(MPI_Request request);
int session_toint(MPI_Session session);
int type_toint(MPI_Datatype datatype);
int win_toint(MPI_Win win);

MPI_Comm comm_fromint(int comm);
MPI_Errhandler errhandler_fromint(int errhandler);
MPI_File file_fromint(int file);
MPI_Group group_fromint(int group);
MPI_Info info_fromint(int info);
MPI_Message message_fromint(int message);
MPI_Op op_fromint(int op);
MPI_Request request_fromint(int request);
MPI_Session session_fromint(int session);
MPI_Datatype type_fromint(int datatype);
MPI_Win win_fromint(int win);

} // namespace warren::mpi
