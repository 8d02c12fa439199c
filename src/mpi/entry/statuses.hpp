// Statuses (MPI chapters 3.2.5, 3.8.4 and 13.3): what their entry points call. They read and write
// the caller's status only; status.hpp says what is where in it.
#pragma once

#include "base/error.hpp"
#include "mpi.h"
#include "mpi/entry/objects.hpp"

namespace warren::mpi {

Error get_count(Context& context, const MPI_Status* status, const datatype::Datatype& datatype,
                MPI_Count& count);
Error get_elements(Context& context, const MPI_Status* status, const datatype::Datatype& datatype,
                   MPI_Count& count);
Error get_elements_x(Context& context, const MPI_Status* status, const datatype::Datatype& datatype,
                     MPI_Count* count);
Error test_cancelled(Context& context, const MPI_Status* status, int* flag);

Error status_set_elements(Context& context, MPI_Status* status, const datatype::Datatype& datatype,
                          MPI_Count count);
Error status_set_elements_x(Context& context, MPI_Status* status,
                            const datatype::Datatype& datatype, MPI_Count count);
Error status_set_cancelled(Context& context, MPI_Status* status, int flag);

// At any time.
Error status_get_error(const MPI_Status* status, int* error);
Error status_get_source(const MPI_Status* status, int* source);
Error status_get_tag(const MPI_Status* status, int* tag);
Error status_set_error(MPI_Status* status, int error);
Error status_set_source(MPI_Status* status, int source);
Error status_set_tag(MPI_Status* status, int tag);

} // namespace warren::mpi
